"""The queries of the source: which rows are new, in which order, and up to which moment."""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

import msgspec

from connectors.sql.dialect import Dialect, Table
from connectors.sql.position import Position

TIMESTAMP_MARK: Final = "__connect_timestamp"
"""In SQLite, the moment of a row as text that can be compared; the last column of a result."""
OPEN_MARK: Final = "__connect_open"
"""In PostgreSQL, whether a transaction is open that may still add rows before this one; the last column of a result."""
_SQLITE_FORMAT: Final = "'%Y-%m-%d %H:%M:%f'"


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """What is read, and by which columns it is known what is new."""

    table: Table | None = None
    query: str = ""
    suffix: str = ""
    timestamp_columns: tuple[str, ...] = ()
    incrementing_column: str = ""
    marks_open: bool = False
    """Whether rows are marked that other transactions may still add rows before."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A query with its parameters."""

    statement: str
    parameters: tuple[Any, ...]


def selection(
    criteria: Criteria, dialect: Dialect, *, position: Position, end: datetime | None, zone: tzinfo, limit: int | None
) -> Selection:
    """The query for what is new after a position, and before a moment where there are timestamps."""
    moment = _moment(criteria, dialect)
    number = _named(criteria, dialect, criteria.incrementing_column) if criteria.incrementing_column else ""
    conditions: list[str] = []
    values: list[Any] = []
    if moment and end is not None:
        conditions.append(f"{moment} < {dialect.mark}")
        values.append(parameter(end, dialect, zone=zone))
    after, after_values = _after(position, moment, number, dialect, zone)
    conditions += after
    values += after_values
    parts = [_from(criteria, dialect, moment)]
    if conditions:
        parts.append("WHERE " + " AND ".join(conditions))
    order = ", ".join(filter(None, (moment, number)))
    if order:
        parts.append(f"ORDER BY {order}")
    if criteria.suffix:
        parts.append(dialect.literal_sql(criteria.suffix))
    if limit is not None:
        parts.append(f"LIMIT {limit}")
    return Selection(statement=" ".join(parts), parameters=tuple(values))


def parameter(moment: datetime, dialect: Dialect, *, zone: tzinfo) -> Any:
    """A moment as a parameter that is compared with a column."""
    if dialect.family == "postgresql":
        return moment  # compared with a column without a zone in the zone of the session
    local = moment.astimezone(zone).replace(tzinfo=None)
    return local.isoformat(sep=" ", timespec="milliseconds") if dialect.family == "sqlite" else local


def truncated(moment: datetime, digits: int) -> datetime:
    """A moment in the resolution of a column: what is before it in the column is over."""
    unit = 10 ** (6 - min(6, max(0, digits)))
    return moment - timedelta(microseconds=moment.microsecond % unit)


def _after(
    position: Position, moment: str, number: str, dialect: Dialect, zone: tzinfo
) -> tuple[list[str], Sequence[Any]]:
    mark = dialect.mark
    last = None if position.timestamp is None else parameter(position.timestamp, dialect, zone=zone)
    if moment and last is not None:
        if number and position.incrementing is not None:
            same = f"({moment} = {mark} AND {number} > {mark})"
            return [f"({same} OR {moment} > {mark})"], (last, position.incrementing, last)
        return [f"{moment} > {mark}"], (last,)
    if number and not moment and position.incrementing is not None:
        return [f"{number} > {mark}"], (position.incrementing,)
    return [], ()


def _moment(criteria: Criteria, dialect: Dialect) -> str:
    """The expression for the moment of a row."""
    names = [_named(criteria, dialect, name) for name in criteria.timestamp_columns]
    if dialect.family == "sqlite":
        names = [_sqlite_moment(name) for name in names]
    return f"COALESCE({', '.join(names)})" if len(names) > 1 else "".join(names)


def _sqlite_moment(name: str) -> str:
    # SQLite has no type for moments: text in ISO 8601, or numbers that count milliseconds.
    number = f"strftime({_SQLITE_FORMAT}, {name} / 1000.0, 'unixepoch')"
    return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {number} ELSE strftime({_SQLITE_FORMAT}, {name}) END"


def _named(criteria: Criteria, dialect: Dialect, name: str) -> str:
    if criteria.query and "." in name:  # the query has names for its tables: t.changed_at
        return ".".join(dialect.quote(part) for part in name.split("."))
    return dialect.quote(name)


def _from(criteria: Criteria, dialect: Dialect, moment: str) -> str:
    if dialect.family == "sqlite" and moment:
        inner = dialect.table(criteria.table) if criteria.table else f"({criteria.query})"
        return f"SELECT source.*, {moment} AS {TIMESTAMP_MARK} FROM {inner} AS source"
    if criteria.table is None:
        return dialect.literal_sql(criteria.query)
    source = dialect.table(criteria.table)
    if criteria.marks_open:
        # The transaction that wrote a row is between the oldest open one and now. Not "<=" alone: numbers of
        # transactions wrap around, and those of very old rows seem to be in the future.
        oldest = "age((SELECT pg_snapshot_xmin(pg_current_snapshot())::xid))"
        return f"SELECT source.*, age(source.xmin) BETWEEN 0 AND {oldest} AS {OPEN_MARK} FROM {source} AS source"
    return f"SELECT * FROM {source}"
