"""Topics as a streaming source: where a query begins, how far each of its batches goes, and what its tasks read.

The driver holds one reader for the life of a query, in a process of its own; tasks get copies, which only read. So a
reader travels without its client, and opens one when it is first asked for an offset.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
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
from streams.spark.topics.offsets import LATEST, as_checkpoint, from_checkpoint, ids_from_checkpoint
from streams.spark.topics.options import SourceOptions
from streams.spark.topics.positions import Positions
from streams.spark.topics.ranges import OffsetRange, Offsets, RangePartition, TopicPartition, divided, shared_out
from streams.spark.topics.reading import HOW_TO_GO_ON
from streams.spark.topics.rows import RowMaker

log = logging.getLogger(__name__)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets of a query. What a task reads may be overridden: `read` gets a RangePartition."""

    def __init__(self, options: SourceOptions, rows: RowMaker | None = None) -> None:
        self.options = options
        self._rows = rows
        self._positions: Positions | None = None
        self._initial: dict[str, Any] | None = None
        self._is_start_noted = True
        self._target: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._read_at: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "_rows": self._rows}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["options"], state["_rows"])  # type: ignore[misc]  # a copy begins anew

    # --- offsets ---

    @override
    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins. Spark asks twice, and keeps no note: it must not change.

        The end of a topic changes with every record. Spark writes down where batches end, and not where the first one
        began: so the first one is empty where the start may move, and where it ends is where the query began.
        """
        if self._initial is None:
            options = self.options
            places = self._asked.existing_places(options.subscription)
            begin = self._asked.resolved(options.starting, places, late_is_end=options.starts_late_at_end)
            self._initial = as_checkpoint(begin, self._asked.ids(places))
            self._is_start_noted = not self._may_move
        return self._initial

    @property
    def _may_move(self) -> bool:
        """Whether the query would begin elsewhere a moment later."""
        starting = self.options.starting
        if starting.kind == "offsets":
            return LATEST in starting.offsets.values()
        return starting.kind == "latest" or (starting.kind != "earliest" and self.options.starts_late_at_end)

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch reads unless the trigger says otherwise."""
        most = self.options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @override
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next batch ends; at `start` when there is nothing, or too little, to read."""
        latest = self._latest = self._ends()
        if not self._is_start_noted:
            self._is_start_noted = True
            if start == self._initial:
                return start
        ids = self._asked.ids(latest)
        known = _without(from_checkpoint(start), made_anew(start, ids))
        if (target := self._target) is not None:
            latest = {place: min(offset, target[place]) for place, offset in latest.items() if place in target}
        begin = self._begun(known, latest)
        if self._waits_for_more(begin, latest, limit):
            return start
        self._read_at = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            latest = shared_out(begin, latest, rows_max=limit.max_rows)
        return as_checkpoint(latest, ids)

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the topics end, for the progress of the query: its lag."""
        return None if self._latest is None else as_checkpoint(self._latest)

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        """Read no further than what is there now."""
        self._target = self._ends()

    def _ends(self) -> dict[TopicPartition, int]:
        return self._asked.latest(self._asked.places(self.options.subscription))

    def _begun(self, known: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
        """Where each partition is read from: new ones from their beginning."""
        fresh = [place for place in latest if place not in known]
        begin = {place: offset for place, offset in known.items() if place in latest}
        return {**begin, **self._asked.earliest(fresh)} if fresh else begin

    def _waits_for_more(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        least = self.options.min_offsets
        if least is None or self._read_at is None or self._target is not None:
            return False
        if self.options.max_offsets is not None and isinstance(limit, ReadAllAvailable):
            return False  # The trigger wants all that there is.
        waited_ms = (time.monotonic() - self._read_at) * 1000
        rows = sum(max(0, offset - begin.get(place, offset)) for place, offset in latest.items())
        return rows < least and waited_ms < self.options.max_trigger_delay_ms

    # --- batches ---

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of a batch, cut for its tasks."""
        if not self._is_start_noted and start == self._initial:
            return []  # The first batch, which is empty, once more: what came since is read by the second.
        known, anew = from_checkpoint(start), made_anew(start, ids_from_checkpoint(end))
        if anew:
            self._report(f"Topics were deleted and made anew: {', '.join(sorted(anew))}")
        return [RangePartition(item) for item in self.ranges(_without(known, anew), from_checkpoint(end))]

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """The ranges between two offsets; DataLoss when some cannot be, unless that may be."""
        gone = sorted(place for place in start if place not in end)
        if gone:
            self._report(f"Partitions are gone that were read before: {_listed(gone)}")
        begin = self._begun(start, end)
        for topic, partition in sorted(place for place in begin if place not in start):
            if begin[topic, partition] > 0:
                self._report(f"New partition {topic}-{partition} begins at {begin[topic, partition]}, not at 0")
        for (topic, partition), offset in sorted(begin.items()):
            if offset > end[topic, partition]:
                moved = f"from {offset} back to {end[topic, partition]}"
                self._report(f"The end of partition {topic}-{partition} has moved {moved}: it was made anew")
        ranges = [OffsetRange(*place, offset, end[place]) for place, offset in sorted(begin.items())]
        return divided(ranges, parts_min=self.options.min_partitions, rows_max=self.options.max_records_per_partition)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, on an executor."""
        assert isinstance(partition, RangePartition), "partitions are planned above"
        assert self._rows is not None, "a reader without rows overrides this"
        return self._rows.read(partition.range)

    @override
    def commit(self, end: dict[str, Any]) -> None:
        """A batch is done: its end is committed for the group, so that lag is seen by all."""
        group_id = self.options.group_id
        if group_id is None:
            return
        try:
            self._asked.commit(group_id, from_checkpoint(end))
        except ClientError as error:
            # The checkpoint counts; this is only told to others, and told again by the next batch.
            log.warning("progress was not committed", extra={"group": group_id, "reason": str(error)})

    @override
    def stop(self) -> None:
        """Nothing is open but a client that ends with its process."""
        self._positions = None

    @property
    def _asked(self) -> Positions:
        if self._positions is None:
            self._positions = Positions(self.options.cluster)
        return self._positions

    def _report(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLoss(f"{what}. {HOW_TO_GO_ON}")
        log.warning("some data may have been lost", extra={"reason": what})


def made_anew(start: Mapping[str, Any], ids: Mapping[str, str]) -> set[str]:
    """Topics that are not the ones that they were at `start`."""
    return {topic for topic, before in ids_from_checkpoint(start).items() if ids.get(topic, before) != before}


def _without(offsets: Offsets, topics: set[str]) -> dict[TopicPartition, int]:
    return {place: offset for place, offset in offsets.items() if place[0] not in topics}


def _listed(places: Sequence[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in places)
