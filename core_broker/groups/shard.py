"""One partition of `__consumer_offsets` that this broker coordinates: its groups, their offsets, writes to the log."""

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

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


class ShardState(Enum):
    """Whether a shard can serve requests."""

    LOADING = "loading"
    READY = "ready"
    RESIGNED = "resigned"


class Shard:
    """The groups of one partition. Only `write*` do I/O; they append before they first suspend."""

    def __init__(
        self, partition_index: int, leader_epoch: int, partition: Partition, *, clock: Clock, timeout_ms: int
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.partition = partition
        self.state = ShardState.LOADING
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._clock = clock
        self._timeout_ms = timeout_ms

    async def write(self, records: Sequence[StoredRecord]) -> int:
        """Append as one batch and wait until it is committed; returns the first offset."""
        self._check_not_resigned()
        now_ms = self._clock.now_ms()
        batch = [Record(-1, now_ms, key, value) for key, value in records]
        try:
            return await self.partition.append_records(batch, timeout_ms=self._timeout_ms)
        except BrokerError as error:
            raise _coordinator_error(error) from error

    async def write_transactional(
        self, records: Sequence[StoredRecord], *, producer_id: int, producer_epoch: int
    ) -> int:
        """Append as part of a producer's transaction; the records take effect with its commit marker."""
        self._check_not_resigned()
        now_ms = self._clock.now_ms()
        buffer = build_batch(
            [Record(-1, now_ms, key, value) for key, value in records],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
        )
        try:
            result = await self.partition.append_buffer(buffer, timeout_ms=self._timeout_ms)
        except BrokerError as error:
            raise _coordinator_error(error) from error
        return result.first_offset

    def _check_not_resigned(self) -> None:
        if self.state is ShardState.RESIGNED:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)


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


def _coordinator_error(error: BrokerError) -> BrokerError:
    return BrokerError(_COORDINATOR_ERRORS.get(error.code, error.code), error.message)
