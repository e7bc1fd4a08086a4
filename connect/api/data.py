"""Data between sources and sinks: a value and, if there is one, its schema.

Values are plain Python: a STRUCT is a dict by field name, a MAP a dict, an ARRAY a list. The schema beside a value says
what it means, never the value itself, so records with and without a schema are handled alike.

| schema | Python |
|---|---|
| INT8 INT16 INT32 INT64 | int |
| FLOAT32 FLOAT64 | float |
| BOOLEAN STRING BYTES | bool, str, bytes |
| ARRAY, MAP, STRUCT | list, dict, dict with the names of fields as keys |
| Decimal (on BYTES) | decimal.Decimal |
| Date, Time (on INT32) | datetime.date, datetime.time |
| Timestamp (on INT64) | datetime.datetime in UTC |
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Self

from typing_extensions import override

from connect.api.errors import DataError

Value = Any
"""A value as in the table above; its schema says its type."""


class Type(StrEnum):
    """The type of a value."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    @property
    def is_primitive(self) -> bool:
        """Whether a value of this type holds no other values."""
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a STRUCT."""

    name: str
    schema: "Schema"


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The schema of values. Immutable; equal schemas are interchangeable, and hashing one is cheap."""

    type: Type
    optional: bool = field(default=False, kw_only=True)
    default: Value = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    """The full name of a STRUCT; the logical type of other types, such as DATE."""
    version: int | None = field(default=None, kw_only=True)
    doc: str | None = field(default=None, kw_only=True)
    parameters: Mapping[str, str] = field(default_factory=lambda: _NO_PARAMETERS, kw_only=True)
    fields: tuple[Field, ...] = field(default=(), kw_only=True)
    key_schema: "Schema | None" = field(default=None, kw_only=True)
    """Of the keys of a MAP."""
    value_schema: "Schema | None" = field(default=None, kw_only=True)
    """Of the items of an ARRAY and the values of a MAP."""
    by_name: Mapping[str, "Schema"] = field(init=False, repr=False)
    """The schemas of a STRUCT's fields."""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {item.name: item.schema for item in self.fields})
        if len(self.by_name) != len(self.fields):
            raise DataError(f"a struct cannot have two fields of the same name: {[item.name for item in self.fields]}")
        parts = (self.type, self.optional, self.name, self.version, self.doc, frozenset(self.parameters.items()))
        object.__setattr__(self, "_hash", hash((*parts, self.fields, self.key_schema, self.value_schema)))

    @override
    def __hash__(self) -> int:
        return self._hash

    @override
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema) or self._hash != other._hash:
            return False
        return self._parts() == other._parts()

    def _parts(self) -> tuple[object, ...]:
        own = (self.type, self.optional, self.default, self.name, self.version, self.doc, dict(self.parameters))
        return (*own, self.fields, self.key_schema, self.value_schema)

    def but(self, **changes: Any) -> Self:
        """A copy with some attributes changed."""
        return replace(self, **changes)

    def as_optional(self) -> Self:
        """The same, but null is allowed."""
        return self if self.optional else replace(self, optional=True)

    def field(self, name: str) -> "Schema | None":
        """The schema of a field; None if the STRUCT has no such field."""
        return self.by_name.get(name)


DECIMAL_NAME: Final = "org.apache.kafka.connect.data.Decimal"
DATE_NAME: Final = "org.apache.kafka.connect.data.Date"
TIME_NAME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME: Final = "org.apache.kafka.connect.data.Timestamp"

INT8: Final = Schema(Type.INT8)
INT16: Final = Schema(Type.INT16)
INT32: Final = Schema(Type.INT32)
INT64: Final = Schema(Type.INT64)
FLOAT32: Final = Schema(Type.FLOAT32)
FLOAT64: Final = Schema(Type.FLOAT64)
BOOLEAN: Final = Schema(Type.BOOLEAN)
STRING: Final = Schema(Type.STRING)
BYTES: Final = Schema(Type.BYTES)
OPTIONAL_INT8: Final = INT8.as_optional()
OPTIONAL_INT16: Final = INT16.as_optional()
OPTIONAL_INT32: Final = INT32.as_optional()
OPTIONAL_INT64: Final = INT64.as_optional()
OPTIONAL_FLOAT32: Final = FLOAT32.as_optional()
OPTIONAL_FLOAT64: Final = FLOAT64.as_optional()
OPTIONAL_BOOLEAN: Final = BOOLEAN.as_optional()
OPTIONAL_STRING: Final = STRING.as_optional()
OPTIONAL_BYTES: Final = BYTES.as_optional()
DATE: Final = Schema(Type.INT32, name=DATE_NAME, version=1)
TIME: Final = Schema(Type.INT32, name=TIME_NAME, version=1)
TIMESTAMP: Final = Schema(Type.INT64, name=TIMESTAMP_NAME, version=1)


def decimal(scale: int, *, optional: bool = False) -> Schema:
    """The schema of decimals with this many digits after the point."""
    return Schema(Type.BYTES, name=DECIMAL_NAME, version=1, parameters={"scale": str(scale)}, optional=optional)


def array(items: Schema, *, optional: bool = False) -> Schema:
    """The schema of lists of such items."""
    return Schema(Type.ARRAY, value_schema=items, optional=optional)


def mapping(keys: Schema, values: Schema, *, optional: bool = False) -> Schema:
    """The schema of dicts with such keys and values."""
    return Schema(Type.MAP, key_schema=keys, value_schema=values, optional=optional)


def struct(
    fields: Mapping[str, Schema] | Iterable[Field], *, name: str | None = None, optional: bool = False
) -> Schema:
    """The schema of dicts with these fields, in this order."""
    pairs = (Field(*item) for item in fields.items()) if isinstance(fields, Mapping) else fields
    return Schema(Type.STRUCT, fields=tuple(pairs), name=name, optional=optional)
