"""The JSON of Avro schemas: read with limits, written as Java's Avro writes it."""

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
    """Parse a text; comments are allowed, as in Java, and so are duplicate keys unless `strict`."""
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
            return decoder.decode(_STRING_OR_COMMENT.sub(_remove_comment, text))
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InvalidSchema("the text is nested too deeply") from None
    except InvalidSchema:
        raise
    except ValueError:  # Python refuses whole numbers of more than 4300 digits.
        raise InvalidSchema("a number has too many digits") from None


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidSchema(f"the key {twice!r} appears twice in one object")
    return found


def _refuse_constant(name: str) -> JsonValue:
    raise InvalidSchema(f"not JSON: {name} is not a JSON number")


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidSchema(f"the number {text[:40]} is too large")
    return value


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_parse_float
)
_LAX: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_float)


def _remove_comment(match: re.Match[str]) -> str:
    """Replace a comment with a space; strings stay, and so do unterminated comments, which are then invalid JSON."""
    found = match[0]
    if found.startswith('"') or (found.startswith("/*") and (len(found) < 4 or not found.endswith("*/"))):
        return found
    return " "


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("the text contains an unpaired surrogate") from None


def _check_size(value: JsonValue, limits: Limits) -> None:
    """Count the values level by level, without recursion."""
    level, depth, elements = [value], 0, 0
    while level:
        depth += 1
        elements += len(level)
        if depth > limits.max_depth:
            raise InvalidSchema(f"the text is nested more than {limits.max_depth} levels deep")
        if elements > limits.max_elements:
            raise InvalidSchema(f"the text has more than {limits.max_elements} values")
        following: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                following.extend(item.values())
            elif isinstance(item, list):
                following.extend(item)
        level = following


def quote(text: str) -> str:
    """A text as a JSON string, as Java writes it: only those characters are escaped that must be."""
    return f'"{text}"' if _is_plain(text) else f'"{text.translate(_ESCAPES)}"'


def write(value: JsonValue, *, sort_keys: bool = False) -> str:
    """A value as compact JSON, with numbers as Java writes them."""
    match value:
        case str():
            return quote(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _write_double(value)
        case dict():
            items = sorted(value.items()) if sort_keys else value.items()
            members = [f"{quote(key)}:{write(item, sort_keys=sort_keys)}" for key, item in items]
            return f"{{{','.join(members)}}}"
        case list() | tuple():
            return f"[{','.join([write(item, sort_keys=sort_keys) for item in value])}]"
        case _:
            return str(value)


def _write_double(value: float) -> str:
    """As Java's Double.toString: with an exponent below a thousandth, and from ten million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    exponent = int(exponent) + len(digits) - 1
    fraction = "".join(map(str, digits[1:])).rstrip("0") or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent}"


def to_single(value: float) -> float:
    """The shortest number with the same 32-bit value, as Java's Float.toString prints it."""
    try:
        bits = struct.pack(">f", value)
    except OverflowError:
        return value
    (rounded,) = struct.unpack(">f", bits)
    shorter = (float(f"{rounded:.{digits}g}") for digits in range(1, 10))
    return next(number for number in shorter if struct.pack(">f", number) == bits)
