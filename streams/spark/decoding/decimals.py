"""Decimals: from the two's complement that formats store to what Spark's tables hold."""

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_registry.serdes.errors import InvalidData
from streams.spark.decoding.moments import Doubt
from streams.spark.decoding.reading import NoColumns

MOST_DIGITS: Final = 38

_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MOST_BYTES: Final = 4096
_WIDTH: Final = 16


def decimal_type(precision: int | None, scale: int) -> pa.DataType:
    """The type of decimals; without a precision it is the largest. Raises NoColumns where there is none."""
    digits = MOST_DIGITS if precision is None else precision
    if not (0 < digits <= MOST_DIGITS and 0 <= scale <= digits):
        raise NoColumns(f"no column holds decimals with {digits} digits, {scale} of them after the point")
    return pa.decimal128(digits, scale)


def decimal_value(data: bytes, scale: int) -> Decimal:
    """The decimal that bytes, big end first, stand for."""
    if len(data) > _MOST_BYTES:
        raise InvalidData(f"A Decimal of {len(data)} bytes has more digits than {_MOST_BYTES} bytes hold")
    return _EXACT.scaleb(Decimal(int.from_bytes(data, "big", signed=True)), -scale)


def decimals(digits: npt.NDArray[np.uint8], type_: pa.DataType, valid: pa.Buffer | None) -> pa.Array:
    """Rows of as many bytes each, big end first, as decimals; raises Doubt if one is too large."""
    count, width = digits.shape
    made = np.empty((count, _WIDTH), dtype=np.uint8)
    made[:] = np.where(digits[:, :1] >= 0x80, 0xFF, 0)
    kept = min(width, _WIDTH)
    made[:, :kept] = digits[:, ::-1][:, :kept]
    if width > _WIDTH:
        _check_extension(digits[:, : width - _WIDTH], made[:, -1:])
    array = pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(made)])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise Doubt from None
    return array


def aligned(data: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Numbers of different lengths, one after the other, as rows of the same length; raises Doubt if one is longer."""
    if len(lengths) and lengths.max() > _WIDTH:
        raise Doubt
    behind = np.cumsum(lengths)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(data)) - np.repeat(behind, lengths) + _WIDTH
    signs = np.zeros(len(lengths), dtype=np.uint8)
    is_there = lengths > 0
    signs[is_there] = np.where(data[(behind - lengths)[is_there]] >= 0x80, 0xFF, 0)
    made = np.repeat(signs[:, None], _WIDTH, axis=1)
    made[rows, columns] = data
    return made


def _check_extension(leading: npt.NDArray[np.uint8], highest: npt.NDArray[np.uint8]) -> None:
    """Bytes before those that are kept must only repeat the sign."""
    if not (leading == np.where(highest >= 0x80, 0xFF, 0)).all():
        raise Doubt
