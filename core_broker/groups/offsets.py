"""The committed offsets of groups, and those pending in transactions.

One store has the offsets of all groups of a shard, of either kind. It does not deal with logs or time: its callers have
written the offsets already, or are about to.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from core_broker.protocol.primitives import ZERO_UUID

NO_EXPIRY: Final = -1
NO_LOG_OFFSET: Final = -1


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """The committed offset of a group in one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_at_ms: int = 0
    expires_at_ms: int = NO_EXPIRY
    """Set only by clients before KIP-211, which sent the retention time."""
    topic_id: bytes = ZERO_UUID
    log_offset: int = NO_LOG_OFFSET
    """The offset of its record in `__consumer_offsets`: of two commits, the later one in the log wins."""

    def is_expired(self, now_ms: int, *, retention_ms: int, counts_from_ms: int) -> bool:
        """Whether its retention, which began at `counts_from_ms`, is over (KIP-211)."""
        if self.expires_at_ms != NO_EXPIRY:
            return now_ms >= self.expires_at_ms
        return now_ms - counts_from_ms >= retention_ms


OffsetsByTopic = dict[str, dict[int, CommittedOffset]]
_NO_OFFSETS: Final[Mapping[str, Mapping[int, CommittedOffset]]] = {}


class OffsetStore:
    """Committed and pending offsets of the groups of one shard."""

    def __init__(self) -> None:
        self._committed: dict[str, OffsetsByTopic] = {}
        self._pending: dict[int, dict[str, OffsetsByTopic]] = {}
        """Producer id -> group -> offsets of its open transaction."""
        self._producers: dict[str, set[int]] = {}
        """Group -> producers with pending offsets."""

    # --- committed ---------------------------------------------------------------------------------------------------

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset of a partition, if there is one."""
        topics = self._committed.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """All committed offsets of a group: topic -> partition -> offset."""
        return self._committed.get(group_id, _NO_OFFSETS)

    def has_any(self, group_id: str) -> bool:
        """Whether the group has committed or pending offsets."""
        return group_id in self._committed or group_id in self._producers

    def known_group_ids(self) -> list[str]:
        """The groups that have committed or pending offsets."""
        return list(self._committed.keys() | self._producers.keys())

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store a commit, unless there is a later one already."""
        partitions = self._committed.setdefault(group_id, {}).setdefault(topic, {})
        known = partitions.get(partition)
        if known is None or known.log_offset <= committed.log_offset:
            partitions[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Remove the committed offset of a partition."""
        topics = self._committed.get(group_id)
        if topics is None or topic not in topics:
            return
        topics[topic].pop(partition, None)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            del self._committed[group_id]

    def remove_group(self, group_id: str) -> list[tuple[str, int, CommittedOffset]]:
        """Remove all offsets of a group, including pending ones; returns the committed ones."""
        for producer_id in self._producers.pop(group_id, ()):
            self._drop_pending(producer_id, group_id)
        return list(_flat(self._committed.pop(group_id, {})))

    # --- pending -----------------------------------------------------------------------------------------------------

    def put_pending(
        self, producer_id: int, group_id: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        """Store an offset until the producer's transaction ends."""
        groups = self._pending.setdefault(producer_id, {})
        groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed
        self._producers.setdefault(group_id, set()).add(producer_id)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may change this offset (KIP-447)."""
        producers = self._producers.get(group_id)
        if not producers:
            return False
        return any(partition in self._pending[producer][group_id].get(topic, ()) for producer in producers)

    def has_pending(self, group_id: str) -> bool:
        """Whether any open transaction has offsets of the group."""
        return group_id in self._producers

    def complete(self, producer_id: int, *, commit: bool, log_offset: int = NO_LOG_OFFSET) -> list[str]:
        """A producer's transaction has ended: commit or drop its pending offsets; returns the groups concerned."""
        groups = self._pending.pop(producer_id, {})
        for group_id, topics in groups.items():
            self._forget_producer(group_id, producer_id)
            if commit:
                for topic, partition, committed in _flat(topics):
                    self._put_completed(group_id, topic, partition, committed, log_offset)
        return list(groups)

    def _put_completed(
        self, group_id: str, topic: str, partition: int, committed: CommittedOffset, log_offset: int
    ) -> None:
        # The position of the record counts, not that of the marker: a plain commit made after the transactional one
        # wins, both at run time and after a reload.
        if committed.log_offset == NO_LOG_OFFSET:
            known = self.get(group_id, topic, partition)
            written_at = max(log_offset, known.log_offset if known is not None else NO_LOG_OFFSET)
            committed = msgspec.structs.replace(committed, log_offset=written_at)
        self.put(group_id, topic, partition, committed)

    def set_log_offset(self, producer_id: int, group_id: str, topic: str, partition: int, log_offset: int) -> None:
        """Store the log offset of a pending offset's record, unless the transaction has already ended."""
        partitions = self._pending.get(producer_id, {}).get(group_id, {}).get(topic, {})
        committed = partitions.get(partition)
        if committed is not None:
            partitions[partition] = msgspec.structs.replace(committed, log_offset=log_offset)

    def remove_pending(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        """Remove a pending offset whose record was not written, or whose topic was deleted."""
        topics = self._pending.get(producer_id, {}).get(group_id, {})
        if topic not in topics:
            return
        topics[topic].pop(partition, None)
        if not topics[topic]:
            del topics[topic]
        if not topics:
            self._drop_pending(producer_id, group_id)
            self._forget_producer(group_id, producer_id)

    def remove_topic(self, topic: str) -> list[tuple[str, int]]:
        """Remove everything about a deleted topic; returns (group, partition) of the committed offsets."""
        for producer_id, group_id, partition in [
            (producer_id, group_id, partition)
            for producer_id, groups in self._pending.items()
            for group_id, topics in groups.items()
            for partition in topics.get(topic, ())
        ]:
            self.remove_pending(producer_id, group_id, topic, partition)
        found = [(group_id, list(topics[topic])) for group_id, topics in self._committed.items() if topic in topics]
        for group_id, partitions in found:
            for partition in partitions:
                self.remove(group_id, topic, partition)
        return [(group_id, partition) for group_id, partitions in found for partition in partitions]

    def _drop_pending(self, producer_id: int, group_id: str) -> None:
        groups = self._pending[producer_id]
        del groups[group_id]
        if not groups:
            del self._pending[producer_id]

    def _forget_producer(self, group_id: str, producer_id: int) -> None:
        producers = self._producers[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._producers[group_id]


def _flat(topics: OffsetsByTopic) -> Iterator[tuple[str, int, CommittedOffset]]:
    for topic, partitions in topics.items():
        for partition, committed in partitions.items():
            yield topic, partition, committed
