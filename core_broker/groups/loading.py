"""Loads a shard by reading its partition from the start, as a new coordinator does.

Offsets written in a transaction take effect when its commit marker is read; those of an aborted one never do. The load
ends when all that earlier leaders wrote is committed: until then the records could still be lost, and no client may see
them. Kafka loads to the end of the log instead and serves reads from what is committed.
"""

import logging
from collections.abc import Callable

from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.consumer_groups import ConsumerGroups
from core_broker.groups.records import committed_offset, decode_record
from core_broker.groups.shard import Shard, ShardState
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import BatchHeader, Record, read_end_marker, read_records
from core_broker.protocol.stored import groups as stored

log = logging.getLogger(__name__)


class Loader:
    """Replays records into a shard."""

    def __init__(
        self, shard: Shard, *, new_group: Callable[[str], ClassicGroup], consumer_groups: ConsumerGroups
    ) -> None:
        self._shard = shard
        self._new_group = new_group
        self._consumer_groups = consumer_groups

    async def run(self) -> None:
        """Read all that is committed; raises NOT_LEADER_OR_FOLLOWER if the broker resigns from the shard meanwhile."""
        async for header, buffer in self._shard.led.committed_batches():
            self._replay_batch(header, buffer)
        self.finish()

    def _replay_batch(self, header: BatchHeader, buffer: memoryview) -> None:
        records = read_records(buffer, header)
        if header.is_control:
            marker = read_end_marker(records[0]) if records else None
            if marker is not None:
                self._shard.offsets.complete(header.producer_id, commit=marker[0], log_offset=header.base_offset)
            return
        producer_id = header.producer_id if header.is_transactional else None
        for record in records:
            self._replay_record(record, producer_id)

    def _replay_record(self, record: Record, producer_id: int | None) -> None:
        try:
            decoded = decode_record(record.key or b"", record.value)
        except DecodeError as error:
            # Better to serve all other groups than none; the record stays in the log.
            self._report("unreadable record of __consumer_offsets skipped", record, str(error))
            return
        if decoded is None:
            self._report("record of __consumer_offsets of an unknown kind skipped", record, "")
            return
        offsets, groups = self._shard.offsets, self._shard.groups
        match decoded:
            case (
                stored.OffsetCommitKey() | stored.LegacyOffsetCommitKey()
            ) as key, stored.OffsetCommitValue() as value:
                committed = committed_offset(value, record.offset)
                if producer_id is None:
                    offsets.put(key.group, key.topic, key.partition, committed)
                else:
                    offsets.put_pending(producer_id, key.group, key.topic, key.partition, committed)
            case (stored.OffsetCommitKey() | stored.LegacyOffsetCommitKey()) as key, _:
                offsets.remove(key.group, key.topic, key.partition)
            case stored.GroupMetadataKey() as key, stored.GroupMetadataValue() as value:
                groups[key.group] = group = self._new_group(key.group)
                group.restore(value)
            case stored.GroupMetadataKey() as key, _:
                if isinstance(groups.get(key.group), ClassicGroup):
                    del groups[key.group]
            case key, value:
                self._consumer_groups.replay(self._shard, key, value)

    def finish(self) -> None:
        """Let the shard serve requests: everything is read, or there was nothing to read."""
        shard = self._shard
        for group_id in shard.offsets.known_group_ids():
            if group_id not in shard.groups:
                # Offsets without a group: of a consumer that assigns its partitions itself.
                shard.groups[group_id] = self._new_group(group_id)
        for group in shard.groups.values():
            if isinstance(group, ClassicGroup):
                group.refresh_sessions()
        shard.state = ShardState.READY
        self._consumer_groups.on_loaded(shard)

    def _report(self, message: str, record: Record, reason: str) -> None:
        log.warning(
            message,
            extra={"partition": self._shard.partition_index, "offset": record.offset, "reason": reason},
        )
