"""Converts active groups between the protocols, as far as `group.consumer.migration.policy` allows (KIP-848).

A classic group is upgraded when the first member of the new protocol joins. A KIP-848 group is downgraded when the last
such member has left and classic members remain; if that is not allowed, it continues with them.
"""

import logging
from collections.abc import Callable, Collection
from typing import Final, Literal

from core_broker.errors import ErrorCode
from core_broker.groups.changed_kind import Downgrade, cannot_upgrade, downgrade_group, has_only_guests, upgrade_group
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_records import everything_of
from core_broker.groups.consumer_writes import bytes_of
from core_broker.groups.shard import Shard, ShardOwner
from core_broker.groups.subscriptions import Topics

log = logging.getLogger(__name__)

_DOWNGRADE_BYTES_MAX: Final = 900 * 1024
"""A downgrade is one batch, so that it is atomic, and this is about the largest batch that a log accepts."""


class GroupMigration:
    """Converts groups of a coordinator."""

    def __init__(self, owner: ShardOwner, topics: Callable[[], Topics]) -> None:
        self._owner = owner
        self._topics = topics

    def upgrade(self, group: ClassicGroup, limits: ConsumerGroupLimits) -> ConsumerGroup:
        """A consumer group with the same members, not yet registered; raises GROUP_ID_NOT_FOUND if not allowed."""
        if not self._allows("upgrade"):
            raise cannot_upgrade(group, "online upgrade is disabled.")
        return upgrade_group(group, limits, self._topics(), self._owner.clock.monotonic())

    def register(self, shard: Shard, group: ConsumerGroup) -> None:
        """Add a consumer group to its shard, replacing a classic one if there is one."""
        former = shard.groups.get(group.group_id)
        if former is group:
            return
        shard.groups[group.group_id] = group
        group.changes.classic = former is not None
        if isinstance(former, ClassicGroup) and not former.is_empty:
            self._owner.reject_waiting(shard, former, ErrorCode.REBALANCE_IN_PROGRESS)
            log.info("classic group converted to a consumer group", extra={"group_id": group.group_id})

    async def downgrade(
        self, shard: Shard, group: ConsumerGroup, leaving: Collection[str] = (), *, rebalances: bool = True
    ) -> bool:
        """Remove members and convert the group to a classic one; False, without any change, if it cannot be converted.

        The change takes effect at once, and is undone if it cannot be stored: then only the members are removed, and
        `changes.classic` makes the next write try it again.
        """
        change = self._downgrade(group, leaving, rebalances=rebalances)
        if change is None:
            return False
        shard.groups[group.group_id] = change.group
        self._owner.arm(shard, change.group)
        try:
            await shard.write(change.records)
        except BaseException:
            self._undo(shard, group, change.group, leaving)
            raise
        log.info(
            "consumer group converted to a classic group", extra={"group_id": group.group_id, "generation": group.epoch}
        )
        return True

    def _downgrade(self, group: ConsumerGroup, leaving: Collection[str], *, rebalances: bool) -> Downgrade | None:
        if not has_only_guests(group, leaving):
            return None
        change = downgrade_group(
            group,
            leaving,
            self._owner.new_classic_group(group.group_id),
            self._topics(),
            rebalances=rebalances,
            now_ms=self._owner.clock.now_ms(),
        )
        if not self._allows("downgrade"):
            obstacle = "online downgrade is disabled"
        elif len(change.group.members) > self._owner.settings.group_max_size:
            obstacle = "it has more members than group.max.size"
        elif bytes_of(change.records) > _DOWNGRADE_BYTES_MAX:
            obstacle = "it is too large for one batch"
        else:
            return change
        log.info(
            "consumer group cannot be converted to a classic group",
            extra={"group_id": group.group_id, "reason": obstacle},
        )
        return None

    def _undo(self, shard: Shard, group: ConsumerGroup, classic: ClassicGroup, leaving: Collection[str]) -> None:
        if shard.groups.get(group.group_id) is not classic:
            return  # the group has changed again, and the write for that change replaces this one
        self._owner.reject_waiting(shard, classic, ErrorCode.REBALANCE_IN_PROGRESS)
        shard.groups[group.group_id] = group
        group.remove_members(leaving)
        # The write may have failed after the append: write everything again.
        group.changes.add(everything_of(group))
        group.changes.classic = True
        group.restart_timers(self._owner.clock.monotonic())
        self._owner.arm(shard, group)

    def _allows(self, direction: Literal["upgrade", "downgrade"]) -> bool:
        return self._owner.settings.group_consumer_migration_policy in (direction, "bidirectional")
