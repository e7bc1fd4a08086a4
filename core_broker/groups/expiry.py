"""Removes offsets past their retention, offsets of deleted topics, and empty groups."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from core_broker.errors import BrokerError
from core_broker.groups.group import Group, StoredRecord
from core_broker.groups.records import offset_key
from core_broker.groups.shard import Shard, ShardState
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_GROUPS_PER_TURN: Final = 200
_RECORDS_PER_BATCH: Final = 1000


class Expiry:
    """Cleans shards, in small steps so that requests are not delayed."""

    def __init__(self, *, settings: BrokerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def clean(self, shard: Shard) -> None:
        """Remove expired offsets, and groups that are left with neither members nor offsets (KIP-211)."""
        tombstones: list[StoredRecord] = []
        for position, group in enumerate(list(shard.groups.values()), 1):
            if shard.groups.get(group.group_id) is group:
                tombstones.extend(self._clean_group(shard, group))
            if len(tombstones) >= _RECORDS_PER_BATCH or position % _GROUPS_PER_TURN == 0:
                await _write(shard, tombstones)
                tombstones = []
                await asyncio.sleep(0)
        await _write(shard, tombstones)

    async def forget_topics(self, shard: Shard, topics: Iterable[str]) -> None:
        """Remove the offsets of topics that were deleted."""
        tombstones: list[StoredRecord] = []
        for topic in topics:
            found = shard.offsets.remove_topic(topic)
            tombstones.extend((offset_key(group_id, topic, partition), None) for group_id, partition in found)
        await _write(shard, tombstones)

    def _clean_group(self, shard: Shard, group: Group) -> list[StoredRecord]:
        group_id = group.group_id
        expired = self._find_expired(shard, group)
        for topic, partition in expired:
            shard.offsets.remove(group_id, topic, partition)
        tombstones: list[StoredRecord] = [
            (offset_key(group_id, topic, partition), None) for topic, partition in expired
        ]
        # A deadline in an empty group belongs to a member that is about to join.
        if group.is_empty and not shard.offsets.has_any(group_id) and group.next_deadline() is None:
            tombstones.extend(group.tombstones())
            del shard.groups[group_id]
            log.info("group expired", extra={"group": group_id, "kind": group.kind})
        return tombstones

    def _find_expired(self, shard: Shard, group: Group) -> list[tuple[str, int]]:
        now_ms = self._clock.now_ms()
        retention_ms = self._settings.offsets_retention_minutes * 60_000
        found = []
        for topic, partitions in shard.offsets.of_group(group.group_id).items():
            if group.is_subscribed_to(topic) and not group.is_empty:
                continue
            for partition, committed in partitions.items():
                since_ms = group.offsets_expire_from_ms(committed.committed_at_ms)
                if since_ms is None or shard.offsets.is_pending(group.group_id, topic, partition):
                    continue
                if committed.is_expired(now_ms, retention_ms=retention_ms, counts_from_ms=since_ms):
                    found.append((topic, partition))
        return found


async def _write(shard: Shard, tombstones: list[StoredRecord]) -> None:
    for start in range(0, len(tombstones), _RECORDS_PER_BATCH):
        if shard.state is not ShardState.READY:
            return
        try:
            await shard.write(tombstones[start : start + _RECORDS_PER_BATCH])
        except BrokerError as error:
            # The next load restores them, and they expire again.
            log.warning(
                "expired records could not be removed",
                extra={"partition": shard.partition_index, "error": error.code.name},
            )
            return
