"""The Spark source of a sink's query: it reads no records but reports of files that executors have written them to."""

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
from connectors.spark.failures import MarkedFailure
from connectors.spark.range_writer import write_ranges
from connectors.spark.spec import QUIET, SinkFolders, SinkSpec
from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError
from streams.spark.commits.entries import ENTRY
from streams.spark.topics.cluster import READ_COMMITTED, Cluster
from streams.spark.topics.offsets import from_checkpoint, to_checkpoint
from streams.spark.topics.ranges import OffsetRange, limit_rows, split_ranges

log = logging.getLogger(__name__)

_ROWS_PER_TASK_MIN: Final = 20_000
"""Fewer records than this are not worth another task and another file."""
_REFRESH_SECONDS: Final = 5.0
"""How often to look for new topics and partitions."""
_IDLE_MS: Final = 50
_ISOLATION: Final = "isolation.level"


def sink_source(reader: "SinkStreamReader", connector: str) -> type[DataSource]:
    """The source of one query: a class of its own, as the options of a source are visible and a reader has secrets."""
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


class TopicRecreated(RetriableError):
    """A partition ends before the position: the query must restart, and read the topic from its beginning."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Partition {partition[1]} of topic {partition[0]} ends before the offset that was read last")


class RangesPartition(InputPartition):
    """The ranges that one Spark task writes."""

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
        self._partitions: list[TopicPartition] = []
        self._next_refresh = 0.0
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
            # The cluster will be back, and a query that fails takes seconds to restart.
            log.warning("the end offsets of the topics are unknown", extra={"reason": str(error)})
            return start
        if recreated := [partition for partition, end in ends.items() if begin.get(partition, 0) > end]:
            raise MarkedFailure(TopicRecreated(recreated[0]))
        self._reported = {**begin, **ends}
        # A partition that was never read is read from its beginning.
        known = {partition: begin.get(partition, 0) for partition in {*begin, *ends}}
        wanted = {partition: max(ends.get(partition, 0), known[partition]) for partition in known}
        if wanted == begin and self._spec.config.trigger_interval_ms < _IDLE_MS:
            time.sleep(_IDLE_MS / 1000)  # With an interval of 0, Spark asks a hundred times a second.
        rows_max = None if isinstance(limit, ReadAllAvailable) else self._spec.config.batch_max_records
        return to_checkpoint(wanted if rows_max is None else limit_rows(known, wanted, rows_max=rows_max))

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        return to_checkpoint(self._reported) if self._reported else None

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, until = from_checkpoint(start), from_checkpoint(end)
        ranges = [OffsetRange(*one, begin.get(one, 0), offset) for one, offset in sorted(until.items())]
        rows_max = self._spec.config.task_max_records
        total = sum(one.size for one in ranges if one.size > 0)
        tasks = min(self._parallelism, math.ceil(total / _ROWS_PER_TASK_MIN))
        parts = split_ranges(ranges, parts_min=tasks, rows_max=rows_max)
        return [RangesPartition(some) for some in _bins(parts, max(tasks, math.ceil(total / rows_max)))]

    def _ends(self) -> dict[TopicPartition, int]:
        if self._admin is None:
            self._admin = self._spec.open_admin()
        if not self._partitions or time.monotonic() >= self._next_refresh:
            counts = self._admin.topic_names()
            chosen = self._spec.topics.chosen(counts)
            self._partitions = [(topic, number) for topic in chosen for number in range(counts.get(topic, 0))]
            self._next_refresh = time.monotonic() + _REFRESH_SECONDS
        if not self._partitions:
            return {}
        if self._cluster.isolation == READ_COMMITTED:
            return self._admin.committed_ends(self._partitions)
        return self._admin.offsets(self._partitions, "latest")

    # --- on executors ---

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangesPartition)
        return write_ranges(self._spec, self._folders, self._cluster, partition.ranges)


def _bins(parts: Sequence[OffsetRange], count: int) -> list[list[OffsetRange]]:
    """The parts for each of `count` tasks, with about the same number of records."""
    bins: list[list[OffsetRange]] = [[] for _ in range(max(1, min(count, len(parts))))]
    heap = [(0, index) for index in range(len(bins))]
    for part in sorted(parts, key=lambda part: -part.size):
        size, index = heapq.heappop(heap)
        bins[index].append(part)
        heapq.heappush(heap, (size + part.size, index))
    return [sorted(some, key=lambda one: (one.topic, one.partition, one.start)) for some in bins if some]
