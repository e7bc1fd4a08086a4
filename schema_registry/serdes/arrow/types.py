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
"""What is stored in milliseconds has room in microseconds, which is what Spark's tables hold."""
PRECISION_MAX: Final = 38
"""Of decimals: the most that Spark and others read."""
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
"""By the names that Connect has for them."""
_LOGICAL: Final = {LogicalName.DATE: DATE, LogicalName.TIME: TIME, LogicalName.TIMESTAMP: TIMESTAMP}


class NoColumns(UnusableSchema):
    """No columns can be made by this schema here; whether its data is good is for others to say."""


def logical_type(logical: Logical) -> pa.DataType:
    """The type of a logical type; raises NoColumns for decimals that none holds."""
    if logical.name is LogicalName.DECIMAL:
        return decimal_type(logical.precision, logical.scale)
    return _LOGICAL[logical.name]


def decimal_type(precision: int | None, scale: int) -> pa.DataType:
    """The type of decimals; without a precision it is the largest. Raises NoColumns where there is none."""
    digits = PRECISION_MAX if precision is None else precision
    if not (0 < digits <= PRECISION_MAX and 0 <= scale <= digits):
        raise NoColumns(f"no column holds decimals with {digits} digits, {scale} of them after the point")
    return pa.decimal128(digits, scale)


def map_type(keys: pa.DataType, values: pa.DataType | pa.Field) -> pa.DataType:
    """The type of maps: only text can be a key everywhere, other maps are lists of what they hold."""
    if pa.types.is_string(keys):
        return pa.map_(keys, values)
    value = values.with_name(VALUE) if isinstance(values, pa.Field) else pa.field(VALUE, values)
    return pa.list_(pa.struct([pa.field(KEY, keys), value]))
