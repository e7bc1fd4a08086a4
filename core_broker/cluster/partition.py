"""One partition as its leader sees it: the log, the high watermark, and the requests waiting for either to advance."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from core_broker.cluster.metadata import PartitionImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import AppendResult, PartitionLog
from core_broker.log.producer_state import Origin, ProducerStates
from core_broker.metrics import TopicTraffic
from core_broker.protocol.records import Record, build_batch, end_transaction_marker
from core_broker.service.clock import Clock
from core_broker.settings import TopicSettings


class Reader(Protocol):
    """A fetch that is waiting for data."""

    def data_arrived(self, size_bytes: int) -> None:
        """More bytes can be read, or (with size 0) something else about the partition has changed."""


class Partition:
    """A partition hosted by this broker. All changes run on the event loop, without awaiting in between."""

    __slots__ = (
        "_commit_waiters",
        "_local_id",
        "clock",
        "high_watermark",
        "index",
        "is_under_min_isr",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "partition_epoch",
        "readers",
        "replicas",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        log: PartitionLog,
        image: PartitionImage,
        *,
        topic_id: bytes,
        local_id: int,
        clock: Clock,
        traffic: TopicTraffic,
    ) -> None:
        self.topic = log.topic
        self.index = log.partition
        self.topic_id = topic_id
        self.log = log
        self.clock = clock
        self.traffic = traffic
        self.high_watermark = log.start_offset
        self.readers: set[Reader] = set()
        self._local_id = local_id
        self._commit_waiters: list[tuple[int, asyncio.Future[None]]] = []
        self.update(image)

    def update(self, image: PartitionImage) -> None:
        """Apply the metadata log, the only source of leader, epoch, replicas and ISR."""
        self.replicas = image.replicas
        self.isr = image.isr
        self.leader_id = image.leader_id
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.is_under_min_isr = len(self.isr) < self.min_in_sync_replicas
        if self.is_leader:
            self.log.epochs.assign(self.leader_epoch, self.log.end_offset, save=False)
            self._advance_high_watermark()

    def configure(self, settings: TopicSettings) -> None:
        """Apply new topic settings; a lower min.insync.replicas commits the records that waited for it."""
        self.log.configure(settings)
        self.is_under_min_isr = len(self.isr) < self.min_in_sync_replicas
        before = self.high_watermark
        self._advance_high_watermark()
        if self.high_watermark != before:
            self._wake_readers()

    @property
    def is_leader(self) -> bool:
        """Whether this broker may append, and serve consumers."""
        return self.leader_id == self._local_id

    @property
    def last_stable_offset(self) -> int:
        """The end for read-committed consumers: the start of the oldest open transaction, or the high watermark."""
        unstable = self.log.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def min_in_sync_replicas(self) -> int:
        """How many in-sync replicas an `acks=all` write needs; never more than there are replicas."""
        return min(self.log.settings.min_insync_replicas, len(self.replicas))

    @property
    def must_flush(self) -> bool:
        """Whether `flush.messages` requires a sync to disk before the producer gets its response."""
        log = self.log
        return log.end_offset - log.recovery_point >= log.settings.flush_messages

    @property
    def producers(self) -> ProducerStates:
        """The idempotent and transactional producers of the log."""
        return self.log.producers

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch of the log up to `epoch`, and where it ends; -1 and -1 if unknown (KIP-279)."""
        return self.log.epochs.end_offset_for(epoch, self.log.end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was written."""
        return self.log.epochs.epoch_for_offset(offset)

    def check_leader_epoch(self, epoch: int) -> None:
        """Reject a client whose leader epoch is older or newer than ours (KIP-320)."""
        if epoch in (-1, self.leader_epoch):
            return
        if epoch < self.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def append(
        self,
        buffer: memoryview | bytearray,
        *,
        acks_all: bool,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append batches, assign their offsets and wake readers. See `is_committed` for `acks=all`.

        `transaction_version` matters to markers only: from 2 on they must have a newer epoch than the records.
        """
        if acks_all and self.is_under_min_isr:
            counts = f"{len(self.isr)} in-sync replicas; {self.min_in_sync_replicas} are required"
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{self.topic}-{self.index} has {counts}")
        result = self.log.append(
            buffer, leader_epoch=self.leader_epoch, origin=origin, transaction_version=transaction_version
        )
        if result.duplicate:
            return result
        traffic = self.traffic
        traffic.messages_in += result.last_offset - result.first_offset + 1
        traffic.bytes_in += len(buffer)
        self._advance_high_watermark()
        if self.readers:
            for reader in tuple(self.readers):
                reader.data_arrived(len(buffer))
        return result

    def is_committed(self, offset: int) -> bool:
        """Whether every in-sync replica has the record at `offset`."""
        return offset < self.high_watermark

    async def wait_committed(self, offset: int, *, timeout_ms: int) -> None:
        """Return once `offset` is committed; REQUEST_TIMED_OUT when that takes too long."""
        if self.is_committed(offset):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (offset, future)
        self._commit_waiters.append(entry)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await future
        except TimeoutError:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT) from None
        finally:
            if entry in self._commit_waiters:
                self._commit_waiters.remove(entry)

    async def append_records(self, records: Sequence[Record], *, timeout_ms: int = 5000) -> int:
        """Append records of a coordinator as one batch; returns the first offset once they are committed."""
        result = await self.append_buffer(build_batch(records), timeout_ms=timeout_ms)
        return result.first_offset

    async def append_buffer(
        self, buffer: bytearray, *, timeout_ms: int = 5000, transaction_version: int = 0
    ) -> AppendResult:
        """Append an encoded batch of a coordinator; returns once it is committed."""
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        result = self.append(buffer, acks_all=True, origin=Origin.COORDINATOR, transaction_version=transaction_version)
        await self.wait_committed(result.last_offset, timeout_ms=timeout_ms)
        return result

    async def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
        timeout_ms: int = 5000,
    ) -> int:
        """Append the end marker of a transaction; returns its offset once it is committed."""
        marker = end_transaction_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=self.clock.now_ms(),
        )
        result = await self.append_buffer(marker, timeout_ms=timeout_ms, transaction_version=transaction_version)
        return result.first_offset

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start up, as DeleteRecords asks; returns the new start."""
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {target} of {self.topic}-{self.index} is not between 0 and {self.high_watermark}",
            )
        self.log.delete_records_before(target)
        return self.log.start_offset

    def retire(self) -> None:
        """The partition was removed from this broker: stop appends and fail the requests that wait."""
        self.leader_id = -1
        for _, future in self._commit_waiters:
            if not future.done():
                future.set_exception(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._wake_readers()

    def _wake_readers(self) -> None:
        for reader in tuple(self.readers):
            reader.data_arrived(0)

    def _advance_high_watermark(self) -> None:
        """Raise the high watermark to what every in-sync replica has; with one replica that is the end of the log."""
        end = self.log.end_offset
        if end <= self.high_watermark or self.is_under_min_isr:
            return
        self.high_watermark = end
        if self._commit_waiters:
            for offset, future in self._commit_waiters:
                if offset < end and not future.done():
                    future.set_result(None)
