"""Partitions in memory, with the contract that coordinators write to: append, read back, fail on demand."""

import asyncio
from collections.abc import Iterator

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import AppendResult
from core_broker.log.producer_state import Origin
from core_broker.protocol.records import (
    BatchHeader,
    Record,
    end_transaction_marker,
    parse_batches,
    parse_header,
    read_records,
    stamp,
)


class FakeLog:
    """Batches in a list."""

    def __init__(self) -> None:
        self.batches: list[bytearray] = []
        self.start_offset = 0
        self.end_offset = 0

    def read_batches(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches that reach into [start, end)."""
        for batch in list(self.batches):
            header = parse_header(batch)
            if header.last_offset >= start and header.base_offset < end:
                yield header, memoryview(batch)

    def records(self) -> list[Record]:
        """All data records, in order."""
        found: list[Record] = []
        for batch in self.batches:
            header = parse_header(batch)
            if not header.is_control:
                found.extend(read_records(batch, header))
        return found


class FakePartition:
    """A partition that commits at once, or when told to."""

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.leader_epoch = 0
        self.is_leader = True
        self.log = FakeLog()
        self.error: ErrorCode | None = None
        """Refuse every append with this."""
        self.held: asyncio.Event | None = None
        """Appends wait for this event before they count as committed."""
        self._held_at = 0

    @property
    def high_watermark(self) -> int:
        """The end of the log, or the end at the time when appends began to wait."""
        return self._held_at if self.held is not None and not self.held.is_set() else self.log.end_offset

    def hold(self) -> asyncio.Event:
        """Let appends wait from now on, until the event is set."""
        self.held = asyncio.Event()
        self._held_at = self.log.end_offset
        return self.held

    def append(
        self,
        buffer: bytearray,
        *,
        acks_all: bool,
        origin: Origin = Origin.COORDINATOR,
        transaction_version: int = 0,
    ) -> AppendResult:
        if self.error is not None:
            raise BrokerError(self.error)
        first_offset = self.log.end_offset
        for header in parse_batches(buffer):
            batch = buffer[header.position : header.position + header.size]
            stamp(batch, parse_header(batch), base_offset=self.log.end_offset, leader_epoch=self.leader_epoch)
            self.log.batches.append(batch)
            self.log.end_offset += header.last_offset_delta + 1
        return AppendResult(first_offset, self.log.end_offset - 1, -1, self.log.start_offset, False)

    async def wait_committed(self, offset: int, *, timeout_ms: int) -> None:
        if self.held is None:
            return
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.held.wait()
        except TimeoutError:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT) from None

    async def append_marker(
        self, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, timeout_ms: int = 5000
    ) -> int:
        marker = end_transaction_marker(
            producer_id, producer_epoch, commit=commit, coordinator_epoch=coordinator_epoch, timestamp_ms=0
        )
        appended = self.append(marker, acks_all=True)
        await self.wait_committed(appended.last_offset, timeout_ms=timeout_ms)
        return appended.first_offset


class FakePartitions:
    """As many partitions as are asked for."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], FakePartition] = {}

    def get(self, topic: str, index: int) -> FakePartition:
        return self._partitions.setdefault((topic, index), FakePartition(topic, index))

    def find(self, topic: str, index: int) -> FakePartition | None:
        return self._partitions.get((topic, index))
