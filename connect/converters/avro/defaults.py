"""Defaults of fields, in Avro's JSON."""

from typing import Any

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import logical_of
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from schema_registry.formats.avro_types import Array, Map, Record, Union
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes.logical import from_stored, to_stored

Json = Any


def default_from_avro(type_: AvroType, schema: Schema, default: Json) -> Value:
    """The default of an Avro field or `connect.default` as a Connect value; None if it makes no sense."""
    try:
        return _from_json(type_, schema, default)
    except (AttributeError, DataError, KeyError, TypeError, ValueError):
        return None  # Confluent's converter ignores it, too.


def default_to_avro(schema: Schema, value: Value, config: AvroConfig) -> Json:
    """A Connect default as the JSON of an Avro default; raises DataError."""
    if value is None:
        return None
    logical = logical_of(schema)
    if logical is not None:
        value = to_stored(logical)(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1")
    match schema.type:
        case Type.ARRAY if schema.value_schema is not None:
            return [default_to_avro(schema.value_schema, item, config) for item in value]
        case Type.MAP if schema.key_schema is not None and schema.value_schema is not None:
            keys = [default_to_avro(schema.key_schema, key, config) for key in value]
            values = [default_to_avro(schema.value_schema, item, config) for item in value.values()]
            pairs = zip(keys, values, strict=True)
            return dict(pairs) if config.has_text_keys(schema) else [list(pair) for pair in pairs]
        case Type.STRUCT:
            parts = {config.scrub(f.name): default_to_avro(f.schema, value.get(f.name), config) for f in schema.fields}
            return next(iter(parts.values()), None) if names.is_union(schema) else parts
        case _:
            return value


def _from_json(type_: AvroType, schema: Schema, value: Json) -> Value:
    if value is None:
        return None
    match type_:
        case Union():
            branch = next(branch for branch in type_.branches if branch.kind != "null")
            if not names.is_union(schema):
                return _from_json(branch, schema, value)
            member = schema.fields[0]  # Defaults are of the first branch.
            return {member.name: _from_json(branch, member.schema, value)}
        case Record():
            parts = {field.name: field.type for field in type_.fields}
            return {f.name: _from_json(parts[f.name], f.schema, value.get(f.name)) for f in schema.fields}
        case Array(items=Record() as entry) if schema.key_schema is not None and schema.value_schema is not None:
            parts = {field.name: field.type for field in entry.fields}
            pairs = [(item[names.KEY], item[names.VALUE]) if isinstance(item, dict) else item for item in value]
            keys = [_from_json(parts[names.KEY], schema.key_schema, key) for key, _ in pairs]
            values = [_from_json(parts[names.VALUE], schema.value_schema, item) for _, item in pairs]
            return dict(zip(keys, values, strict=True))
        case Array() if schema.value_schema is not None:
            items = schema.value_schema
            return [_from_json(type_.items, items, item) for item in value]
        case Map() if schema.value_schema is not None:
            items = schema.value_schema
            return {key: _from_json(type_.values, items, item) for key, item in value.items()}
        case _:
            return _plain(schema, value)


def _plain(schema: Schema, value: Json) -> Value:
    wanted = _JSON_TYPES[schema.type]
    if isinstance(value, bool) is not (wanted is bool) or not isinstance(value, wanted):
        raise DataError(f"{value!r} is not a default of {schema.type}")
    if schema.type is Type.BYTES:
        value = value.encode("latin-1")
    elif schema.type in (Type.FLOAT32, Type.FLOAT64):
        value = float(value)
    logical = logical_of(schema)
    return value if logical is None else from_stored(logical)(value)


_JSON_TYPES: dict[Type, Any] = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: (int, float),
    Type.FLOAT64: (int, float),
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: str,
    Type.ARRAY: list,
    Type.MAP: (dict, list),
    Type.STRUCT: dict,
}
