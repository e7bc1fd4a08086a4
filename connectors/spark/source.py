"""What Spark reads for a sink: not records, but what executors tell of the files that they have written them into."""

import hashlib
import heapq
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from typing_extensions import override

from connect.api.errors import RetriableError
from connectors.spark.entries import ENTRY
from connectors.spark.failures import MarkedFailure
from connectors.spark.letter_box import QUIET, client_settings
from connectors.spark.manifest import TopicPartition
from connectors.spark.range_writer import write_ranges
from connectors.spark.spec import SinkFolders, SinkSpec
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from streams.spark.topics.cluster import READ_COMMITTED, Cluster
from streams.spark.topics.offsets import from_checkpoint, to_checkpoint
from streams.spark.topics.ranges import OffsetRange, limit_rows, split_ranges

log = logging.getLogger(__name__)

_ROWS_PER_TASK_MIN: Final = 20_000
"""Fewer records than this are not worth another task, and another file."""
_LOOK_SECONDS: Final = 5.0
"""How often new topics and partitions are looked for."""
_IDLE_MS: Final = 50
_ISOLATION: Final = "isolation.level"


def sink_source(reader: "SinkStreamReader", connector: str) -> type[DataSource]:
    """A source of one query. It is a class of its own, as options of sources can be seen, and a reader has secrets."""
    digest = hashlib.blake2s(connector.encode(), digest_size=8).hexdigest()

    class SinkSource(DataSource):
        @classmethod
        @override
        def name(cls) -> str:
            return f"caudal_sink_{digest}"

        @override
        def schema(self) -> str:
            return f"{ENTRY} string"

        @override
        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return reader

    return SinkSource


class MadeAnew(RetriableError):
    """A topic ends before what was read of it: the query must begin again, and the topic with it."""

    def __init__(self, place: TopicPartition) -> None:
        super().__init__(f"Partition {place[1]} of topic {place[0]} ends before what was read of it")


class RangesPartition(InputPartition):
    """What one task of Spark writes."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        super().__init__(tuple(ranges))
        self.ranges = tuple(ranges)


class SinkStreamReader(DataSourceStreamReader):
    """Plans on the driver, writes on executors."""

    def __init__(
        self, spec: SinkSpec, folders: SinkFolders, positions: Mapping[TopicPartition, int], *, parallelism: int
    ) -> None:
        self._spec = spec
        self._folders = folders
        self._positions = dict(positions)
        self._parallelism = parallelism
        others = {**QUIET, **{key: value for key, value in spec.consumer.items() if key != "bootstrap.servers"}}
        isolation = others.pop(_ISOLATION, READ_COMMITTED)
        self._cluster = Cluster(spec.consumer["bootstrap.servers"], others, isolation)
        self._admin: Admin | None = None
        self._places: list[TopicPartition] = []
        self._next_look = 0.0
        self._reported: dict[TopicPartition, int] = {}

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_admin": None}

    # --- on the driver ---

    @override
    def initialOffset(self) -> dict[str, Any]:
        return to_checkpoint(self._positions)

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._spec.config.batch_max_records)

    @override
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = from_checkpoint(start)
        try:
            ends = self._ends()
        except ClientError as error:
            # A cluster that is away comes back; a query that fails takes seconds to begin again.
            log.warning("the cluster does not tell how far topics go", extra={"reason": str(error)})
            return start
        if made_anew := [place for place, end in ends.items() if begin.get(place, 0) > end]:
            raise MarkedFailure(MadeAnew(made_anew[0]))
        self._reported = {**begin, **ends}
        # What was never read is read from its beginning.
        known = {place: begin.get(place, 0) for place in {*begin, *ends}}
        wanted = {place: max(ends.get(place, 0), known[place]) for place in known}
        if wanted == begin and self._spec.config.trigger_interval_ms < _IDLE_MS:
            time.sleep(_IDLE_MS / 1000)  # Spark asks a hundred times a second when it is told to wait for nothing.
        rows_max = None if isinstance(limit, ReadAllAvailable) else self._spec.config.batch_max_records
        return to_checkpoint(wanted if rows_max is None else limit_rows(known, wanted, rows_max=rows_max))

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        return to_checkpoint(self._reported) if self._reported else None

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, until = from_checkpoint(start), from_checkpoint(end)
        ranges = [OffsetRange(*place, begin.get(place, 0), offset) for place, offset in sorted(until.items())]
        rows_max = self._spec.config.task_max_records
        total = sum(one.size for one in ranges if one.size > 0)
        tasks = min(self._parallelism, math.ceil(total / _ROWS_PER_TASK_MIN))
        parts = split_ranges(ranges, parts_min=tasks, rows_max=rows_max)
        return [RangesPartition(some) for some in _bins(parts, max(tasks, math.ceil(total / rows_max)))]

    def _ends(self) -> dict[TopicPartition, int]:
        if self._admin is None:
            self._admin = Admin(client_settings(self._spec.admin))
        if not self._places or time.monotonic() >= self._next_look:
            partitions = self._admin.topic_names()
            chosen = self._spec.topics.chosen(partitions)
            self._places = [(topic, number) for topic in chosen for number in range(partitions.get(topic, 0))]
            self._next_look = time.monotonic() + _LOOK_SECONDS
        if not self._places:
            return {}
        if self._cluster.isolation == READ_COMMITTED:
            return self._admin.committed_ends(self._places)
        return self._admin.offsets(self._places, "latest")

    # --- on executors ---

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangesPartition)
        return write_ranges(self._spec, self._folders, self._cluster, partition.ranges)


def _bins(parts: Sequence[OffsetRange], count: int) -> list[list[OffsetRange]]:
    """Parts for so many tasks, each with about as much to do."""
    bins: list[list[OffsetRange]] = [[] for _ in range(max(1, min(count, len(parts))))]
    heap = [(0, index) for index in range(len(bins))]
    for part in sorted(parts, key=lambda part: -part.size):
        size, index = heapq.heappop(heap)
        bins[index].append(part)
        heapq.heappush(heap, (size + part.size, index))
    return [sorted(some, key=lambda one: (one.topic, one.partition, one.start)) for some in bins if some]
