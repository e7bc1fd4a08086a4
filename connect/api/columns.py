"""Connect schemas and values as Arrow columns, and columns as schemas; for connectors that write tables.

The types are those of `schema_registry.serdes.arrow`, so that a record has the same columns whether a converter read it
or a whole batch was decoded at once. Import this module only where Arrow is needed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute

from connect.api import data
from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import PRECISION
from schema_registry.serdes.arrow.types import (
    DATE,
    KEY,
    PLAIN,
    PRECISION_MAX,
    TIME,
    TIMESTAMP,
    VALUE,
    map_type,
)

_LOGICAL: Final = {data.DATE_NAME: DATE, data.TIME_NAME: TIME, data.TIMESTAMP_NAME: TIMESTAMP}
_MILLISECONDS: Final = pa.timestamp("ms", "UTC")
"""The precision of Connect's Timestamp."""
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
    (pa.types.is_timestamp, data.TIMESTAMP, _MILLISECONDS),
    (pa.types.is_date, data.DATE, DATE),
    (pa.types.is_time, data.TIME, TIME),
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
"""How to recognise a type, its schema, and the type that its values are cast to."""

Change = Callable[[Any], Any]


@lru_cache(maxsize=1000)
def arrow_type(schema: Schema, *, keeps_required: bool = False) -> pa.DataType:
    """The type of columns for values of a schema; all fields may be null unless `keeps_required`."""
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == data.DECIMAL_NAME:
        return _decimal_type(schema.parameters)
    match schema.type:
        case Type.ARRAY:
            return pa.list_(_field("item", _part(schema.value_schema), keeps_required=keeps_required))
        case Type.MAP:
            keys = arrow_type(_part(schema.key_schema), keeps_required=keeps_required)
            return map_type(keys, _field(VALUE, _part(schema.value_schema), keeps_required=keeps_required))
        case Type.STRUCT:
            return pa.struct([_field(f.name, f.schema, keeps_required=keeps_required) for f in schema.fields])
        case plain:
            return PLAIN[plain.value]


def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns for structs of a schema, required ones not nullable; DataError for anything but a struct."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"a table has columns: the value must be a struct, not {schema.type}")
    return pa.schema(list(arrow_type(schema, keeps_required=True)))


def array_of(schema: Schema, values: Sequence[Value]) -> pa.Array:
    """Values as a column; raises Arrow's errors if they do not fit."""
    change = value_change(schema)
    return pa.array(values if change is None else [change(value) for value in values], arrow_type(schema))


def value_change(schema: Schema) -> Change | None:
    """How a value is converted for Arrow, None if not at all: maps whose keys are not text become lists of entries."""
    match schema.type:
        case Type.STRUCT:
            changes = {f.name: step for f in schema.fields if (step := value_change(f.schema)) is not None}
            if not changes:
                return None
            return _unless_null(lambda v: {**v, **{name: step(v.get(name)) for name, step in changes.items()}})
        case Type.ARRAY:
            item = value_change(_part(schema.value_schema))
            return None if item is None else _unless_null(lambda value: [item(part) for part in value])
        case Type.MAP:
            return _map_change(_part(schema.key_schema), _part(schema.value_schema))
        case _:
            return None


def _map_change(keys: Schema, values: Schema) -> Change | None:
    change = value_change(values)
    is_map = pa.types.is_string(arrow_type(keys))
    if is_map and change is None:
        return None
    do = change or (lambda value: value)
    if is_map:
        return _unless_null(lambda value: {key: do(item) for key, item in value.items()})
    return _unless_null(lambda value: [{KEY: key, VALUE: do(item)} for key, item in value.items()])


def _unless_null(change: Change) -> Change:
    return lambda value: None if value is None else change(value)


def connect_schema(columns: pa.Schema, *, name: str | None = None) -> tuple[Schema, pa.Schema]:
    """The schema of rows of such columns, and the columns to cast them to first, so that values fit it."""
    pairs = [(column.name, *_schema_of(column.type, column.nullable)) for column in columns]
    schema = data.struct([Field(column, found) for column, found, _ in pairs], name=name)
    return schema, pa.schema([pa.field(column, wanted) for column, _, wanted in pairs])


def brought_to(columns: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows cast to these columns; times lose anything finer than milliseconds."""
    arrays = [
        compute.cast(array, options=compute.CastOptions(column.type, allow_time_truncate=True))
        for array, column in zip(rows.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _field(name: str, schema: Schema, *, keeps_required: bool) -> pa.Field:
    type_ = arrow_type(schema, keeps_required=keeps_required)
    return pa.field(name, type_, nullable=schema.optional or not keeps_required)


def _decimal_type(parameters: Mapping[str, str]) -> pa.DataType:
    try:
        precision = max(1, int(parameters.get(PRECISION, PRECISION_MAX)))
        scale = int(parameters.get("scale", "0"))
        return pa.decimal128(precision, scale) if precision <= PRECISION_MAX else pa.decimal256(precision, scale)
    except ValueError as error:
        raise DataError(f"a decimal with {dict(parameters)} has no counterpart in Arrow: {error}") from error


def _schema_of(arrow: pa.DataType, optional: bool) -> tuple[Schema, pa.DataType]:
    schema, wanted = _schema_and_type(arrow)
    return (schema.as_optional() if optional else schema), wanted


def _schema_and_type(arrow: pa.DataType) -> tuple[Schema, pa.DataType]:
    if pa.types.is_dictionary(arrow):
        return _schema_and_type(arrow.value_type)
    if pa.types.is_decimal(arrow):
        return data.decimal(arrow.scale), arrow
    if pa.types.is_map(arrow):
        keys, key_type = _schema_of(arrow.key_type, False)
        values, value_type = _schema_of(arrow.item_type, arrow.item_field.nullable)
        return data.mapping(keys, values), pa.map_(key_type, value_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        items, item_type = _schema_of(arrow.value_type, arrow.value_field.nullable)
        return data.array(items), pa.list_(item_type)
    if pa.types.is_struct(arrow):
        fields = [(field.name, *_schema_of(field.type, field.nullable)) for field in arrow]
        schema = data.struct([Field(name, found) for name, found, _ in fields])
        return schema, pa.struct([pa.field(name, wanted) for name, _, wanted in fields])
    for is_it, schema, wanted in _FROM_ARROW:
        if is_it(arrow):
            return schema, wanted
    raise DataError(f"a column of type {arrow} has no counterpart in Connect")


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("an array or a map without a schema of its items cannot be a column")
    return schema
