"""Data of Avro as values of Connect: one function per schema, made when its first record is met."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.defaults import from_view
from connect.converters.avro.quick_reading import quick_reader
from connect.converters.stored import from_stored
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Union
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.errors import InvalidData

Read = Callable[[bytes, int], Value]
"""Reads the value that begins there."""
Change = Callable[[Any], Value]

_KEPT: Final = frozenset({("int", "date"), ("long", "timestamp-millis")})
"""Logical types that the library reads. Decimals it would round to their precision, and it refuses some scales; of a
time before midnight or after the day it would make another one."""


def reading(root: AvroType, schema: Schema | None, config: AvroConfig) -> Read:
    """What reads data of an Avro schema as values of its Connect schema; raises InvalidData or DataError."""
    if schema is None:
        return _anything(root)
    if _has_choice(root, config):
        return _by_view(root, schema, config)
    codec = AvroCodec(_plain_schema(root))
    change = _change(root, schema)
    decode = codec.decode if change is None else _changed(codec.decode, change)
    return quick_reader(root, schema, decode) or decode


def anything_of(value: Value) -> dict[str, Any]:
    """A value without a schema as a record of Avro that can hold any."""
    match value:
        case None:
            return {}
        case bool():
            return {"boolean": value}
        case int():
            return {"long": value}
        case float():
            return {"double": value}
        case str():
            return {"string": value}
        case bytes() | bytearray() | memoryview():
            return {"bytes": bytes(value)}
        case list() | tuple():
            return {"array": [anything_of(item) for item in value]}
        case dict():
            entries = [{names.KEY: anything_of(k), names.VALUE: anything_of(v)} for k, v in value.items()]
            return {"map": entries}
        case _:
            raise DataError(f"a value of type {type(value).__name__} cannot be written without a schema")


def _of_anything(record: Mapping[str, Any]) -> Value:
    for kind, value in record.items():
        if value is not None:
            if kind == "array":
                return [_of_anything(item) for item in value]
            if kind == "map":
                return _mapping([(_of_anything(item[names.KEY]), _of_anything(item[names.VALUE])) for item in value])
            return value
    return None


def _anything(root: AvroType) -> Read:
    codec = AvroCodec(AvroSchema(root, {}))
    return lambda data, start: _of_anything(codec.decode(data, start))


def _by_view(root: AvroType, schema: Schema, config: AvroConfig) -> Read:
    """Through Avro's JSON encoding, which alone tells the branches of a union."""
    codec = AvroCodec(AvroSchema(root, {}))
    change = from_view(root, schema, config)

    def read(data: bytes, start: int) -> Value:
        try:
            return change(codec.decode_json(data, start))
        except TypeError as error:
            raise InvalidData(f"the keys of a map cannot be told: {error}") from error

    return read


def _changed(decode: Read, change: Change) -> Read:
    return lambda data, start: change(decode(data, start))


def _has_choice(root: AvroType, config: AvroConfig) -> bool:
    """Whether there is a union of several types, or one that is not flattened."""
    match root:
        case Union():
            others = [branch for branch in root.branches if branch.kind != "null"]
            is_kept = len(root.branches) == 1 and not config.flatten_singleton_unions
            return len(others) != 1 or is_kept or _has_choice(others[0], config)
        case Record():
            return any(_has_choice(field.type, config) for field in root.fields)
        case Array():
            return _has_choice(root.items, config)
        case Map():
            return _has_choice(root.values, config)
        case _:
            return False


def _plain_schema(root: AvroType) -> AvroSchema:
    """The schema without those logical types that Connect does not know: their data is read as it is stored."""
    return AvroSchema(_Plain().of(root), {})


class _Plain:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def of(self, type_: AvroType) -> AvroType:
        match type_:
            case Primitive():
                return type_ if _is_kept(type_) else Primitive(type_.kind)
            case Array():
                return Array(self.of(type_.items))
            case Map():
                return Map(self.of(type_.values))
            case Union():
                return Union([self.of(branch) for branch in type_.branches])
            case Record() | Enum() | Fixed():
                if type_.name.full not in self._named:
                    self._named[type_.name.full] = self._copy(type_)
                return self._named[type_.name.full]

    def _copy(self, type_: Record | Enum | Fixed) -> AvroType:
        if isinstance(type_, Record):
            fields = [msgspec.structs.replace(field, type=self.of(field.type), properties={}) for field in type_.fields]
            return Record(name=type_.name, fields=fields)
        return type_ if isinstance(type_, Enum) or _is_kept(type_) else msgspec.structs.replace(type_, properties={})


def _is_kept(type_: Primitive | Fixed) -> bool:
    """Whether the library makes of the data what Connect has for it."""
    return (type_.kind, type_.properties.get("logicalType")) in _KEPT


def _change(type_: AvroType, schema: Schema) -> Change | None:
    """What is still to be done with a value of the library; None for nothing."""
    match type_:
        case Union():
            inner = next(branch for branch in type_.branches if branch.kind != "null")
            change = _change(inner, schema)
            return None if change is None else _unless_null(change)
        case Record():
            return _record_change(type_, schema)
        case Array() if schema.type is Type.MAP:
            return _entries_change(type_, schema)
        case Array():
            return _array_change(_change(type_.items, _values(schema)))
        case Map():
            return _map_change(_change(type_.values, _values(schema)))
        case Primitive() | Fixed():
            return None if _is_kept(type_) else from_stored(schema)
        case Enum():
            return None


def _array_change(item: Change | None) -> Change | None:
    return None if item is None else lambda value: [item(part) for part in value]


def _map_change(item: Change | None) -> Change | None:
    return None if item is None else lambda value: {key: item(part) for key, part in value.items()}


def _record_change(record: Record, schema: Schema) -> Change | None:
    changes = [(field.name, _change(field.type, schema.by_name[field.name])) for field in record.fields]
    needed = [(name, change) for name, change in changes if change is not None]
    if not needed:
        return None

    def change_fields(value: dict[str, Any]) -> Value:
        for name, change in needed:
            value[name] = change(value[name])
        return value

    return change_fields


def _entries_change(type_: Array, schema: Schema) -> Change:
    assert isinstance(type_.items, Record)
    assert schema.key_schema is not None
    parts = {field.name: field.type for field in type_.items.fields}
    key = _change(parts[names.KEY], schema.key_schema) or _same
    value = _change(parts[names.VALUE], _values(schema)) or _same
    return lambda entries: _mapping([(key(entry[names.KEY]), value(entry[names.VALUE])) for entry in entries])


def _mapping(pairs: list[tuple[Value, Value]]) -> dict[Value, Value]:
    try:
        return dict(pairs)
    except TypeError as error:
        raise DataError("the keys of a map must not be structs, lists or maps themselves") from error


def _unless_null(change: Change) -> Change:
    return lambda value: None if value is None else change(value)


def _same(value: Value) -> Value:
    return value


def _values(schema: Schema) -> Schema:
    assert schema.value_schema is not None
    return schema.value_schema
