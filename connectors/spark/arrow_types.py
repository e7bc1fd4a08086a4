"""Connect's schemas as types of Arrow that Spark's tables can hold, and values on their way into them."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type

_PRECISION_MAX: Final = 38
_PRECISION: Final = "connect.decimal.precision"
_CACHE_MAX: Final = 1000
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_LOGICAL: Final = {DATE_NAME: pa.date32(), TIMESTAMP_NAME: TIMESTAMP, TIME_NAME: pa.string()}
_PLAIN: Final = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_types: dict[Schema, pa.DataType] = {}

Change = Callable[[Any], Any]


def arrow_type(schema: Schema) -> pa.DataType:
    """The type of a column for values of a schema."""
    found = _types.get(schema)
    if found is None:
        if len(_types) >= _CACHE_MAX:
            _types.clear()
        found = _types[schema] = _arrow_type(schema)
    return found


def _arrow_type(schema: Schema) -> pa.DataType:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == DECIMAL_NAME:
        precision = int(schema.parameters.get(_PRECISION, _PRECISION_MAX))
        scale = int(schema.parameters.get("scale", 0))
        return pa.decimal128(max(1, min(precision, _PRECISION_MAX)), scale)
    if schema.type is Type.STRUCT:
        return pa.struct([pa.field(field.name, arrow_type(field.schema)) for field in schema.fields])
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return pa.list_(arrow_type(schema.value_schema))
    if schema.type is Type.MAP:
        return _map_type(schema)
    return _PLAIN[schema.type]


def _map_type(schema: Schema) -> pa.DataType:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key, value = arrow_type(schema.key_schema), arrow_type(schema.value_schema)
    if key == pa.string():
        return pa.map_(key, value)
    # Only text can be a key of a map everywhere; other maps are lists of what they hold.
    return pa.list_(pa.struct([pa.field("key", key), pa.field("value", value)]))


def change_of(schema: Schema) -> Change | None:
    """What must be done to a value before Arrow can take it; None when nothing must."""
    if schema.name == TIME_NAME:
        return _optional(lambda value: value.isoformat())
    if schema.type is Type.STRUCT:
        return _struct_change(schema)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return _list_change(change_of(schema.value_schema))
    if schema.type is Type.MAP:
        return _map_change(schema)
    return None


def _list_change(of_item: Change | None) -> Change | None:
    return None if of_item is None else _optional(lambda values: [of_item(value) for value in values])


def _struct_change(schema: Schema) -> Change | None:
    changes = {field.name: step for field in schema.fields if (step := change_of(field.schema)) is not None}
    if not changes:
        return None

    def change(value: Any) -> Any:
        changed = dict(value)
        for name, step in changes.items():
            if changed.get(name) is not None:
                changed[name] = step(changed[name])
        return changed

    return _optional(change)


def _map_change(schema: Schema) -> Change:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    of_key, of_value = change_of(schema.key_schema) or _same, change_of(schema.value_schema) or _same
    if arrow_type(schema.key_schema) == pa.string():
        return _optional(lambda value: [(of_key(key), of_value(item)) for key, item in value.items()])
    return _optional(lambda value: [{"key": of_key(key), "value": of_value(item)} for key, item in value.items()])


def _optional(change: Change) -> Change:
    return lambda value: None if value is None else change(value)


def _same(value: Any) -> Any:
    return value
