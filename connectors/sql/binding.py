"""Values of records as parameters of statements, converted to what a column takes."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any, Final

import msgspec

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connectors.sql.column_types import ColumnType, Kind
from connectors.sql.logical import logical_of

Encoder = Callable[[Value], Any]
"""Converts a value that is not null to a parameter."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ONE: Final = date(1970, 1, 1)
# Values of these types go into such columns unchanged.
_UNCHANGED: Final = {
    Type.STRING: frozenset((Kind.TEXT, Kind.UNKNOWN)),
    Type.BYTES: frozenset((Kind.BYTES, Kind.UNKNOWN)),
    Type.BOOLEAN: frozenset((Kind.BOOLEAN,)),
    **dict.fromkeys(
        (Type.INT8, Type.INT16, Type.INT32, Type.INT64),
        frozenset((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT64, Kind.DECIMAL, Kind.UNKNOWN)),
    ),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), frozenset((Kind.FLOAT32, Kind.FLOAT64, Kind.DECIMAL, Kind.UNKNOWN))),
}


def encoder(schema: Schema | None, column: ColumnType, *, family: str, zone: tzinfo) -> Encoder | None:
    """Converts values of a schema (None: any values) for a column; None when they go into it unchanged."""
    logical = None if schema is None else logical_of(schema)
    if schema is not None and logical is None and column.kind in _UNCHANGED.get(schema.type, ()):
        return None
    write = _encoder(column, family=family, zone=zone)
    decode = _DECODERS.get(schema.name) if schema is not None and schema.name else None
    return write if decode is None else lambda value: write(decode(value))


def json_text(value: Value) -> str:
    """A value as JSON; times in ISO 8601, bytes in Base64, decimals as text."""
    return msgspec.json.encode(value).decode()


def _encoder(column: ColumnType, *, family: str, zone: tzinfo) -> Encoder:
    kind = column.kind
    if family == "sqlite":
        return partial(_SQLITE.get(kind, _sqlite_any), zone)
    if kind is Kind.ARRAY and column.items is not None:
        return partial(_array, _encoder(column.items, family=family, zone=zone))
    if kind is Kind.TIMESTAMP or (kind is Kind.INSTANT and family == "mysql"):
        return partial(_local_time, zone)
    if kind is Kind.INSTANT:
        return partial(_zoned_time, zone)
    return _ENCODERS.get(kind, _any)


# --- by kind of column ---


def _text(value: Value) -> Any:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode()
        case dict() | list() | tuple():
            return json_text(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return str(value)


def _integer(value: Value) -> Any:
    match value:
        case bool():
            return int(value)
        case float() if value.is_integer():
            return int(value)
        case Decimal() if value == value.to_integral_value():
            return int(value)
        case datetime():
            return milliseconds(value)
        case dict() | list() | tuple() | bytes():
            raise DataError(f"{type(value).__name__} cannot be written to a column of whole numbers")
        case _:
            return value


def _number(value: Value) -> Any:
    match value:
        case bool():
            return int(value)
        case datetime():
            return milliseconds(value)
        case dict() | list() | tuple() | bytes():
            raise DataError(f"{type(value).__name__} cannot be written to a column of numbers")
        case _:
            return value


def _boolean(value: Value) -> Any:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise DataError(f"{value!r} cannot be written to a column of booleans")


def _bytes(value: Value) -> Any:
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            return value.encode()
        case dict() | list() | tuple():
            return msgspec.json.encode(value)
        case _:
            raise DataError(f"{type(value).__name__} cannot be written to a column of bytes")


def _date(value: Value) -> Any:
    match value:
        case datetime():
            return value.date()
        case bool() | float() | dict() | list():
            raise DataError(f"{value!r} cannot be written to a column of dates")
        case int():
            return _DAY_ONE + timedelta(days=value)
        case str():
            return date.fromisoformat(value[:10])
        case _:
            return value


def _time(value: Value) -> Any:
    match value:
        case datetime():
            return value.time()
        case bool() | float() | dict() | list():
            raise DataError(f"{value!r} cannot be written to a column of times")
        case int():
            return (EPOCH + timedelta(milliseconds=value)).time()
        case str():
            return time.fromisoformat(value).replace(tzinfo=None)
        case _:
            return value


def _local_time(zone: tzinfo, value: Value) -> Any:
    time = _datetime(value)
    return time if time.tzinfo is None else time.astimezone(zone).replace(tzinfo=None)


def _zoned_time(zone: tzinfo, value: Value) -> Any:
    time = _datetime(value)
    return time.replace(tzinfo=zone) if time.tzinfo is None else time


def _datetime(value: Value) -> datetime:
    """From epoch milliseconds, ISO 8601, or a date."""
    match value:
        case datetime():
            return value
        case date():
            return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a day begins in the database's zone
        case bool():
            raise DataError("a boolean cannot be written to a column of timestamps")
        case int() | float() | Decimal():
            return EPOCH + timedelta(milliseconds=float(value) if isinstance(value, Decimal) else value)
        case str():
            return datetime.fromisoformat(value)
        case _:
            raise DataError(f"{type(value).__name__} cannot be written to a column of timestamps")


def _json(value: Value) -> Any:
    if not isinstance(value, str):
        return json_text(value)
    try:
        msgspec.json.decode(value)
    except msgspec.DecodeError:
        return json_text(value)
    return value


def _array(item: Encoder, value: Value) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        raise DataError(f"{type(value).__name__} cannot be written to a column of arrays")
    return [None if each is None else item(each) for each in value]


def _any(value: Value) -> Any:
    return json_text(value) if isinstance(value, dict | list | tuple) else value


_ENCODERS: Final[dict[Kind, Encoder]] = {
    **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64), _integer),
    **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64, Kind.DECIMAL), _number),
    Kind.BOOLEAN: _boolean,
    Kind.TEXT: _text,
    Kind.BYTES: _bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.JSON: _json,
    Kind.ARRAY: _json,
    Kind.UNKNOWN: _any,
}


# --- SQLite has no dates: numbers are milliseconds, everything else is ISO 8601 ---


def milliseconds(time: datetime) -> int:
    """Milliseconds since 1970."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(milliseconds=1)


def _sqlite_number(zone: tzinfo, value: Value) -> Any:
    match value:
        case Decimal():
            return str(value)
        case datetime():
            return milliseconds(value)
        case date():
            return (value - _DAY_ONE).days * 86_400_000
        case time():
            minutes = value.hour * 60 + value.minute
            return (minutes * 60 + value.second) * 1000 + value.microsecond // 1000
        case _:
            return _sqlite_any(zone, value)


def _sqlite_any(zone: tzinfo, value: Value) -> Any:
    match value:
        case datetime():
            return _sqlite_timestamp(zone, value)
        case date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case dict() | list() | tuple():
            return json_text(value)
        case _:
            return value


def _sqlite_timestamp(zone: tzinfo, value: Value) -> Any:
    return _local_time(zone, value).isoformat(sep=" ")


_SQLITE: Final[dict[Kind, Callable[[tzinfo, Value], Any]]] = {
    **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64), _sqlite_number),
    **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64, Kind.DECIMAL), _sqlite_number),
    Kind.TEXT: lambda _, value: _text(value),
    Kind.BYTES: lambda _, value: _bytes(value),
    Kind.JSON: lambda _, value: _json(value),
    Kind.DATE: lambda _, value: _date(value).isoformat(),
    Kind.TIME: lambda _, value: _time(value).isoformat(),
    Kind.TIMESTAMP: _sqlite_timestamp,
    Kind.INSTANT: _sqlite_timestamp,
}


# --- Debezium's types, which are numbers and text with a name ---


def _variable_decimal(value: Value) -> Decimal:
    if not isinstance(value, dict):
        return Decimal(value)
    return Decimal(int.from_bytes(value["value"], "big", signed=True)).scaleb(-value["scale"])


_DECODERS: Final[dict[str, Encoder]] = {
    "io.debezium.time.Date": lambda value: _DAY_ONE + timedelta(days=value),
    "io.debezium.time.Time": lambda value: (EPOCH + timedelta(milliseconds=value)).time(),
    "io.debezium.time.MicroTime": lambda value: (EPOCH + timedelta(microseconds=value)).time(),
    "io.debezium.time.NanoTime": lambda value: (EPOCH + timedelta(microseconds=value // 1000)).time(),
    "io.debezium.time.Timestamp": lambda value: EPOCH + timedelta(milliseconds=value),
    "io.debezium.time.MicroTimestamp": lambda value: EPOCH + timedelta(microseconds=value),
    "io.debezium.time.NanoTimestamp": lambda value: EPOCH + timedelta(microseconds=value // 1000),
    "io.debezium.time.ZonedTimestamp": datetime.fromisoformat,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
}
