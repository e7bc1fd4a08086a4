"""Checks of plain Python values against the type that they should have.

Each returns the value, or raises InvalidData.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from schema_registry.serdes.errors import InvalidData

LIMITS: Final = {"int8": 1 << 7, "int16": 1 << 15, "int32": 1 << 31, "int64": 1 << 63}


def refuse(wanted: str, value: Any) -> NoReturn:
    """Refuse a value of another type."""
    raise InvalidData(f"Invalid type: expected {wanted}, not a value of type {type(value).__name__}")


def integer(kind: str) -> Callable[[Any], Any]:
    """Whole numbers within the range of their kind."""
    limit = LIMITS[kind]

    def check(value: Any) -> Any:
        if value.__class__ is not int:
            refuse(kind, value)
        if not -limit <= value < limit:
            raise InvalidData(f"{value} is out of the range of {kind}")
        return value

    return check


def number(value: Any) -> Any:
    """Numbers, whole ones too."""
    return value if value.__class__ is float or value.__class__ is int else refuse("a number", value)


def boolean(value: Any) -> Any:
    """Booleans."""
    return value if value.__class__ is bool else refuse("a boolean", value)


def text(value: Any) -> Any:
    """Text."""
    return value if isinstance(value, str) else refuse("text", value)


def binary(value: Any) -> bytes:
    """Bytes."""
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else refuse("bytes", value)


def sequence(value: Any) -> Sequence[Any]:
    """Lists, and tuples."""
    return value if isinstance(value, list | tuple) else refuse("an array", value)


def mapping(value: Any) -> dict[Any, Any]:
    """Dicts."""
    return value if isinstance(value, dict) else refuse("a map", value)


CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{kind: integer(kind) for kind in LIMITS},
    "float32": number,
    "float64": number,
    "boolean": boolean,
    "string": text,
    "bytes": binary,
}
"""By Connect's names of the types."""
