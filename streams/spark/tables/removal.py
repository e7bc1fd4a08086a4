"""Which rows upkeep removes: by age, or by the offsets that they came from."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streams.errors import WrongOption
from streams.spark.tables.parquet_files import bounds

PartitionValues = Mapping[str, str | None]


class Verdict(Enum):
    """What happens to a file."""

    KEEP = "keep"
    """None of its rows are removed."""
    DROP = "drop"
    """All of its rows are removed."""
    FILTER = "filter"
    """Some rows may be removed: it must be read."""


class Removal(Protocol):
    """A selection of rows to remove."""

    def columns(self) -> Sequence[str]:
        """The columns that decide."""
        ...

    def verdict(self, metadata: pq.FileMetaData, partition: PartitionValues) -> Verdict:
        """What a file's footer and folder decide."""
        ...

    def matches(self, rows: pa.Table, partition: PartitionValues) -> pa.ChunkedArray:
        """Which rows are removed: true or false, never null."""
        ...

    def predicate(self) -> str:
        """The same for delta-rs."""
        ...


@dataclass(frozen=True, slots=True)
class OlderThan:
    """Rows whose time (or day) is before a moment; rows without a time stay."""

    column: str
    kind: pa.DataType
    before: dt.datetime

    def columns(self) -> Sequence[str]:
        """The one with the time."""
        return [self.column]

    def verdict(self, metadata: pq.FileMetaData, partition: PartitionValues) -> Verdict:
        """By the folder's day, or the bounds in the footer."""
        if self.column in partition:
            return Verdict.DROP if self._is_day_before(partition[self.column]) else Verdict.KEEP
        found = bounds(metadata, self.column)
        if found is None:
            return Verdict.FILTER
        limit = self._limit()
        if found[1] < limit:
            return Verdict.DROP
        return Verdict.KEEP if found[0] >= limit else Verdict.FILTER

    def matches(self, rows: pa.Table, partition: PartitionValues) -> pa.ChunkedArray:
        """Those before the moment."""
        if self.column in partition or self.column not in rows.column_names:
            return pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])
        limit = pa.scalar(self._limit(), rows.schema.field(self.column).type)
        return pc.fill_null(pc.less(rows.column(self.column), limit), False)

    def predicate(self) -> str:
        """A comparison with a literal of the column's type."""
        name = '"' + self.column.replace('"', '""') + '"'
        if pa.types.is_date(self.kind) or pa.types.is_string(self.kind):
            day = f"'{self.before.astimezone(dt.UTC).date().isoformat()}'"
            return f"{name} < {day}" if pa.types.is_string(self.kind) else f"{name} < DATE {day}"
        moment = self.before.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return f"{name} < arrow_cast('{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')"

    def _limit(self) -> dt.date | dt.datetime:
        # Every day before the moment's day is over, and so older.
        return self.before.astimezone(dt.UTC).date() if pa.types.is_date(self.kind) else self.before

    def _is_day_before(self, value: str | None) -> bool:
        if value is None:
            return False
        try:
            return dt.date.fromisoformat(value[:10]) < self.before.astimezone(dt.UTC).date()
        except ValueError:
            raise WrongOption("column", self.column, f"must hold days or times, not {value!r}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRange:
    """Rows that came from a range of offsets of one partition of a topic, both ends included."""

    topic: str
    partition: int
    first: int
    last: int

    def columns(self) -> Sequence[str]:
        """The columns with a record's topic, partition and offset."""
        return ["_topic", "_partition", "_offset"]

    def verdict(self, metadata: pq.FileMetaData, partition: PartitionValues) -> Verdict:
        """By the folder and the bounds in the footer."""
        verdict = Verdict.DROP
        for column, low, high in self._wanted():
            found = _folder_bounds(partition[column], low) if column in partition else bounds(metadata, column)
            if found is None:
                verdict = Verdict.FILTER
            elif found[1] < low or found[0] > high:
                return Verdict.KEEP
            elif found[0] < low or found[1] > high:
                verdict = Verdict.FILTER
        return verdict

    def matches(self, rows: pa.Table, partition: PartitionValues) -> pa.ChunkedArray:
        """Those of the range; the folder has the values of columns that the file lacks."""
        matching = pa.chunked_array([pa.repeat(pa.scalar(True), rows.num_rows)])
        for column, low, high in self._wanted():
            if column in partition:
                found = _folder_bounds(partition[column], low)
                inside = pa.repeat(pa.scalar(found is not None and low <= found[0] <= high), rows.num_rows)
            elif column in rows.column_names:
                values = rows.column(column)
                inside = pc.and_(pc.greater_equal(values, pa.scalar(low)), pc.less_equal(values, pa.scalar(high)))
            else:
                inside = pa.repeat(pa.scalar(False), rows.num_rows)
            matching = pc.and_(matching, pc.fill_null(inside, False))
        return matching

    def predicate(self) -> str:
        """Three comparisons."""
        topic = self.topic.replace("'", "''")
        return (
            f'"_topic" = \'{topic}\' AND "_partition" = {self.partition} '
            f'AND "_offset" >= {self.first} AND "_offset" <= {self.last}'
        )

    def _wanted(self) -> list[tuple[str, Any, Any]]:
        return [
            ("_topic", self.topic, self.topic),
            ("_partition", self.partition, self.partition),
            ("_offset", self.first, self.last),
        ]


def _folder_bounds(value: str | None, like: Any) -> tuple[Any, Any] | None:
    """The only value of a folder, in the type of `like`, as both bounds."""
    return None if value is None else (type(like)(value), type(like)(value))
