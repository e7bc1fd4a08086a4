"""Topics as a streaming source: where a query begins, how far each of its batches goes, and what its tasks read.

The driver holds one reader for the life of a query, in a process of its own; tasks get copies, which only read. So a
reader is pickled without its client, and opens one when it first needs an offset.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from typing_extensions import override

from core_broker.client.errors import ClientError
from streams.errors import DataLoss
from streams.spark.topics.fetching import DATA_LOSS_ADVICE
from streams.spark.topics.offsets import LATEST, from_checkpoint, ids_from_checkpoint, to_checkpoint
from streams.spark.topics.options import SourceOptions
from streams.spark.topics.positions import Positions, partition_names
from streams.spark.topics.ranges import OffsetRange, Offsets, RangePartition, TopicPartition, limit_rows, split_ranges
from streams.spark.topics.rows import RowMaker

log = logging.getLogger(__name__)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offsets of a query. Subclasses may override what a task reads: `read` gets a RangePartition."""

    def __init__(self, options: SourceOptions, rows: RowMaker | None = None) -> None:
        self.options = options
        self._rows = rows
        self._initial: dict[str, Any] | None = None
        self._is_start_recorded = True
        self._target: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._read_at: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "_rows": self._rows}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["options"], state["_rows"])  # type: ignore[misc]  # a copy starts with fresh state

    @cached_property
    def _positions(self) -> Positions:
        return Positions(self.options.cluster)

    # --- offsets ---

    @override
    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins. Spark asks twice and does not store it: it must not change.

        The end of a topic changes with every record. Spark stores where batches end, but not where the first one
        began: so if the start may move, the first batch is empty, and where it ends is where the query began.
        """
        if self._initial is None:
            options, starting = self.options, self.options.starting
            partitions = self._positions.existing_partitions(options.subscription)
            begin = self._positions.resolve(starting, partitions, late_is_end=options.starts_late_at_end)
            self._initial = to_checkpoint(begin, self._positions.ids(partitions))
            may_move = starting.is_at("latest", LATEST) or (
                starting.kind in ("timestamp", "timestamps") and options.starts_late_at_end
            )
            self._is_start_recorded = not may_move
        return self._initial

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch reads by default."""
        most = self.options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @override
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next batch ends; at `start` if there is nothing, or too little, to read."""
        latest = self._latest = self._ends()
        if not self._is_start_recorded:
            self._is_start_recorded = True
            if start == self._initial:
                return start
        ids = self._positions.ids(latest)
        known = _without(from_checkpoint(start), recreated_topics(start, ids))
        if (target := self._target) is not None:
            latest = {item: min(offset, target[item]) for item, offset in latest.items() if item in target}
        begin = self._starts(known, latest)
        if self._waits_for_more(begin, latest, limit):
            return start
        self._read_at = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            latest = limit_rows(begin, latest, rows_max=limit.max_rows)
        return to_checkpoint(latest, ids)

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the topics end, for the lag in the query's progress."""
        return None if self._latest is None else to_checkpoint(self._latest)

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than the present end of the topics."""
        self._target = self._ends()

    def _ends(self) -> dict[TopicPartition, int]:
        return self._positions.latest(self._positions.partitions(self.options.subscription))

    def _starts(self, known: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
        """Where each partition is read from: new ones from their beginning."""
        fresh = [item for item in latest if item not in known]
        begin = {item: offset for item, offset in known.items() if item in latest}
        return {**begin, **self._positions.earliest(fresh)} if fresh else begin

    def _waits_for_more(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        least = self.options.min_offsets
        if least is None or self._read_at is None or self._target is not None:
            return False
        if self.options.max_offsets is not None and isinstance(limit, ReadAllAvailable):
            return False  # The trigger wants everything that is there.
        waited_ms = (time.monotonic() - self._read_at) * 1000
        rows = sum(max(0, offset - begin.get(item, offset)) for item, offset in latest.items())
        return rows < least and waited_ms < self.options.max_trigger_delay_ms

    # --- batches ---

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of a batch, split for its tasks."""
        if not self._is_start_recorded and start == self._initial:
            return []  # The empty first batch again: the second reads what has arrived since.
        known, recreated = from_checkpoint(start), recreated_topics(start, ids_from_checkpoint(end))
        if recreated:
            self._report_loss(f"Topics were deleted and recreated: {', '.join(sorted(recreated))}")
        return [RangePartition(item) for item in self.ranges(_without(known, recreated), from_checkpoint(end))]

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """The ranges between two offsets; DataLoss if some are gone, unless `failOnDataLoss` is false."""
        gone = [item for item in start if item not in end]
        if gone:
            self._report_loss(f"Partitions that were read before no longer exist: {partition_names(gone)}")
        begin = self._starts(start, end)
        for topic, partition in sorted(item for item in begin if item not in start):
            if begin[topic, partition] > 0:
                self._report_loss(f"New partition {topic}-{partition} begins at {begin[topic, partition]}, not at 0")
        for (topic, partition), offset in sorted(begin.items()):
            if offset > end[topic, partition]:
                moved = f"from {offset} back to {end[topic, partition]}"
                self._report_loss(f"The end of partition {topic}-{partition} has moved {moved}: it was recreated")
        ranges = [OffsetRange(*item, offset, end[item]) for item, offset in sorted(begin.items())]
        return split_ranges(
            ranges, parts_min=self.options.min_partitions, rows_max=self.options.max_records_per_partition
        )

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, on an executor."""
        assert isinstance(partition, RangePartition), "as `partitions` returned them"
        assert self._rows is not None, "a reader without rows overrides this"
        return self._rows.read(partition.range)

    @override
    def commit(self, end: dict[str, Any]) -> None:
        """Commit the end of a finished batch for the group, so that every tool sees its lag."""
        group_id = self.options.group_id
        if group_id is None:
            return
        try:
            self._positions.commit(group_id, from_checkpoint(end))
        except ClientError as error:
            # The checkpoint is what counts; the next batch commits again.
            log.warning("progress was not committed", extra={"group": group_id, "reason": str(error)})

    @override
    def stop(self) -> None:
        """Nothing is open but a client that ends with its process."""

    def _report_loss(self, reason: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLoss(f"{reason}. {DATA_LOSS_ADVICE}")
        log.warning("some data may have been lost", extra={"reason": reason})


def recreated_topics(start: Mapping[str, Any], ids: Mapping[str, str]) -> set[str]:
    """Topics that were deleted and recreated since `start`."""
    return {topic for topic, before in ids_from_checkpoint(start).items() if ids.get(topic, before) != before}


def _without(offsets: Offsets, topics: set[str]) -> dict[TopicPartition, int]:
    return {item: offset for item, offset in offsets.items() if item[0] not in topics}
