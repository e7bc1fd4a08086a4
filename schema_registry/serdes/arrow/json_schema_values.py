"""Values of JSON as Connect's JSON Schema converter sees them: each function makes one of JSON that is not null."""

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, Final, NoReturn

import msgspec
import pyarrow as pa

from schema_registry.serdes.errors import InvalidData

_JSON_NAMES: Final = {type(None): "NULL", bool: "BOOLEAN", str: "STRING", list: "ARRAY", dict: "OBJECT"}

Change = Callable[[Any], Any]


def integer_type(type_: pa.DataType) -> Any:
    """What msgspec reads integers of a type as."""
    limit = 1 << (type_.bit_width - 1)
    return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]


def integer(type_: pa.DataType) -> Change:
    """Integers of a type; numbers without a fraction are such, too."""
    limit = 1 << (type_.bit_width - 1)

    def change(value: Any) -> int:
        if value.__class__ is not int:
            if value.__class__ is not float or not -limit <= value < limit or value != int(value):
                unlike(f"Invalid type for {type_}", value)
            value = int(value)
        if not -limit <= value < limit:
            raise InvalidData(f"{value} is out of the range of {type_}")
        return int(value)

    return change


def floating(value: Any) -> float:
    """Numbers."""
    if value.__class__ is float:
        return float(value)
    if value.__class__ is not int:
        unlike("Invalid type for a number", value)
    try:
        return float(value)
    except OverflowError:
        raise InvalidData("the number is too large for a double") from None


def boolean(value: Any) -> Any:
    """Booleans."""
    return value if value.__class__ is bool else unlike("Invalid type for BOOLEAN", value)


def text(value: Any) -> Any:
    """Texts."""
    return value if value.__class__ is str else unlike("Invalid type for STRING", value)


def symbol(value: Any) -> str:
    """Symbols of an enum may be of any type; Connect knows them as text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def content(value: Any) -> bytes:
    """Bytes, which JSON has as base64."""
    if value.__class__ is not str:
        unlike("Invalid bytes field", value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidData(f"Invalid bytes field: {error}") from error


def unlike(problem: str, value: Any) -> NoReturn:
    """Refuse a value."""
    raise InvalidData(f"{problem}, but found {_JSON_NAMES.get(type(value), 'NUMBER')}")
