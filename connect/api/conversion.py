"""Values made into values of another type, where there is no doubt how: text into numbers, timestamps into dates."""

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.literals import parse
from connect.api.logical import (
    EPOCH,
    date_of,
    days_of,
    decimal_bytes,
    decimal_of,
    milliseconds_of,
    milliseconds_of_time,
    scale_of,
    time_of,
    timestamp_of,
)
from connect.api.values import literal_of

_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_INT64: Final = 1 << 63
_FLOAT32: Final = struct.Struct(">f")
_MOST_DIGITS: Final = 10_000
_TEXT_AS_VALUE: Final = (Type.ARRAY, Type.MAP)


def convert(target: Schema, value: Value, *, schema: Schema | None = None) -> Value:
    """A value as `target` wants it; `schema` is its own. DataError where Kafka Connect knows no way, either.

    Whole numbers that are too large lose their upper bits, as in Java; numbers with a fraction lose the fraction.
    """
    if value is None:
        if target.optional:
            return None
        raise DataError("Unable to convert a null value to a schema that requires a value")
    if target.type is Type.STRING:
        return literal_of(schema, value)
    change = _LOGICAL.get(target.name) or _CHANGES[target.type]
    return change(target, value)


def _refusal(target: Schema, value: Value) -> DataError:
    name = f"{target.type.name} ({target.name})" if target.name else target.type.name
    return DataError(f"Unable to convert a value of type {type(value).__name__} to {name}")


def _boolean(target: Schema, value: Value) -> bool:
    known = parse(value)[1] if isinstance(value, str) else value
    return known if isinstance(known, bool) else _whole(target, value) != 0


def _integer(target: Schema, value: Value) -> int:
    return _wrapped(_whole(target, value), _BITS[target.type])


def _float64(target: Schema, value: Value) -> float:
    if isinstance(value, str):
        value = _number(target, value)
    if isinstance(value, (float, Decimal)):
        return float(value)
    return float(_whole(target, value))


def _float32(target: Schema, value: Value) -> float:
    wide = _float64(target, value)
    try:
        narrow: float = _FLOAT32.unpack(_FLOAT32.pack(wide))[0]
    except OverflowError:
        return math.copysign(math.inf, wide)
    return narrow


def _bytes(target: Schema, value: Value) -> bytes:
    if isinstance(value, Decimal) and value.is_finite():
        return decimal_bytes(value, -int(value.as_tuple().exponent))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _refusal(target, value)


def _decimal(target: Schema, value: Value) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return decimal_of(bytes(value), scale_of(target))
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return Decimal(repr(float(value)))
    if isinstance(value, str):
        return _number(target, value)
    raise _refusal(target, value)


def _date(target: Schema, value: Value) -> dt.date:
    known = _known(value)
    if isinstance(known, dt.datetime):
        return known.astimezone(dt.UTC).date()
    return known if isinstance(known, dt.date) else date_of(_wrapped(_whole(target, known), 32))


def _time(target: Schema, value: Value) -> dt.time:
    known = _known(value)
    if isinstance(known, dt.datetime):
        return known.astimezone(dt.UTC).time()
    return known if isinstance(known, dt.time) else time_of(_wrapped(_whole(target, known), 32))


def _timestamp(target: Schema, value: Value) -> dt.datetime:
    known = _known(value)
    if isinstance(known, dt.datetime):
        return known
    if isinstance(known, dt.date):
        return dt.datetime.combine(known, dt.time(), dt.UTC)
    if isinstance(known, dt.time):
        return dt.datetime.combine(EPOCH.date(), known, dt.UTC)
    return timestamp_of(_whole(target, known))


def _collection(target: Schema, value: Value) -> Value:
    known = _known(value) if target.type in _TEXT_AS_VALUE else value
    if isinstance(known, list if target.type is Type.ARRAY else dict):
        return known
    raise _refusal(target, value)


def _known(value: Value) -> Value:
    return parse(value)[1] if isinstance(value, str) else value


def _number(target: Schema, text: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise _refusal(target, text) from None
    if not number.is_finite() or len(text) > _MOST_DIGITS or abs(number.adjusted()) > _MOST_DIGITS:
        raise _refusal(target, text)
    return number


def _whole(target: Schema, value: Value) -> int:
    """A value as Java makes a `long` of it."""
    if isinstance(value, str):
        value = _number(target, value)
    if isinstance(value, float):
        return _saturated(value)
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return _wrapped(int(value), 64)
    for kind, change in _TEMPORAL:
        if isinstance(value, kind):
            return change(value)
    raise _refusal(target, value)


def _saturated(value: float) -> int:
    if math.isnan(value):
        return 0
    return int(max(min(value, _INT64), -_INT64)) - (value >= _INT64)


def _wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half & (1 << bits) - 1) - half


_TEMPORAL: Final[tuple[tuple[type, Callable[[Value], int]], ...]] = (
    (dt.datetime, milliseconds_of),
    (dt.date, days_of),
    (dt.time, milliseconds_of_time),
)
_Change = Callable[[Schema, Value], Value]
_LOGICAL: Final[dict[str | None, _Change]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}
_CHANGES: Final[dict[Type, _Change]] = {
    Type.BOOLEAN: _boolean,
    Type.BYTES: _bytes,
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.ARRAY: _collection,
    Type.MAP: _collection,
    Type.STRUCT: _collection,
    **dict.fromkeys(_BITS, _integer),
}
