"""Serves the offset APIs: plain and transactional commits, fetches and deletions, for groups of either kind."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from core_broker.cluster.led_partition import NotCommittedError
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import CONSUMER_PROTOCOL, ClassicGroup
from core_broker.groups.group import Group, StoredRecord
from core_broker.groups.offsets import CommittedOffset
from core_broker.groups.records import offset_key, offset_record
from core_broker.groups.shard import Shard
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

_GROUP_ID_NOT_FOUND_SINCE = 9
_STRING_BYTES_MAX = 32_767

OffsetToCommit = tuple[str, int, CommittedOffset]
"""Topic, partition and the offset to commit."""


class Committer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The client that commits; a consumer outside the group protocol has no member id and generation -1."""

    group_id: str
    member_id: str = ""
    generation_or_epoch: int = -1
    instance_id: str | None = None


class TransactionalProducer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The producer in whose transaction offsets are committed."""

    producer_id: int
    producer_epoch: int


class OffsetCommits:
    """The committed offsets of all groups that this broker coordinates."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        clock: Clock,
        shard_for: Callable[[str], Shard],
        new_group: Callable[[str], Group],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._shard_for = shard_for
        self._new_group = new_group

    def metadata_error(self, metadata: str | None) -> ErrorCode:
        """OFFSET_METADATA_TOO_LARGE if the metadata of an offset is too long."""
        if metadata is None or len(metadata) <= min(self._settings.offset_metadata_max_bytes, _STRING_BYTES_MAX // 4):
            return ErrorCode.NONE
        too_large = len(metadata) > self._settings.offset_metadata_max_bytes
        if too_large or len(metadata.encode()) > _STRING_BYTES_MAX:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    async def commit(self, committer: Committer, offsets: Sequence[OffsetToCommit], *, api_version: int) -> None:
        """Write offsets; on return they are committed and visible. A BrokerError applies to all of them."""
        shard = self._shard_for(committer.group_id)
        group = self._group_to_commit(shard, committer, api_version=api_version, is_transactional=False)
        self._check(group, committer, api_version=api_version, is_transactional=False)
        if isinstance(group, ClassicGroup):
            group.extend_session(committer.member_id)
        if not offsets:
            return
        group_id = committer.group_id
        records = [offset_record(group_id, topic, partition, committed) for topic, partition, committed in offsets]
        await shard.write(records, then=partial(self._apply, shard, group_id, offsets))

    async def commit_in_transaction(
        self,
        committer: Committer,
        offsets: Sequence[OffsetToCommit],
        *,
        producer: TransactionalProducer,
        api_version: int,
    ) -> None:
        """Write offsets that take effect when the producer's transaction is committed; until then they are pending."""
        shard = self._shard_for(committer.group_id)
        group = self._group_to_commit(shard, committer, api_version=api_version, is_transactional=True)
        self._check(group, committer, api_version=api_version, is_transactional=True)
        if not offsets:
            return
        group_id, producer_id = committer.group_id, producer.producer_id
        records = [offset_record(group_id, topic, partition, committed) for topic, partition, committed in offsets]
        # They become pending before the write: the marker may be written before the wait for the replicas ends.
        for topic, partition, committed in offsets:
            shard.offsets.put_pending(producer_id, group_id, topic, partition, committed)
        try:
            log_offset = await shard.write_transactional(
                records, producer_id=producer_id, producer_epoch=producer.producer_epoch
            )
        except NotCommittedError:
            raise  # the records are in the log, and the marker decides about them if they are committed
        except BrokerError:
            for topic, partition, _ in offsets:
                shard.offsets.remove_pending(producer_id, group_id, topic, partition)
            raise
        for position, (topic, partition, _) in enumerate(offsets):
            shard.offsets.set_log_offset(producer_id, group_id, topic, partition, log_offset + position)

    def _group_to_commit(
        self, shard: Shard, committer: Committer, *, api_version: int, is_transactional: bool
    ) -> Group:
        group = shard.groups.get(committer.group_id)
        if group is None:
            if committer.generation_or_epoch >= 0:
                is_new = not is_transactional and api_version >= _GROUP_ID_NOT_FOUND_SINCE
                raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
            # A consumer that assigns its partitions itself, or an admin client: a group that only stores offsets.
            group = self._new_group(committer.group_id)
            shard.groups[committer.group_id] = group
        return group

    @staticmethod
    def _check(group: Group, committer: Committer, *, api_version: int, is_transactional: bool) -> None:
        try:
            group.check_commit(
                committer.member_id,
                committer.generation_or_epoch,
                committer.instance_id,
                is_transactional=is_transactional,
            )
        except BrokerError as error:
            if error.code is not ErrorCode.STALE_MEMBER_EPOCH or api_version >= _GROUP_ID_NOT_FOUND_SINCE:
                raise
            # Older versions do not have this error code (KIP-848).
            code = ErrorCode.ILLEGAL_GENERATION if is_transactional else ErrorCode.UNSUPPORTED_VERSION
            raise BrokerError(code) from error

    @staticmethod
    def _apply(shard: Shard, group_id: str, offsets: Sequence[OffsetToCommit], log_offset: int) -> None:
        for written_at, (topic, partition, committed) in enumerate(offsets, log_offset):
            shard.offsets.put(group_id, topic, partition, msgspec.structs.replace(committed, log_offset=written_at))

    # --- fetch -------------------------------------------------------------------------------------------------------

    def fetch(self, group_id: str, *, member_id: str | None = None, member_epoch: int = -1) -> "GroupOffsets":
        """The offsets of a group; one that does not exist has none. Raises BrokerError for an old member epoch."""
        shard = self._shard_for(group_id)
        group = shard.groups.get(group_id)
        if group is not None:
            group.check_fetch(member_id, member_epoch)
        return GroupOffsets(shard, group_id)

    # --- delete ------------------------------------------------------------------------------------------------------

    async def delete(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> list[ErrorCode]:
        """Delete offsets, except of subscribed topics; returns the error of each partition."""
        shard = self._shard_for(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, ClassicGroup) and not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)
        is_subscribed = [group.is_subscribed_to(topic) for topic, _ in partitions]
        deleted = [
            (topic, partition)
            for (topic, partition), subscribed in zip(partitions, is_subscribed, strict=True)
            if not subscribed and shard.offsets.get(group_id, topic, partition) is not None
        ]

        def remove(_log_offset: int) -> None:
            for topic, partition in deleted:
                shard.offsets.remove(group_id, topic, partition)

        if deleted:
            tombstones: list[StoredRecord] = [(offset_key(group_id, *at), None) for at in deleted]
            await shard.write(tombstones, then=remove)
        return [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if each else ErrorCode.NONE for each in is_subscribed]


class GroupOffsets:
    """The offsets of one group."""

    __slots__ = ("_group_id", "_shard")

    def __init__(self, shard: Shard, group_id: str) -> None:
        self._shard = shard
        self._group_id = group_id

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset of a partition."""
        return self._shard.offsets.get(self._group_id, topic, partition)

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Whether an open transaction may change it."""
        return self._shard.offsets.is_pending(self._group_id, topic, partition)

    def all(self) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """All committed offsets."""
        return self._shard.offsets.of_group(self._group_id)
