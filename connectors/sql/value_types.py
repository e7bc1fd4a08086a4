"""Types of columns that nobody declared, from what is in them."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from connectors.sql.column_types import TEXT, ColumnType, Kind

_KINDS: Final[tuple[tuple[type, Kind], ...]] = (
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


def seen_type(cells: Iterable[Any]) -> ColumnType:
    """A type that holds all these cells; text when there is none, or nothing to see."""
    kinds = {_kind(cell) for cell in cells if cell is not None}
    if kinds == {Kind.INT64, Kind.FLOAT64}:
        return ColumnType(kind=Kind.FLOAT64)
    return ColumnType(kind=kinds.pop()) if len(kinds) == 1 else TEXT


def _kind(cell: Any) -> Kind:
    return next((kind for type_, kind in _KINDS if isinstance(cell, type_)), Kind.TEXT)
