"""The queries of the source: new rows, in order, up to a timestamp."""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

import msgspec

from connectors.sql.dialect import Dialect, Table
from connectors.sql.position import Position

TIMESTAMP_MARK: Final = "__connect_timestamp"
"""In SQLite, the timestamp of a row as text that can be compared; the last column of a result."""
OPEN_MARK: Final = "__connect_open"
"""In PostgreSQL, whether an open transaction may still add rows before this one; the last column of a result."""
_SQLITE_FORMAT: Final = "'%Y-%m-%d %H:%M:%f'"


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """What is read, and the columns that show which rows are new."""

    table: Table | None = None
    query: str = ""
    suffix: str = ""
    timestamp_columns: tuple[str, ...] = ()
    incrementing_column: str = ""
    marks_open: bool = False
    """Whether rows are marked before which other transactions may still add rows."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A query with its parameters."""

    statement: str
    parameters: tuple[Any, ...]


def selection(
    criteria: Criteria, dialect: Dialect, *, position: Position, end: datetime | None, zone: tzinfo, limit: int | None
) -> Selection:
    """The query for rows after a position, and before the end where there are timestamps."""
    timestamp = _timestamp(criteria, dialect)
    number = _quote(criteria, dialect, criteria.incrementing_column) if criteria.incrementing_column else ""
    conditions: list[str] = []
    values: list[Any] = []
    if timestamp and end is not None:
        conditions.append(f"{timestamp} < {dialect.mark}")
        values.append(parameter(end, dialect, zone=zone))
    after, after_values = _after(position, timestamp, number, dialect, zone)
    conditions += after
    values += after_values
    parts = [_select_from(criteria, dialect, timestamp)]
    if conditions:
        parts.append("WHERE " + " AND ".join(conditions))
    order = ", ".join(filter(None, (timestamp, number)))
    if order:
        parts.append(f"ORDER BY {order}")
    if criteria.suffix:
        parts.append(dialect.literal_sql(criteria.suffix))
    if limit is not None:
        parts.append(f"LIMIT {limit}")
    return Selection(statement=" ".join(parts), parameters=tuple(values))


def parameter(time: datetime, dialect: Dialect, *, zone: tzinfo) -> Any:
    """A time as a parameter that is compared with a column."""
    if dialect.family == "postgresql":
        return time  # Columns without a zone are compared in the zone of the session.
    local = time.astimezone(zone).replace(tzinfo=None)
    return local.isoformat(sep=" ", timespec="milliseconds") if dialect.family == "sqlite" else local


def truncate(time: datetime, digits: int) -> datetime:
    """A time in the resolution of a column: no row can be added any more before it."""
    unit = 10 ** (6 - min(6, max(0, digits)))
    return time - timedelta(microseconds=time.microsecond % unit)


def _after(
    position: Position, timestamp: str, number: str, dialect: Dialect, zone: tzinfo
) -> tuple[list[str], Sequence[Any]]:
    mark = dialect.mark
    last = None if position.timestamp is None else parameter(position.timestamp, dialect, zone=zone)
    if timestamp and last is not None:
        if number and position.incrementing is not None:
            same = f"({timestamp} = {mark} AND {number} > {mark})"
            return [f"({same} OR {timestamp} > {mark})"], (last, position.incrementing, last)
        return [f"{timestamp} > {mark}"], (last,)
    if number and not timestamp and position.incrementing is not None:
        return [f"{number} > {mark}"], (position.incrementing,)
    return [], ()


def _timestamp(criteria: Criteria, dialect: Dialect) -> str:
    """The expression for the timestamp of a row."""
    names = [_quote(criteria, dialect, name) for name in criteria.timestamp_columns]
    if dialect.family == "sqlite":
        names = [_sqlite_timestamp(name) for name in names]
    return f"COALESCE({', '.join(names)})" if len(names) > 1 else "".join(names)


def _sqlite_timestamp(name: str) -> str:
    # SQLite has no timestamps: they are text in ISO 8601, or numbers of milliseconds.
    number = f"strftime({_SQLITE_FORMAT}, {name} / 1000.0, 'unixepoch')"
    return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {number} ELSE strftime({_SQLITE_FORMAT}, {name}) END"


def _quote(criteria: Criteria, dialect: Dialect, name: str) -> str:
    if criteria.query and "." in name:  # The query has names for its tables: t.changed_at
        return ".".join(dialect.quote(part) for part in name.split("."))
    return dialect.quote(name)


def _select_from(criteria: Criteria, dialect: Dialect, timestamp: str) -> str:
    if dialect.family == "sqlite" and timestamp:
        inner = dialect.table(criteria.table) if criteria.table else f"({criteria.query})"
        return f"SELECT source.*, {timestamp} AS {TIMESTAMP_MARK} FROM {inner} AS source"
    if criteria.table is None:
        return dialect.literal_sql(criteria.query)
    source = dialect.table(criteria.table)
    if criteria.marks_open:
        # Whether the transaction that wrote a row is between the oldest open one and now. "<=" alone would not do:
        # transaction ids wrap around, and those of very old rows seem to be in the future.
        oldest = "age((SELECT pg_snapshot_xmin(pg_current_snapshot())::xid))"
        return f"SELECT source.*, age(source.xmin) BETWEEN 0 AND {oldest} AS {OPEN_MARK} FROM {source} AS source"
    return f"SELECT * FROM {source}"
