"""Columns of logical types, and the numbers and two's complements that are stored for them; whole columns at once."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow.binary import Bytes, Content, Doubt, Rows, content_of
from schema_registry.serdes.arrow.types import DATE, TIME, TIMESTAMP
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import MILLISECONDS_PER_DAY, SCALE_MAX, LogicalName

Numbers: TypeAlias = npt.NDArray[np.int64]

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of the years 1 to 9999."""
_FIRST_MS: Final = _FIRST_DAY * MILLISECONDS_PER_DAY
_LAST_MS: Final = (_LAST_DAY + 1) * MILLISECONDS_PER_DAY - 1
_PER_MS: Final = {"us": 1000, "ns": 1_000_000}
_WIDTH: Final = 16
"""Bytes of a decimal."""


def within(array: pa.Array, least: int, most: int) -> pa.Array:
    """The same array of numbers, all of which must be in a range; raises Doubt."""
    found = pc.min_max(array)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < least or high > most):
        raise Doubt
    return array


def valid_bits(array: pa.Array) -> pa.Buffer | None:
    """Which values are not null, as bits; None if all are."""
    return pc.is_valid(array).buffers()[1] if array.null_count else None


FROM_NUMBERS: Final[Mapping[LogicalName, Callable[[pa.Array], pa.Array]]] = {
    LogicalName.DATE: lambda days: within(days, _FIRST_DAY, _LAST_DAY).cast(pa.int32()).view(DATE),
    LogicalName.TIME: lambda ms: within(ms, 0, MILLISECONDS_PER_DAY - 1).cast(pa.int32()).view(TIME),
    LogicalName.TIMESTAMP: lambda ms: pc.multiply(within(ms, _FIRST_MS, _LAST_MS), 1000).view(TIMESTAMP),
}
"""Arrays of what is stored for logical types, in 64 bits, as their columns; raise Doubt."""


def decimals(digits: Bytes, type_: pa.DataType, valid: pa.Buffer | None) -> pa.Array:
    """Rows of equally many bytes, big end first, as decimals of 128 bits; raises Doubt if one is too large."""
    count, width = digits.shape
    made = np.empty((count, _WIDTH), dtype=np.uint8)
    made[:] = np.where(digits[:, :1] >= 0x80, 0xFF, 0)
    kept = min(width, _WIDTH)
    made[:, :kept] = digits[:, ::-1][:, :kept]
    if width > _WIDTH and not (digits[:, : width - _WIDTH] == np.where(made[:, -1:] >= 0x80, 0xFF, 0)).all():
        raise Doubt  # Bytes before those that are kept must only repeat the sign.
    array = pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(made)])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise Doubt from None
    return array


def aligned(data: Bytes, lengths: Rows, *, width: int = _WIDTH) -> Bytes:
    """Numbers of different lengths, one after the other, as rows of the same length; raises Doubt if one is longer."""
    if len(lengths) and lengths.max() > width:
        raise Doubt
    behind = np.cumsum(lengths)
    # The last byte of each number goes to the last column, and the sign fills the columns before the first.
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(data)) - np.repeat(behind, lengths) + width
    signs = np.zeros(len(lengths), dtype=np.uint8)
    is_there = lengths > 0
    signs[is_there] = np.where(data[(behind - lengths)[is_there]] >= 0x80, 0xFF, 0)
    made = np.repeat(signs[:, None], width, axis=1)
    made[rows, columns] = data
    return made


# --- columns without nulls as what is stored -------------------------------------------------------------------------


def numbers(array: pa.Array) -> Numbers:
    """Whole numbers as 64 bits; raises InvalidData for those that do not fit."""
    try:
        found: Numbers = array.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise InvalidData(f"a number does not fit: {error}") from None
    return found


def days(array: pa.Array) -> Numbers:
    """Days since 1970 of dates."""
    return numbers(_as(DATE, array).view(pa.int32()))


def milliseconds_of_day(array: pa.Array) -> Numbers:
    """Milliseconds since midnight of times of day; anything finer is dropped."""
    wide = array if pa.types.is_time64(array.type) else _as(pa.time64("us"), array)
    return numbers(wide.view(pa.int64())) // _PER_MS.get(wide.type.unit, 1)


def milliseconds(array: pa.Array) -> Numbers:
    """Milliseconds since 1970 of timestamps; anything finer is dropped."""
    if not pa.types.is_timestamp(array.type) or array.type.tz is None:
        raise InvalidData(f"expected timestamps in UTC, not {array.type}")
    found = array if array.type.unit in _PER_MS else _as(pa.timestamp("ms", array.type.tz), array)
    return numbers(found.view(pa.int64())) // _PER_MS.get(found.type.unit, 1)


NUMBERS: Final = {
    LogicalName.DATE: days,
    LogicalName.TIME: milliseconds_of_day,
    LogicalName.TIMESTAMP: milliseconds,
}
"""Columns of logical types as what is stored for them, for those that are stored as numbers."""


def unscaled(array: pa.Array, scale: int) -> Content:
    """Decimals as the shortest two's complement of their digits at this scale, big end first."""
    if abs(scale) > SCALE_MAX:
        raise InvalidData(f"a Decimal has a scale of {scale}, which is beyond {SCALE_MAX}")
    is_wide = pa.types.is_decimal256(array.type) or scale > 38
    digits = 76 if is_wide else 38
    wanted = pa.decimal256(digits, scale) if is_wide else pa.decimal128(digits, scale)
    exact = _as(wanted, array)
    width = 32 if is_wide else _WIDTH
    _, data = exact.buffers()
    little = np.frombuffer(data, np.uint8)[exact.offset * width : (exact.offset + len(exact)) * width]
    big = np.ascontiguousarray(little.reshape(-1, width)[:, ::-1])
    sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    is_sign = big == sign
    # The first byte that is not only the sign, and one more if that byte by itself would have the other sign.
    leading = np.where(is_sign.all(axis=1), width - 1, np.argmin(is_sign, axis=1))
    first = big[np.arange(len(big)), leading]
    leading = leading - ((first >= 0x80) != (sign[:, 0] != 0)).astype(np.int64)
    starts = np.arange(len(big), dtype=np.int64) * width
    return content_of(big.reshape(-1), starts + leading, starts + width)


def _as(type_: pa.DataType, array: pa.Array) -> Any:
    if array.type == type_:
        return array
    try:
        return array.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidData(f"expected {type_}, not {array.type}: {error}") from None
