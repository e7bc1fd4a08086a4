"""One partition of `__consumer_offsets` that this broker coordinates: its groups, their offsets, writes to the log."""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from core_broker.cluster.led_partition import LedPartition
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.group import Group, StoredRecord
from core_broker.groups.offsets import OffsetStore
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

_COORDINATOR_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The coordinator's error for a client if the partition rejects a write."""


Effect = Callable[[int], object]
"""What the commit of a batch changes in memory; gets the first offset of the batch."""


class ShardState(Enum):
    """Whether a shard can serve requests."""

    LOADING = "loading"
    READY = "ready"
    RESIGNED = "resigned"


class Shard:
    """The groups of one partition during one leader epoch. Only `write*` do I/O; they append before they first suspend.

    A shard that has resigned is never used again: its requests may still change it, but not the one that is loaded for
    the next epoch.
    """

    def __init__(
        self, partition_index: int, leader_epoch: int, partition: Partition, *, clock: Clock, timeout_ms: int
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.state = ShardState.LOADING
        self.led = LedPartition(partition, leader_epoch)
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._uncommitted: deque[tuple[int, Effect]] = deque()

    def resign(self) -> None:
        """Serve no more requests; those that wait for a write get NOT_COORDINATOR."""
        self.state = ShardState.RESIGNED
        self.led.release()

    async def write(self, records: Sequence[StoredRecord], *, then: Effect | None = None) -> int:
        """Append as one batch and wait until it is committed; returns the first offset.

        `then` gets that offset as soon as the batch is committed, even if the caller no longer waits for it: so memory
        never shows what can still be lost, and always follows the log.
        """
        now_ms = self._clock.now_ms()
        return await self._append(build_batch([Record(-1, now_ms, key, value) for key, value in records]), then)

    async def write_transactional(
        self, records: Sequence[StoredRecord], *, producer_id: int, producer_epoch: int
    ) -> int:
        """Append as part of a producer's transaction; the records take effect with its commit marker."""
        now_ms = self._clock.now_ms()
        buffer = build_batch(
            [Record(-1, now_ms, key, value) for key, value in records],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
        )
        return await self._append(buffer, None)

    async def _append(self, buffer: bytearray, then: Effect | None) -> int:
        try:
            appended = self.led.append(buffer)
            if then is not None:
                self.when_committed(appended.first_offset, then)
            await self.led.wait_committed(appended, timeout_ms=self._timeout_ms)
        except BrokerError as error:
            # The kind of the error says whether the batch is in the log.
            raise type(error)(_COORDINATOR_ERRORS.get(error.code, error.code), error.message) from error
        self.apply_committed()
        return appended.first_offset

    def when_committed(self, offset: int, then: Effect) -> None:
        """Call `then` with the offset as soon as the record at that offset is committed; records come in order."""
        self._uncommitted.append((offset, then))

    def apply_committed(self) -> None:
        """Let the writes take effect that are committed by now, in the order of the log."""
        while self._uncommitted and self._uncommitted[0][0] < self.led.partition.high_watermark:
            first_offset, then = self._uncommitted.popleft()
            then(first_offset)


class ShardOwner(Protocol):
    """What the servers of both kinds of groups need of the coordinator, which imports them."""

    settings: BrokerSettings
    clock: Clock

    def shard_for(self, group_id: str) -> Shard:
        """The loaded shard of a group; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID."""

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """An empty classic group."""

    def arm(self, shard: Shard, group: Group) -> None:
        """Schedule `group.next_deadline()`; call it after anything that may have brought it forward."""

    def reject_waiting(self, shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer the requests that wait in a classic group with an error."""
