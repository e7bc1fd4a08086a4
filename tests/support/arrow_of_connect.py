"""Connect's schemas and values as columns, written down once more for tests."""

from typing import Any

import pyarrow as pa

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.logical import scale_of

_PLAIN = {
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
_LOGICAL = {DATE_NAME: pa.date32(), TIME_NAME: pa.time32("ms"), TIMESTAMP_NAME: pa.timestamp("us", "UTC")}


def arrow_type(schema: Schema) -> pa.DataType:
    """The column's type."""
    if schema.name == DECIMAL_NAME:
        return pa.decimal128(int(schema.parameters.get("connect.decimal.precision", "38")), scale_of(schema))
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    match schema.type:
        case Type.STRUCT:
            return pa.struct([(field.name, arrow_type(field.schema)) for field in schema.fields])
        case Type.ARRAY:
            return pa.list_(arrow_type(_known(schema.value_schema)))
        case Type.MAP:
            key, value = arrow_type(_known(schema.key_schema)), arrow_type(_known(schema.value_schema))
            return pa.map_(key, value) if pa.types.is_string(key) else pa.list_(pa.struct({"key": key, "value": value}))
        case _:
            return _PLAIN[schema.type]


def arrow_value(schema: Schema, value: Value) -> Any:
    """What `pyarrow.array` takes for a value."""
    if value is None:
        return None
    match schema.type:
        case Type.STRUCT:
            return {field.name: arrow_value(field.schema, value.get(field.name)) for field in schema.fields}
        case Type.ARRAY:
            return [arrow_value(_known(schema.value_schema), item) for item in value]
        case Type.MAP:
            keys, values = _known(schema.key_schema), _known(schema.value_schema)
            pairs = [(arrow_value(keys, key), arrow_value(values, item)) for key, item in value.items()]
            is_text = pa.types.is_string(arrow_type(keys))
            return pairs if is_text else [{"key": key, "value": item} for key, item in pairs]
        case _:
            return value


def _known(schema: Schema | None) -> Schema:
    assert schema is not None
    return schema
