"""Read and write JSON so that the order of keys and the spelling of numbers are kept."""

import json
import math
import re
from collections import Counter
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NoReturn, Self

from schema_registry.formats.schema import InvalidSchema, Limits

JsonObject = dict[str, Any]
JsonValue = None | bool | int | float | str | list[Any] | JsonObject

_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)")


class SpelledNumber(float):
    """A number with a fraction or an exponent that keeps its spelling, so that 1.50 is not written back as 1.5."""

    __slots__ = ("spelling",)
    spelling: str

    def __new__(cls, text: str) -> Self:
        """Parse a number; raises ValueError if it does not fit a double, because no client could use it."""
        number = super().__new__(cls, text)
        exact = Decimal(text)
        if math.isinf(number) or (not number and exact):
            raise ValueError(f"the number {text[:50]} does not fit a double")
        number.spelling = str(exact)
        return number


def read(text: str, *, limits: Limits, strict: bool = True) -> JsonValue:
    """Parse a JSON text; `strict` refuses duplicate keys, otherwise the last one counts."""
    decoder = _STRICT_DECODER if strict else _LENIENT_DECODER
    try:
        value: JsonValue = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidSchema(f"not JSON: {error}") from None
    except RecursionError:
        raise InvalidSchema(f"nested deeper than {limits.max_depth} levels") from None
    except ValueError as error:
        too_long = "integer string conversion" in str(error)
        raise InvalidSchema(f"not JSON: {'a number has too many digits' if too_long else error}") from None
    _check_size(value, limits)
    return value


def write(value: JsonValue, *, sort_keys: bool = False) -> str:
    """Write a value compactly; `sort_keys` orders the keys of every object."""
    parts: list[str] = []
    _write(value, parts, sort_keys)
    return "".join(parts)


def _write(value: JsonValue, parts: list[str], sort_keys: bool) -> None:
    if isinstance(value, str):
        parts.append(_quote(value))
    elif isinstance(value, dict):
        separator = "{"
        for key in sorted(value, key=_java_order) if sort_keys else value:
            parts.append(f"{separator}{_quote(key)}:")
            _write(value[key], parts, sort_keys)
            separator = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for item in value:
            parts.append(separator)
            _write(item, parts, sort_keys)
            separator = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(_literal(value))


def _java_order(key: str) -> bytes:
    """A sort key in Java's order: by UTF-16 units, in which emoji come before some letters."""
    return key.encode("utf-16-be", "surrogatepass")


def _literal(value: float | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.spelling if isinstance(value, SpelledNumber) else repr(value)


def _quote(text: str) -> str:
    quoted = encode_basestring(text)
    # Java writes the digits of escapes in upper case; the ids of equal schemas must not depend on the writer.
    return _ESCAPED.sub(_capital_escape, quoted) if "\\u" in quoted else quoted


def _capital_escape(match: re.Match[str]) -> str:
    escape = match.group(1)
    return f"\\u{escape[1:].upper()}" if len(escape) > 1 else match.group(0)


def _check_size(value: JsonValue, limits: Limits) -> None:
    """Count values level by level, so that no text can exhaust the stack of recursive code that follows."""
    elements = 1
    level: list[Any] = [value]
    for _ in range(limits.max_depth):
        if not level:
            return
        children: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                children.extend(container.values())
            elif isinstance(container, list):
                children.extend(container)
        elements += len(children)
        if elements > limits.max_elements:
            raise InvalidSchema(f"more than {limits.max_elements} values")
        level = children
    if any(isinstance(leaf, dict | list) for leaf in level):
        raise InvalidSchema(f"nested deeper than {limits.max_depth} levels")


def _distinct_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:100]!r} appears twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct_keys, parse_float=SpelledNumber, parse_constant=_refuse_constant
)
_LENIENT_DECODER = json.JSONDecoder(parse_float=SpelledNumber, parse_constant=_refuse_constant)
