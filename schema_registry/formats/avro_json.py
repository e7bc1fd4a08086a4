"""The JSON that Avro schemas are written in: read with limits, written as Java's Avro writes it."""

import json
import math
import re
import struct
from collections import Counter
from decimal import Decimal
from typing import Final

from schema_registry.formats.avro_types import JsonValue
from schema_registry.formats.schema import InvalidSchema, Limits

_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_is_plain: Final = re.compile(r'[^"\\\x00-\x1f]*').fullmatch
_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\b"): "\\b",
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\f"): "\\f",
    ord("\r"): "\\r",
}


def read(text: str, *, limits: Limits, strict: bool) -> JsonValue:
    """The value that a text says; comments are allowed, as in Java, and keys twice in an object unless strict."""
    value = _decode(text, strict=strict)
    _check_size(value, limits)
    if "\\ud" in text.lower():
        _check_surrogates(json.dumps(value, ensure_ascii=False))
    return value


def _decode(text: str, *, strict: bool) -> JsonValue:
    _check_surrogates(text)
    decoder = _STRICT if strict else _LAX
    try:
        try:
            return decoder.decode(text)
        except json.JSONDecodeError:
            if "/*" not in text and "//" not in text:
                raise
            return decoder.decode(_STRING_OR_COMMENT.sub(_without_comment, text))
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InvalidSchema("the text nests too deep") from None
    except InvalidSchema:
        raise
    except ValueError:  # Python refuses whole numbers of more than 4300 digits.
        raise InvalidSchema("a number has too many digits") from None


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidSchema(f"the key {twice!r} stands twice in one object")
    return found


def _refuse_constant(name: str) -> JsonValue:
    raise InvalidSchema(f"not JSON: {name} is no number that JSON knows")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidSchema(f"the number {text[:40]} is too large")
    return value


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite)
_LAX: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _without_comment(match: re.Match[str]) -> str:
    """What a string or a comment leaves; a comment that never ends stays, and is then no JSON."""
    found = match[0]
    if found.startswith('"') or (found.startswith("/*") and (len(found) < 4 or not found.endswith("*/"))):
        return found
    return " "


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("the text holds half a surrogate pair, which UTF-8 cannot say") from None


def _check_size(value: JsonValue, limits: Limits) -> None:
    """Count the values, level by level."""
    level, depth, elements = [value], 0, 0
    while level:
        depth += 1
        elements += len(level)
        if depth > limits.max_depth:
            raise InvalidSchema(f"the text nests more than {limits.max_depth} levels deep")
        if elements > limits.max_elements:
            raise InvalidSchema(f"the text has more than {limits.max_elements} values")
        following: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                following.extend(item.values())
            elif isinstance(item, list):
                following.extend(item)
        level = following


def quoted(text: str) -> str:
    """A text as JSON, as Java writes it: only what must be escaped is."""
    return f'"{text}"' if _is_plain(text) else f'"{text.translate(_ESCAPES)}"'


def written(value: JsonValue, *, sort_keys: bool = False) -> str:
    """A value as compact JSON, numbers as Java writes them."""
    match value:
        case str():
            return quoted(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _written_double(value)
        case dict():
            items = sorted(value.items()) if sort_keys else value.items()
            members = [f"{quoted(key)}:{written(item, sort_keys=sort_keys)}" for key, item in items]
            return f"{{{','.join(members)}}}"
        case list() | tuple():
            return f"[{','.join([written(item, sort_keys=sort_keys) for item in value])}]"
        case _:
            return str(value)


def _written_double(value: float) -> str:
    """Java's Double.toString: an exponent below a thousandth and from ten million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    exponent = int(exponent) + len(digits) - 1
    fraction = "".join(map(str, digits[1:])).rstrip("0") or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent}"


def as_single(value: float) -> float:
    """The shortest number that means the same in 32 bits, as Java's Float.toString gives it."""
    try:
        bits = struct.pack(">f", value)
    except OverflowError:
        return value
    (rounded,) = struct.unpack(">f", bits)
    shorter = (float(f"{rounded:.{digits}g}") for digits in range(1, 10))
    return next(number for number in shorter if struct.pack(">f", number) == bits)
