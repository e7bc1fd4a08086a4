"""The Arrow types of values: one answer for every type and logical type, whichever format or connector asks.

The table that users see is in the package's README.
"""

from typing import Final

import pyarrow as pa

from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import Logical, LogicalName

DATE: Final = pa.date32()
TIME: Final = pa.time32("ms")
TIMESTAMP: Final = pa.timestamp("us", "UTC")
"""Spark's tables hold microseconds, which have room for the milliseconds that are stored."""
PRECISION_MAX: Final = 38
"""The most digits of a decimal that Spark and others read."""
KEY, VALUE = "key", "value"

PLAIN: Final = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""By Connect's names of the types."""
_LOGICAL: Final = {LogicalName.DATE: DATE, LogicalName.TIME: TIME, LogicalName.TIMESTAMP: TIMESTAMP}


class NoColumns(UnusableSchema):
    """Data of this schema has no columns here, though it may well be valid."""


def logical_type(logical: Logical) -> pa.DataType:
    """The type of a logical type; raises NoColumns for decimals that have none."""
    if logical.name is LogicalName.DECIMAL:
        digits = PRECISION_MAX if logical.precision is None else logical.precision
        if not (0 < digits <= PRECISION_MAX and 0 <= logical.scale <= digits):
            raise NoColumns(f"no column holds decimals with {digits} digits, {logical.scale} of them after the point")
        return pa.decimal128(digits, logical.scale)
    return _LOGICAL[logical.name]


def map_type(keys: pa.DataType, values: pa.DataType | pa.Field) -> pa.DataType:
    """The type of maps: only text can be a key everywhere, other maps are lists of their entries."""
    if pa.types.is_nested(keys):
        raise NoColumns("the keys of a map must not be structs, lists or maps themselves")
    if pa.types.is_string(keys):
        return pa.map_(keys, values)
    value = values.with_name(VALUE) if isinstance(values, pa.Field) else pa.field(VALUE, values)
    return pa.list_(pa.struct([pa.field(KEY, keys), value]))
