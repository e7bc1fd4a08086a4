"""Brings the log up to the state of KIP-848 groups, one write after the other.

Should a write fail, the group keeps the change in memory, noted as not stored: the next write makes up for it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.consumer_records import Changes, records_of
from core_broker.groups.shape import GroupShard, StoredRecord
from core_broker.service.clock import Clock

_BATCH_BYTES_MAX: Final = 512 * 1024
"""More than this is written in several batches; a log takes about twice as much at once."""


class ConsumerGroupWrites:
    """The writes of all KIP-848 groups of a coordinator."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: dict[ConsumerGroup, set[asyncio.Future[None]]] = {}

    async def store(self, shard: GroupShard, group: ConsumerGroup) -> None:
        """Write what changed, and wait for what others are writing.

        Whoever has nothing to write may still be told of a change that is not committed yet: it waits for that one, and
        if that fails, writes it. Up to the append of the first part no other task gets its turn.
        """
        if group.changes:
            await self._write(shard, group)
            return
        for _round in range(2):  # the second for a write that another one repeats
            if writes := self._writes.get(group):
                await asyncio.wait(writes)  # each ends in the time that a write may take
            if group.changes:
                await self._write(shard, group)

    async def _write(self, shard: GroupShard, group: ConsumerGroup) -> None:
        changes, group.changes = group.changes, Changes()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writes.setdefault(group, set()).add(done)
        try:
            await self._write_in_parts(shard, group, changes)
        except BaseException:
            group.changes.add(changes)
            raise
        finally:
            self._writes[group].discard(done)
            if not self._writes[group]:
                del self._writes[group]
            done.set_result(None)

    async def _write_in_parts(self, shard: GroupShard, group: ConsumerGroup, changes: Changes) -> None:
        parts = deque([changes])
        # A group that is deleted or classic again meanwhile has its tombstones in the log: nothing may come after them.
        while parts and shard.groups.get(group.group_id) is group:
            part = parts.popleft()
            # Made from the state of this moment: should others have their turn between two parts, theirs is newer.
            records = records_of(group, part, self._clock.now_ms())
            if part.member_count > 1 and bytes_of(records) > _BATCH_BYTES_MAX:
                parts.extendleft(reversed(list(part.in_batches(part.member_count // 2))))
            elif records:
                await shard.write(records)
        for part in parts:
            group.changes.add(part)


def bytes_of(records: Iterable[StoredRecord]) -> int:
    """The size of records, as far as it is not the same for all of them."""
    return sum(len(key) + len(value or b"") for key, value in records)
