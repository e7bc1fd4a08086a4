"""Types of columns."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from streams.sql.language.tree.node import Identifier, Node


class Primitive(StrEnum):
    """The types without parameters."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    TIME = "TIME"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"


PRIMITIVES: Final = {**{item.value: item for item in Primitive}, "INT": Primitive.INTEGER, "VARCHAR": Primitive.STRING}
"""The types by all names they have."""
TYPE_NAMES: Final = (*PRIMITIVES, "DECIMAL", "ARRAY", "MAP", "STRUCT")


@dataclass(frozen=True, slots=True)
class PrimitiveType(Node):
    """A type without parameters."""

    name: Primitive


@dataclass(frozen=True, slots=True)
class DecimalType(Node):
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ArrayType(Node):
    """ARRAY<element>."""

    element: "Type"


@dataclass(frozen=True, slots=True)
class MapType(Node):
    """MAP<key, value>."""

    key: "Type"
    value: "Type"


@dataclass(frozen=True, slots=True)
class FieldType(Node):
    """One field of a STRUCT."""

    name: Identifier
    type: "Type"


@dataclass(frozen=True, slots=True)
class StructType(Node):
    """STRUCT<name type, ...>."""

    fields: tuple[FieldType, ...]


@dataclass(frozen=True, slots=True)
class CustomType(Node):
    """A type that CREATE TYPE has given this name."""

    name: Identifier


Type: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType | CustomType
