"""Types of columns, the same for all databases: from SQLAlchemy's reflection, from results, and from values."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import msgspec
import psycopg
from pymysql.constants import FIELD_TYPE
from sqlalchemy import types as sql
from sqlalchemy.dialects import mysql, postgresql


class Kind(StrEnum):
    """Column types that are read and written in the same way."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    """A date and a time of day in the time zone of the database."""
    INSTANT = "instant"
    """A point in time, with its time zone."""
    JSON = "json"
    ARRAY = "array"
    UNKNOWN = "unknown"
    """Another type, or none: known by its values, or handled as text."""

    @property
    def is_integer(self) -> bool:
        """Whether it holds whole numbers."""
        return self in (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)


class ColumnType(msgspec.Struct, frozen=True, kw_only=True):
    """A kind with its parameters."""

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    items: "ColumnType | None" = None
    """The type of the items of an ARRAY."""


TEXT: Final = ColumnType(kind=Kind.TEXT)
UNKNOWN: Final = ColumnType(kind=Kind.UNKNOWN)

_WIDER: Final = {Kind.INT8: Kind.INT16, Kind.INT16: Kind.INT32, Kind.INT32: Kind.INT64, Kind.INT64: Kind.INT64}
# In this order: the first class that matches decides.
_BY_CLASS: Final[tuple[tuple[type[sql.TypeEngine[Any]], Kind], ...]] = (
    (sql.NullType, Kind.UNKNOWN),
    (sql.Boolean, Kind.BOOLEAN),
    (postgresql.OID, Kind.INT64),
    (mysql.BIT, Kind.BYTES),
    (mysql.TINYINT, Kind.INT8),
    (mysql.YEAR, Kind.INT16),
    (sql.SmallInteger, Kind.INT16),
    (sql.BigInteger, Kind.INT64),
    (sql.Integer, Kind.INT32),
    (sql.DOUBLE_PRECISION, Kind.FLOAT64),
    (sql.Double, Kind.FLOAT64),
    (sql.REAL, Kind.FLOAT32),
    (mysql.FLOAT, Kind.FLOAT32),
    (sql.Float, Kind.FLOAT64),
    (sql.Numeric, Kind.DECIMAL),
    (sql.JSON, Kind.JSON),
    (sql.Uuid, Kind.UNKNOWN),
    (sql.Enum, Kind.TEXT),
    (sql.String, Kind.TEXT),
    (sql.LargeBinary, Kind.BYTES),
    (sql.BINARY, Kind.BYTES),
    (sql.VARBINARY, Kind.BYTES),
    (postgresql.BYTEA, Kind.BYTES),
    (postgresql.BIT, Kind.UNKNOWN),
    (postgresql.INTERVAL, Kind.UNKNOWN),
    (sql.Date, Kind.DATE),
    (sql.Time, Kind.TIME),
)


def from_reflection(type_: "sql.TypeEngine[Any]", *, family: str) -> ColumnType:
    """The type of a column that SQLAlchemy has reflected in a database of this family."""
    if isinstance(type_, postgresql.DOMAIN):
        return from_reflection(type_.data_type, family=family)
    if isinstance(type_, sql.ARRAY):
        return ColumnType(kind=Kind.ARRAY, items=from_reflection(type_.item_type, family=family))
    if isinstance(type_, sql.DateTime):
        is_instant = bool(type_.timezone) or isinstance(type_, mysql.TIMESTAMP)
        return ColumnType(kind=Kind.INSTANT if is_instant else Kind.TIMESTAMP)
    if isinstance(type_, sql.Time) and type_.timezone:
        return UNKNOWN  # Connect's times have no zone.
    kind = next((kind for known, kind in _BY_CLASS if isinstance(type_, known)), Kind.UNKNOWN)
    if kind is Kind.DECIMAL:
        return ColumnType(kind=kind, precision=_number(type_, "precision"), scale=_number(type_, "scale"))
    if kind is Kind.FLOAT64 and family == "mysql" and isinstance(type_, mysql.FLOAT):
        kind = Kind.FLOAT32
    if family == "sqlite" and kind in (Kind.INT16, Kind.INT32):
        kind = Kind.INT64  # SQLite's integers have eight bytes, whatever the declaration says.
    if kind is Kind.FLOAT32 and family == "sqlite":
        kind = Kind.FLOAT64
    if kind.is_integer and getattr(type_, "unsigned", False):
        kind = _WIDER[kind]
    return ColumnType(kind=kind)


def _number(type_: object, name: str) -> int | None:
    value = getattr(type_, name, None)
    return value if isinstance(value, int) else None


# --- results of queries, which cannot be reflected ---

_PG_KINDS: Final = {
    "bool": Kind.BOOLEAN,
    "int2": Kind.INT16,
    "int4": Kind.INT32,
    "int8": Kind.INT64,
    "oid": Kind.INT64,
    "float4": Kind.FLOAT32,
    "float8": Kind.FLOAT64,
    "numeric": Kind.DECIMAL,
    "bytea": Kind.BYTES,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.INSTANT,
    "json": Kind.JSON,
    "jsonb": Kind.JSON,
}
_MYSQL_KINDS: Final = {
    # Results do not say whether a number is signed: the next larger type holds both.
    FIELD_TYPE.TINY: Kind.INT16,
    FIELD_TYPE.SHORT: Kind.INT32,
    FIELD_TYPE.INT24: Kind.INT32,
    FIELD_TYPE.LONG: Kind.INT64,
    FIELD_TYPE.LONGLONG: Kind.INT64,
    FIELD_TYPE.YEAR: Kind.INT16,
    FIELD_TYPE.FLOAT: Kind.FLOAT32,
    FIELD_TYPE.DOUBLE: Kind.FLOAT64,
    FIELD_TYPE.DECIMAL: Kind.DECIMAL,
    FIELD_TYPE.NEWDECIMAL: Kind.DECIMAL,
    FIELD_TYPE.BIT: Kind.BYTES,
    FIELD_TYPE.DATE: Kind.DATE,
    FIELD_TYPE.NEWDATE: Kind.DATE,
    FIELD_TYPE.TIME: Kind.TIME,
    FIELD_TYPE.DATETIME: Kind.TIMESTAMP,
    FIELD_TYPE.TIMESTAMP: Kind.INSTANT,
    FIELD_TYPE.JSON: Kind.JSON,
}


def from_description(column: Any, *, family: str) -> ColumnType:
    """The type of a column of a result, from the driver's description; UNKNOWN when the driver does not say."""
    if family == "postgresql":
        return _from_oid(column.type_code, precision=column.precision, scale=column.scale)
    if family == "mysql":
        kind = _MYSQL_KINDS.get(column[1], Kind.UNKNOWN)
        return ColumnType(kind=kind, scale=column[5] if kind is Kind.DECIMAL else None)
    return UNKNOWN


def _from_oid(oid: int, *, precision: int | None, scale: int | None) -> ColumnType:
    info = psycopg.adapters.types.get(oid)
    if info is None:
        return TEXT  # An enumeration, or a type of an extension.
    if info.array_oid == oid:
        return ColumnType(kind=Kind.ARRAY, items=_from_oid(info.oid, precision=None, scale=None))
    kind = _PG_KINDS.get(info.name, Kind.TEXT)
    return ColumnType(kind=kind, precision=precision, scale=scale) if kind is Kind.DECIMAL else ColumnType(kind=kind)


# --- columns without a declared type ---

_CLASS_KINDS: Final[tuple[tuple[type, Kind], ...]] = (
    (bool, Kind.BOOLEAN),
    (int, Kind.INT64),
    (float, Kind.FLOAT64),
    (Decimal, Kind.DECIMAL),
    (str, Kind.TEXT),
    (bytes, Kind.BYTES),
    (datetime, Kind.TIMESTAMP),
    (date, Kind.DATE),
    (time, Kind.TIME),
    (timedelta, Kind.TIME),
)


def from_values(cells: Iterable[Any]) -> ColumnType:
    """A type that holds all these cells; text when there is no other, or no cell."""
    kinds = {
        next((kind for type_, kind in _CLASS_KINDS if isinstance(cell, type_)), Kind.TEXT)
        for cell in cells
        if cell is not None
    }
    if kinds == {Kind.INT64, Kind.FLOAT64}:
        return ColumnType(kind=Kind.FLOAT64)
    return ColumnType(kind=kinds.pop()) if len(kinds) == 1 else TEXT
