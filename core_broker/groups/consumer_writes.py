"""Writes changes of KIP-848 groups to the log, one write after another.

If a write fails, the group keeps the change in memory, marked as not stored, and the next write includes it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.consumer_records import Changes, records_of
from core_broker.groups.group import StoredRecord
from core_broker.groups.shard import Shard
from core_broker.service.clock import Clock

_BATCH_BYTES_MAX: Final = 512 * 1024
"""More than this is written in several batches; a log accepts about twice as much in one batch."""


class ConsumerGroupWrites:
    """The writes of all KIP-848 groups of a coordinator."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: dict[ConsumerGroup, set[asyncio.Future[None]]] = {}

    async def store(self, shard: Shard, group: ConsumerGroup) -> None:
        """Write the changes, and wait for concurrent writes of the group.

        A caller without changes may still respond with a change that is not committed yet: so it waits for that write,
        and repeats it if it fails. Does not suspend before the append of the first part.
        """
        if group.changes:
            await self._write(shard, group)
            return
        for _round in range(2):  # the second round is for a failed write that another caller repeats
            if writes := self._writes.get(group):
                await asyncio.wait(writes)  # each write has a time-out
            if group.changes:
                await self._write(shard, group)

    async def _write(self, shard: Shard, group: ConsumerGroup) -> None:
        changes, group.changes = group.changes, Changes()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writes.setdefault(group, set()).add(done)
        try:
            parts = deque([changes])
            # If the group was deleted or converted meanwhile, its tombstones are in the log: nothing may follow them.
            while parts and shard.groups.get(group.group_id) is group:
                part = parts.popleft()
                # Created from the current state, which may have changed since the previous part.
                records = records_of(group, part, self._clock.now_ms())
                if part.member_count > 1 and bytes_of(records) > _BATCH_BYTES_MAX:
                    parts.extendleft(reversed(list(part.in_batches(part.member_count // 2))))
                elif records:
                    await shard.write(records)
            for part in parts:
                group.changes.add(part)
        except BaseException:
            group.changes.add(changes)
            raise
        finally:
            self._writes[group].discard(done)
            if not self._writes[group]:
                del self._writes[group]
            done.set_result(None)


def bytes_of(records: Iterable[StoredRecord]) -> int:
    """The size of records without their constant overhead."""
    return sum(len(key) + len(value or b"") for key, value in records)
