"""A transaction coordinator among fakes: `__transaction_state` and the topics in memory, time moved by hand."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from core_broker.cluster.partitions import Partitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.records import BatchHeader, Record, build_batch, parse_header
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.markers import MarkerRequest
from core_broker.transactions.producer_ids import ProducerIds

STATE_PARTITIONS = 3
SETTLE_MS = 5000
TIMER_SECONDS = 0.75
"""Unlike any pause between two tries."""


class FakeLog:
    """Batches in memory."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.batches: list[bytearray] = []

    @property
    def end_offset(self) -> int:
        """One offset for each batch: coordinators write one record at a time."""
        return len(self.batches)

    def read_batches(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches from `start` to `end`."""
        for batch in self.batches[start:end]:
            yield parse_header(batch, 0), memoryview(batch)


class FakeStatePartition:
    """A partition of `__transaction_state` whose appends can fail or be held back."""

    def __init__(self) -> None:
        self.log = FakeLog()
        self.failures: deque[ErrorCode] = deque()
        self.late_failures: deque[ErrorCode] = deque()
        """As `failures`, but the record is in the log nevertheless."""
        self.gate: asyncio.Event | None = None
        """When set to an event, appends are committed only once it is set."""

    async def append_records(self, records: Sequence[Record], *, timeout_ms: int = 5000) -> int:
        """Append one batch."""
        if self.failures:
            raise BrokerError(self.failures.popleft())
        offset = self.log.end_offset
        self.log.batches.append(build_batch(records, base_offset=offset))
        if self.gate is not None:
            await self.gate.wait()
        if self.late_failures:
            raise BrokerError(self.late_failures.popleft())
        return offset


class FakeStatePartitions:
    """All partitions of `__transaction_state`; they outlive coordinators, as a disk does."""

    def __init__(self) -> None:
        self.by_index = [FakeStatePartition() for _ in range(STATE_PARTITIONS)]

    def get(self, topic: str, index: int) -> FakeStatePartition:
        """One partition."""
        assert topic == "__transaction_state"
        return self.by_index[index]


class FakeTopics:
    """The partitions of ordinary topics: which markers they were given."""

    def __init__(self) -> None:
        self.markers: list[tuple[str, int, MarkerRequest]] = []
        self.failures: dict[tuple[str, int], deque[ErrorCode | Exception]] = {}
        self.gate: asyncio.Event | None = None
        self.stuck: set[tuple[str, int]] = set()

    async def write_marker(self, topic: str, partition: int, marker: MarkerRequest) -> ErrorCode:
        """Take a marker, or answer with the next failure arranged for the partition."""
        if self.gate is not None:
            await self.gate.wait()
        if (topic, partition) in self.stuck:
            await asyncio.Event().wait()
        failures = self.failures.get((topic, partition))
        if failures:
            failure = failures.popleft()
            if isinstance(failure, Exception):
                raise failure
            return failure
        self.markers.append((topic, partition, marker))
        return ErrorCode.NONE

    def of(self, topic: str, partition: int) -> list[tuple[int, int, bool]]:
        """Producer id, epoch and decision of each marker of a partition."""
        return [
            (marker.producer_id, marker.producer_epoch, marker.commit)
            for name, index, marker in self.markers
            if (name, index) == (topic, partition)
        ]


class TransactionWorld:
    """Coordinators that come and go over the same storage."""

    def __init__(self, *, transaction_version: int = 2) -> None:
        self.settings = BrokerSettings(
            transaction_abort_timed_out_transaction_cleanup_interval_ms=int(TIMER_SECONDS * 1000)
        )
        self.clock = ManualClock(1_000_000)
        self.state = FakeStatePartitions()
        self.topics = FakeTopics()
        self.transaction_version = transaction_version
        self.leader_epoch = 0
        self.next_producer_id = 1000
        self.completion_wait_ms = 0
        self.pauses: list[float] = []
        self.timer = asyncio.Event()
        """Set it to let the coordinator look at the clock."""

    async def allocate_producer_ids(self, count: int) -> range:
        """A block of ids."""
        first = self.next_producer_id
        self.next_producer_id += count
        return range(first, self.next_producer_id)

    def coordinator(self) -> TransactionCoordinator:
        """A coordinator that has just been made leader of everything, and does not run yet."""
        self.leader_epoch += 1
        coordinator = TransactionCoordinator(
            settings=self.settings,
            clock=self.clock,
            partitions=cast(Partitions, self.state),
            partition_count=lambda: STATE_PARTITIONS,
            producer_ids=ProducerIds(self.allocate_producer_ids),
            write_marker=self.topics.write_marker,
            transaction_version=lambda: self.transaction_version,
            completion_wait_ms=self.completion_wait_ms,
            sleep=self._pause,
        )
        for index in range(STATE_PARTITIONS):
            coordinator.become_leader(index, self.leader_epoch)
        return coordinator

    @asynccontextmanager
    async def running(self) -> AsyncIterator[TransactionCoordinator]:
        """A coordinator that runs, with everything loaded and every marker written that can be."""
        coordinator = self.coordinator()
        task = asyncio.get_running_loop().create_task(coordinator.run())
        await asyncio.sleep(0)
        if self.topics.gate is None:
            assert await coordinator.wait_until_idle(timeout_ms=SETTLE_MS)
        try:
            yield coordinator
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _pause(self, seconds: float) -> None:
        """Pauses between tries pass at once."""
        if seconds == TIMER_SECONDS:
            await self.timer.wait()
            self.timer.clear()
            return
        self.pauses.append(seconds)
        await asyncio.sleep(0)


async def settled(coordinator: TransactionCoordinator) -> None:
    """Let the coordinator finish what it has begun."""
    assert await coordinator.wait_until_idle(timeout_ms=SETTLE_MS)


async def let_others_run() -> None:
    """Give background work the time it needs when nothing holds it up."""
    for _ in range(20):
        await asyncio.sleep(0)
