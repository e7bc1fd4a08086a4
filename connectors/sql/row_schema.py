"""Columns as Connect schemas, and rows as values of those schemas."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final

import msgspec

from connect.api import data
from connect.api.data import Field, Schema, Value
from connect.api.errors import DataError
from connectors.sql.column_types import ColumnType, Kind

Converter = Callable[[Any], Value]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = Context(prec=1000)
UNBOUNDED_SCALE: Final = 38
"""Digits after the point of decimals for which the database does not say how many."""
_PLAIN: Final = {
    Kind.INT8: data.INT8,
    Kind.INT16: data.INT16,
    Kind.INT32: data.INT32,
    Kind.INT64: data.INT64,
    Kind.FLOAT32: data.FLOAT32,
    Kind.FLOAT64: data.FLOAT64,
    Kind.BOOLEAN: data.BOOLEAN,
    Kind.TEXT: data.STRING,
    Kind.JSON: data.STRING,
    Kind.UNKNOWN: data.STRING,
    Kind.BYTES: data.BYTES,
    Kind.DATE: data.DATE,
    Kind.TIME: data.TIME,
}
_GRANULARITIES: Final = {
    "connect_logical": data.TIMESTAMP,
    "nanos_long": data.INT64,
    "nanos_string": data.STRING,
    "nanos_iso_datetime_string": data.STRING,
}


class ReadColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a result."""

    name: str
    type: ColumnType
    is_nullable: bool = True


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Options for how columns are read."""

    family: str
    zone: tzinfo = UTC
    numeric_mapping: str = "none"
    granularity: str = "connect_logical"


class RowSchema:
    """The schema of a result, which converts rows to values."""

    def __init__(self, columns: Sequence[ReadColumn], reading: Reading, *, name: str | None = None) -> None:
        self.names = tuple(column.name for column in columns)
        fields, self._converters = [], []
        for index, column in enumerate(columns):
            schema, convert = _map_column(column.type, reading)
            fields.append(Field(column.name, schema.as_optional() if column.is_nullable else schema))
            if convert is not None:
                self._converters.append((index, convert))
        self.schema = data.struct(fields, name=name)

    def value(self, row: Sequence[Any]) -> dict[str, Value]:
        """A row as a struct; DataError when a cell does not fit the schema."""
        if not self._converters:
            return dict(zip(self.names, row, strict=False))
        cells = list(row)
        for index, convert in self._converters:
            cell = cells[index]
            if cell is not None:
                try:
                    cells[index] = convert(cell)
                except (DataError, ValueError, TypeError, OverflowError, ArithmeticError) as error:
                    type_ = self.schema.fields[index].schema.type
                    text = f"column {self.names[index]} holds {cell!r}, which does not fit {type_}: {error}"
                    raise DataError(text) from error
        return dict(zip(self.names, cells, strict=False))


def utc_time(cell: Any, *, zone: tzinfo) -> datetime:
    """A cell with a date and a time, in UTC."""
    match cell:
        case datetime():
            aware = cell if cell.tzinfo is not None else cell.replace(tzinfo=zone)
            return aware if aware.tzinfo is UTC else aware.astimezone(UTC)
        case date():
            return datetime(cell.year, cell.month, cell.day, tzinfo=zone).astimezone(UTC)
        case bool():
            raise DataError("a boolean is not a timestamp")
        case int() | float():
            return _EPOCH + timedelta(milliseconds=cell)
        case _:
            return utc_time(datetime.fromisoformat(str(cell)), zone=zone)


def _map_column(type_: ColumnType, reading: Reading) -> tuple[Schema, Converter | None]:
    kind = type_.kind
    if kind is Kind.DECIMAL:
        return _decimal(type_, reading)
    if kind in (Kind.TIMESTAMP, Kind.INSTANT):
        return _GRANULARITIES[reading.granularity], partial(_TIMESTAMPS[reading.granularity], reading.zone)
    if kind is Kind.ARRAY and type_.items is not None:
        item, convert = _map_column(type_.items, reading)
        return data.array(item.as_optional()), partial(_list, convert) if convert else None
    converters = _LOOSE if reading.family == "sqlite" else _CONVERTERS
    return _PLAIN[kind], converters.get(kind)


# --- numbers ---


def _decimal(type_: ColumnType, reading: Reading) -> tuple[Schema, Converter | None]:
    schema = _simple_number(type_.precision, type_.scale, reading)
    if schema is not None:
        return schema, float if schema is data.FLOAT64 else int
    scale = UNBOUNDED_SCALE if type_.scale is None else type_.scale
    return data.decimal(scale), partial(_rescale, Decimal(1).scaleb(-scale))


def _simple_number(precision: int | None, scale: int | None, reading: Reading) -> Schema | None:
    """A simpler type than Decimal, if numeric.mapping allows one and it fits."""
    mapping = reading.numeric_mapping
    if reading.family == "sqlite" and scale is None:
        return data.FLOAT64  # That is how SQLite stores them, whatever the declaration says.
    if mapping == "none":
        return None
    if mapping == "best_fit_eager_double" and (scale is None or scale > 0):
        return data.FLOAT64
    if precision is None or precision >= 19:
        return None
    if not scale:
        widths = ((2, data.INT8), (4, data.INT16), (9, data.INT32))
        return next((schema for most, schema in widths if precision <= most), data.INT64)
    return data.FLOAT64 if mapping == "best_fit" else None


def _rescale(unit: Decimal, cell: Any) -> Decimal:
    exact = cell if isinstance(cell, Decimal) else Decimal(str(cell))
    if not exact.is_finite():
        raise DataError(f"{exact} is not a finite number")
    rescaled = exact.quantize(unit, context=_DIGITS)
    if rescaled != exact:
        raise DataError(f"it has more than {-int(unit.as_tuple().exponent)} digits after the point")
    return rescaled


# --- dates and times ---


def _nanoseconds(zone: tzinfo, cell: Any) -> int:
    return (utc_time(cell, zone=zone) - _EPOCH) // timedelta(microseconds=1) * 1000


def _iso_text(zone: tzinfo, cell: Any) -> str:
    return f"{utc_time(cell, zone=zone).replace(tzinfo=None).isoformat(timespec='microseconds')}000"


_TIMESTAMPS: Final[dict[str, Callable[[tzinfo, Any], Value]]] = {
    "connect_logical": lambda zone, cell: utc_time(cell, zone=zone),
    "nanos_long": _nanoseconds,
    "nanos_string": lambda zone, cell: str(_nanoseconds(zone, cell)),
    "nanos_iso_datetime_string": _iso_text,
}


def _date(cell: Any) -> date:
    match cell:
        case datetime():
            return cell.date()
        case date():
            return cell
        case int():
            return (_EPOCH + timedelta(milliseconds=cell)).date()
        case _:
            return date.fromisoformat(str(cell)[:10])


def _time_of_day(cell: Any) -> time:
    match cell:
        case time():
            return cell.replace(tzinfo=None)
        case timedelta():
            if not timedelta(0) <= cell < timedelta(days=1):
                raise DataError("it is not within a day")
            return (_EPOCH + cell).time()
        case int():
            return (_EPOCH + timedelta(milliseconds=cell)).time()
        case _:
            return time.fromisoformat(str(cell)).replace(tzinfo=None)


# --- the rest ---


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return bytes(cell).decode() if isinstance(cell, bytes | bytearray | memoryview) else str(cell)


def _list(convert: Converter, cell: Any) -> list[Value]:
    return [None if item is None else convert(item) for item in cell]


_CONVERTERS: Final[dict[Kind, Converter]] = {
    Kind.DATE: _date,
    Kind.TIME: _time_of_day,
    Kind.UNKNOWN: _text,
}
# Columns of SQLite hold values of any type.
_LOOSE: Final[dict[Kind, Converter]] = {
    **_CONVERTERS,
    **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64), int),
    **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64), float),
    Kind.BOOLEAN: lambda cell: bool(int(cell)),
    Kind.TEXT: _text,
    Kind.JSON: _text,
    Kind.BYTES: lambda cell: cell.encode() if isinstance(cell, str) else bytes(cell),
}
