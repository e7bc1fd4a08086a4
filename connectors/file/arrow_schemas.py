"""Schemas of Arrow (and so of Parquet) and of Connect, each as the other."""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
from pyarrow import compute

from connect.api import data
from connect.api.data import Field, Schema, Type
from connect.api.errors import DataError

DECIMAL_PRECISION: Final = "38"
"""The most that Spark and others read; the parameter `connect.decimal.precision` of a schema asks for another."""

_TO_ARROW: Final[dict[Type, pa.DataType]] = {
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
_LOGICAL_TO_ARROW: Final[dict[str, Callable[[Schema], pa.DataType]]] = {
    data.DECIMAL_NAME: lambda schema: _decimal(schema.parameters),
    data.DATE_NAME: lambda _: pa.date32(),
    data.TIME_NAME: lambda _: pa.time32("ms"),
    data.TIMESTAMP_NAME: lambda _: pa.timestamp("ms", "UTC"),
}
_FROM_ARROW: Final[tuple[tuple[Callable[[pa.DataType], bool], Schema, pa.DataType], ...]] = (
    (pa.types.is_int8, data.INT8, pa.int8()),
    (pa.types.is_int16, data.INT16, pa.int16()),
    (pa.types.is_uint8, data.INT16, pa.int16()),
    (pa.types.is_int32, data.INT32, pa.int32()),
    (pa.types.is_uint16, data.INT32, pa.int32()),
    (pa.types.is_integer, data.INT64, pa.int64()),
    (pa.types.is_float64, data.FLOAT64, pa.float64()),
    (pa.types.is_floating, data.FLOAT32, pa.float32()),
    (pa.types.is_boolean, data.BOOLEAN, pa.bool_()),
    (pa.types.is_timestamp, data.TIMESTAMP, pa.timestamp("ms", "UTC")),
    (pa.types.is_date, data.DATE, pa.date32()),
    (pa.types.is_time, data.TIME, pa.time32("ms")),
    (pa.types.is_duration, data.INT64, pa.int64()),
    (pa.types.is_string, data.STRING, pa.string()),
    (pa.types.is_large_string, data.STRING, pa.string()),
    (pa.types.is_string_view, data.STRING, pa.string()),
    (pa.types.is_null, data.STRING, pa.string()),
    (pa.types.is_binary, data.BYTES, pa.binary()),
    (pa.types.is_large_binary, data.BYTES, pa.binary()),
    (pa.types.is_binary_view, data.BYTES, pa.binary()),
    (pa.types.is_fixed_size_binary, data.BYTES, pa.binary()),
)
"""How to know a type, which schema it has, and the type its values are brought to."""


def arrow_type(schema: Schema) -> pa.DataType:
    """The type of Arrow for values of a schema."""
    if schema.name in _LOGICAL_TO_ARROW:
        return _LOGICAL_TO_ARROW[schema.name](schema)
    match schema.type:
        case Type.ARRAY:
            return pa.list_(arrow_field("item", _inner(schema.value_schema)))
        case Type.MAP:
            return pa.map_(arrow_type(_inner(schema.key_schema)), arrow_field("value", _inner(schema.value_schema)))
        case Type.STRUCT:
            return pa.struct([arrow_field(field.name, field.schema) for field in schema.fields])
        case plain:
            return _TO_ARROW[plain]


def arrow_field(name: str, schema: Schema) -> pa.Field:
    """A column for values of a schema."""
    return pa.field(name, arrow_type(schema), nullable=schema.optional)


def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns for structs of a schema; DataError for anything but a struct."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"a table has columns: the value must be a struct, not {schema.type}")
    return pa.schema([arrow_field(field.name, field.schema) for field in schema.fields])


def connect_schema(columns: pa.Schema, *, name: str | None = None) -> tuple[Schema, pa.Schema]:
    """The schema of rows of such columns, and the columns to bring them to first, so that values fit it."""
    pairs = [(column.name, *_read(column.type, column.nullable)) for column in columns]
    schema = data.struct([Field(column, found) for column, found, _ in pairs], name=name)
    return schema, pa.schema([pa.field(column, wanted) for column, _, wanted in pairs])


def brought_to(columns: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with their values as these columns have them; times lose what is finer than milliseconds."""
    arrays = [
        compute.cast(array, options=compute.CastOptions(column.type, allow_time_truncate=True))
        for array, column in zip(rows.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _read(arrow: pa.DataType, optional: bool) -> tuple[Schema, pa.DataType]:
    schema, wanted = _read_nested(arrow)
    return (schema.as_optional() if optional else schema), wanted


def _read_nested(arrow: pa.DataType) -> tuple[Schema, pa.DataType]:
    if pa.types.is_dictionary(arrow):
        return _read_nested(arrow.value_type)
    if pa.types.is_decimal(arrow):
        return data.decimal(arrow.scale), arrow
    if pa.types.is_map(arrow):
        keys, key_type = _read(arrow.key_type, False)
        values, value_type = _read(arrow.item_type, arrow.item_field.nullable)
        return data.mapping(keys, values), pa.map_(key_type, value_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        items, item_type = _read(arrow.value_type, arrow.value_field.nullable)
        return data.array(items), pa.list_(item_type)
    if pa.types.is_struct(arrow):
        fields = [(field.name, *_read(field.type, field.nullable)) for field in arrow]
        schema = data.struct([Field(name, found) for name, found, _ in fields])
        return schema, pa.struct([pa.field(name, wanted) for name, _, wanted in fields])
    return _read_plain(arrow)


def _read_plain(arrow: pa.DataType) -> tuple[Schema, pa.DataType]:
    for is_it, schema, wanted in _FROM_ARROW:
        if is_it(arrow):
            return schema, wanted
    raise DataError(f"a column of type {arrow} has no counterpart in Connect")


def _decimal(parameters: Mapping[str, str]) -> pa.DataType:
    try:
        precision = int(parameters.get("connect.decimal.precision", DECIMAL_PRECISION))
        scale = int(parameters.get("scale", "0"))
        return (
            pa.decimal128(precision, scale) if precision <= int(DECIMAL_PRECISION) else pa.decimal256(precision, scale)
        )
    except ValueError as error:
        raise DataError(f"a decimal with {dict(parameters)} has no counterpart in Arrow: {error}") from error


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("an array or a map without a schema of its items cannot be a column")
    return schema
