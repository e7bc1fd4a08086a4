"""A transaction coordinator among fakes: `__transaction_state` and the topics in memory, time moved by hand."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import cast

from core_broker.cluster.partitions import Partitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import AppendResult
from core_broker.log.producer_state import Origin
from core_broker.protocol.records import BatchHeader, parse_header, stamp
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

    topic = "__transaction_state"
    is_leader = True

    def __init__(self, index: int) -> None:
        self.index = index
        self.leader_epoch = 0
        self.log = FakeLog()
        self.failures: deque[ErrorCode] = deque()
        self.late_failures: deque[ErrorCode] = deque()
        """As `failures`, but the record is in the log nevertheless."""
        self.gate: asyncio.Event | None = None
        """When set to an event, appends are committed only once it is set."""

    @property
    def high_watermark(self) -> int:
        """Everything is committed that nothing holds back."""
        return self.log.end_offset if self.gate is None or self.gate.is_set() else 0

    def append(
        self,
        buffer: bytearray,
        *,
        acks_all: bool,
        origin: Origin = Origin.COORDINATOR,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append one batch."""
        if self.failures:
            raise BrokerError(self.failures.popleft())
        offset = self.log.end_offset
        stamp(buffer, parse_header(buffer), base_offset=offset, leader_epoch=self.leader_epoch)
        self.log.batches.append(buffer)
        return AppendResult(offset, offset, -1, 0, False)

    async def wait_committed(self, offset: int, *, timeout_ms: int) -> None:
        """Wait until nothing holds the append back."""
        if self.gate is not None:
            await self.gate.wait()
        if self.late_failures:
            raise BrokerError(self.late_failures.popleft())


class FakeStatePartitions:
    """All partitions of `__transaction_state`; they outlive coordinators, as a disk does."""

    def __init__(self) -> None:
        self.by_index = [FakeStatePartition(index) for index in range(STATE_PARTITIONS)]

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

    async def allocate_producer_ids(self, count: int = 1000) -> range:
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
        for partition in self.state.by_index:
            partition.leader_epoch = self.leader_epoch
            coordinator.become_leader(partition.index, self.leader_epoch)
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
