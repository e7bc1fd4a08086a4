"""Inputs as sources of Spark: as streams, which continue where their query is, and as tables, to their present end."""

import hashlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType
from typing_extensions import override

from core_broker.client.errors import ClientError
from streams.errors import DataLoss
from streams.model.plan import DELETED, STREAM_TIME, TIME, Input
from streams.model.sources import PSEUDO_COLUMNS, WINDOW_COLUMNS
from streams.model.types import quoted, spark_type
from streams.spark.queries.input_rows import InputRows
from streams.spark.queries.notes import read_note
from streams.spark.queries.spec import BEGIN_ANEW
from streams.spark.topics.offsets import from_checkpoint, ids_from_checkpoint, to_checkpoint
from streams.spark.topics.options import Subscription
from streams.spark.topics.positions import Positions
from streams.spark.topics.ranges import OffsetRange, Offsets, RangePartition, TopicPartition, limit_rows
from streams.spark.topics.stream_reader import recreated_topics

log = logging.getLogger(__name__)

VIEW: Final = "view"
"""In the offsets of a checkpoint: which input they are of."""
ROWS_MAX: Final = 100_000
"""Records of a batch, about."""
_WAIT_SECONDS: Final = 0.5
"""How long to wait for records before Spark gets an empty answer; it cannot stop a query meanwhile."""
_BUSY_SECONDS: Final = 5.0
_BUSY_PAUSE_SECONDS: Final = 0.02
"""How often to look for records while there were some a short time ago."""
_REFRESH_SECONDS: Final = 5.0
"""How often to look for new partitions, and whether the topic was recreated."""
_ADVICE: Final = f"Records were deleted before the query had read them: {BEGIN_ANEW}"


def input_columns(given: Input, *, has_stream_time: bool) -> str:
    """The columns of a view, in Spark's SQL."""
    source = given.source
    columns = {column.name: spark_type(column.sql_type) for column in source.columns}
    for header in source.headers:
        columns[header.name] = "binary" if header.key else "array<struct<`KEY`:string,`VALUE`:binary>>"
    for name, kind in (PSEUDO_COLUMNS | (WINDOW_COLUMNS if source.window else {})).items():
        columns[name] = "int" if kind == "INTEGER" else "bigint"
    columns[TIME] = "timestamp"
    if has_stream_time:
        columns[STREAM_TIME] = "bigint"
    if source.kind == "TABLE":
        columns[DELETED] = "boolean"
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())


def arrow_schema(columns: str) -> pa.Schema:
    """The same columns as Arrow has them."""
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType), "columns are a struct"
    return pa.schema(to_arrow_schema(schema, timezone="UTC"))


class TimedPartition(RangePartition):
    """What one task reads, and the stream time before it."""

    def __init__(self, value: OffsetRange, stream_time_ms: int | None) -> None:
        super().__init__(value)
        self.stream_time_ms = stream_time_ms


class InputReader(DataSourceStreamReader):
    """Plans the batches of an input. Spark keeps it in a process of its own; tasks get copies."""

    def __init__(self, rows: InputRows, start: Mapping[str, Any], *, idle_ms: int | None = None) -> None:
        """`idle_ms`: how often to look for records, if it may wait for them; otherwise Spark asks again and again."""
        self._rows = rows
        self._idle_seconds = None if idle_ms is None else idle_ms / 1000
        self._read_at = 0.0
        self._start = dict(start)
        self._positions: Positions | None = None
        self._partitions: set[TopicPartition] = set()
        self._ids: dict[str, str] = {}
        self._next_refresh = 0.0
        self._ends: dict[TopicPartition, int] = {}

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_positions": None}

    @override
    def initialOffset(self) -> dict[str, Any]:
        """Where the query began; decided once, before it started."""
        return self._start

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(ROWS_MAX)

    @override
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next batch ends; at `start` if there is nothing to read."""
        begin = from_checkpoint(start)
        try:
            ends = self._wait(start, begin)
        except ClientError as error:
            # The cluster will be back, and a query that fails takes seconds to restart.
            log.warning("the ends of a topic are unknown", extra={"view": self._rows.input.view, "reason": str(error)})
            return start
        self._ends = ends
        known = {partition: begin.get(partition, 0) for partition in {*begin, *ends}}
        wanted = {partition: max(ends.get(partition, 0), offset) for partition, offset in known.items()}
        if wanted == begin:
            return start
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else ROWS_MAX
        return self._document(limit_rows(known, wanted, rows_max=rows_max))

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._document(self._ends) if self._ends else None

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin = from_checkpoint(start)
        stream_time = self._stream_time(begin) if self._rows.follows_time else None
        ranges = [OffsetRange(*one, begin.get(one, 0), offset) for one, offset in sorted(from_checkpoint(end).items())]
        return [TimedPartition(one, stream_time) for one in ranges if one.size > 0]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range, on an executor."""
        assert isinstance(partition, TimedPartition), "as `partitions` returned them"
        return self._rows.read(partition.range, partition.stream_time_ms)

    def _wait(self, start: dict[str, Any], begin: Offsets) -> dict[TopicPartition, int]:
        """The ends of all partitions, as soon as there is something to read.

        Asked from here, a cluster answers within a millisecond or two; a round of Spark takes several times as long.
        """
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            ends, now = self._look(start), time.monotonic()
            if any(end > begin.get(place, 0) for place, end in ends.items()):
                self._read_at = now
                return ends
            if self._idle_seconds is None or now >= until:
                return ends
            is_busy = now - self._read_at < _BUSY_SECONDS
            time.sleep(min(_BUSY_PAUSE_SECONDS, self._idle_seconds) if is_busy else self._idle_seconds)

    def _look(self, start: dict[str, Any]) -> dict[TopicPartition, int]:
        """The ends of all partitions; DataLoss if this is not the topic that was read before."""
        if self._positions is None:
            self._positions = Positions(self._rows.cluster)
        topic = self._rows.input.source.topic
        if time.monotonic() >= self._next_refresh:
            self._partitions = self._positions.partitions(Subscription("subscribe", topics=(topic,)))
            self._ids = self._positions.ids(self._partitions)
            self._next_refresh = time.monotonic() + _REFRESH_SECONDS
        begin = from_checkpoint(start)
        if begin and not self._partitions:
            raise DataLoss(f"Topic {topic} does not exist any more. {_ADVICE}")
        if recreated_topics(start, self._ids):
            raise DataLoss(f"Topic {topic} was deleted and created again. {_ADVICE}")
        ends = self._positions.latest(self._partitions)
        for partition, end in ends.items():
            if begin.get(partition, 0) > end:
                where = f"Partition {partition[1]} of topic {topic}"
                raise DataLoss(f"{where} ends at {end}, but was read until {begin[partition]}. {_ADVICE}")
        return ends

    def _document(self, offsets: Offsets) -> dict[str, Any]:
        return {**to_checkpoint(offsets, self._ids), VIEW: self._rows.input.view}

    def _stream_time(self, begin: Offsets) -> int | None:
        """The stream time after the batches before: each has left a note, at the end of what it has read."""
        notes = (read_note(self._rows.notes, partition, offset) for (_, partition), offset in begin.items())
        times = [note.stream_time_ms for note in notes if note is not None and note.stream_time_ms is not None]
        return max(times, default=None)


def first_offsets(positions: Positions, given: Input) -> dict[str, Any]:
    """Where an input begins that was never read."""
    partitions = positions.existing_partitions(Subscription("subscribe", topics=(given.source.topic,)))
    offsets = positions.earliest(partitions) if given.starting == "earliest" else positions.latest(partitions)
    return {**to_checkpoint(offsets, positions.ids(partitions)), VIEW: given.view}


def continued_offsets(document: Mapping[str, Any], offsets: Offsets) -> dict[str, Any]:
    """The same place with other offsets."""
    found = {**from_checkpoint(document), **offsets}
    return {**to_checkpoint(found, ids_from_checkpoint(document)), VIEW: document[VIEW]}


class InputBatchReader(DataSourceReader):
    """Reads an input once, from its beginning to its present end."""

    def __init__(self, rows: InputRows) -> None:
        self._rows = rows

    @override
    def partitions(self) -> Sequence[InputPartition]:
        positions, topic = Positions(self._rows.cluster), self._rows.input.source.topic
        partitions = positions.existing_partitions(Subscription("subscribe", topics=(topic,)))
        first, ends = positions.earliest(partitions), positions.latest(partitions)
        ranges = [OffsetRange(*one, first.get(one, 0), end) for one, end in sorted(ends.items())]
        return [TimedPartition(one, None) for one in ranges if one.size > 0]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, TimedPartition):
            return iter(())  # Spark makes one empty task when there is none
        return self._rows.read(partition.range, None)


def stream_frame(
    session: SparkSession, rows: InputRows, columns: str, start: Mapping[str, Any], *, idle_ms: int | None = None
) -> DataFrame:
    """An input as a stream, with its watermark; `idle_ms` as for its reader."""
    reader = InputReader(rows, start, idle_ms=idle_ms)
    frame = session.readStream.format(_register(session, rows, columns, stream=reader)).load()
    delay = rows.input.watermark_ms
    return frame if delay is None else frame.withWatermark(TIME, f"{delay} milliseconds")


def table_frame(session: SparkSession, rows: InputRows, columns: str) -> DataFrame:
    """An input as it is now."""
    return session.read.format(_register(session, rows, columns, batch=InputBatchReader(rows))).load()


def _register(
    session: SparkSession,
    rows: InputRows,
    columns: str,
    *,
    stream: InputReader | None = None,
    batch: InputBatchReader | None = None,
) -> str:
    """Make a source of its own for an input: the options of a source are visible, and a reader has secrets."""
    identity = msgspec.json.encode([rows.query, rows.input.view, rows.input.source.topic, stream is None])
    name_of_source = f"caudal_input_{hashlib.blake2s(identity, digest_size=8).hexdigest()}"

    class InputSource(DataSource):
        @classmethod
        @override
        def name(cls) -> str:
            return name_of_source

        @override
        def schema(self) -> str:
            return columns

        @override
        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            assert stream is not None, "a table is not read as a stream"
            return stream

        @override
        def reader(self, schema: StructType) -> DataSourceReader:
            assert batch is not None, "a stream is not read as a table"
            return batch

    session.dataSource.register(InputSource)
    return name_of_source
