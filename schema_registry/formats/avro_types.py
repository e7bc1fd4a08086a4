"""Avro's types as data. Nodes compare by identity, so that recursive types can be walked safely."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, or a list or dict of these."""
Properties: TypeAlias = Mapping[str, JsonValue]
"""The attributes of a schema beyond those that Avro defines, including logical types, in their order."""

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
TYPE_NAMES: Final = PRIMITIVES | {"record", "error", "enum", "array", "map", "union", "fixed"}


class Name(msgspec.Struct, frozen=True):
    """A full name: a simple name and a namespace."""

    simple: str
    namespace: str | None = None

    @property
    def full(self) -> str:
        """Both parts, separated by a dot."""
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple


class Primitive(msgspec.Struct, eq=False):
    """A primitive type."""

    kind: str
    properties: Properties = {}


class Array(msgspec.Struct, eq=False):
    """A list of values of one type."""

    items: "Type"
    properties: Properties = {}
    kind: Literal["array"] = "array"


class Map(msgspec.Struct, eq=False):
    """Values of one type under text keys."""

    values: "Type"
    properties: Properties = {}
    kind: Literal["map"] = "map"


class Union(msgspec.Struct, eq=False):
    """One of several types."""

    branches: "Sequence[Type]"
    kind: Literal["union"] = "union"


class Fixed(msgspec.Struct, eq=False, kw_only=True):
    """A fixed number of bytes."""

    name: Name
    size: int
    doc: str | None = None
    aliases: Sequence[Name] = ()
    properties: Properties = {}
    kind: Literal["fixed"] = "fixed"


class Enum(msgspec.Struct, eq=False, kw_only=True):
    """One of several symbols."""

    name: Name
    symbols: Sequence[str]
    default: str | None = None
    doc: str | None = None
    aliases: Sequence[Name] = ()
    properties: Properties = {}
    kind: Literal["enum"] = "enum"


class Field(msgspec.Struct, eq=False, kw_only=True):
    """One field of a record."""

    name: str
    type: "Type"
    default: JsonValue | msgspec.UnsetType = msgspec.UNSET
    """The value for readers if the writer had no such field; `UNSET` if there is none, since null is a value."""
    doc: str | None = None
    order: str = "ascending"
    aliases: Sequence[str] = ()
    properties: Properties = {}

    @property
    def has_default(self) -> bool:
        """Whether the field has a default."""
        return self.default is not msgspec.UNSET


class Record(msgspec.Struct, eq=False, kw_only=True):
    """Named fields in order; they are added after the record's name is known, because their types may use it."""

    name: Name
    fields: list[Field] = []
    is_error: bool = False
    doc: str | None = None
    aliases: Sequence[Name] = ()
    properties: Properties = {}
    kind: Literal["record"] = "record"


Named: TypeAlias = Record | Enum | Fixed
Type: TypeAlias = Primitive | Array | Map | Union | Named


def label(type_: Type) -> str:
    """The name that distinguishes a branch of a union: the full name of a named type, otherwise the kind."""
    return type_.name.full if isinstance(type_, Record | Enum | Fixed) else type_.kind
