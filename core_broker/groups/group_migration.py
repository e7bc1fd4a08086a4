"""Lets running groups change their protocol, as far as `group.consumer.migration.policy` allows (KIP-848).

A classic group is upgraded by the first member of the new protocol that joins. A KIP-848 group is downgraded when the
last such member is gone and members of the classic protocol stay; where that is not allowed, it goes on with them.
"""

import logging
from collections.abc import Callable, Collection
from typing import Final, Literal, Protocol

from core_broker.errors import ErrorCode
from core_broker.groups.changed_kind import Downgrade, cannot_upgrade, downgraded, has_only_guests, upgraded
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_records import everything_of
from core_broker.groups.consumer_writes import bytes_of
from core_broker.groups.shape import Group, GroupOwner, GroupShard
from core_broker.groups.subscriptions import Topics

log = logging.getLogger(__name__)

_DOWNGRADE_BYTES_MAX: Final = 900 * 1024
"""A downgrade is one batch, so that no crash can leave half of it, and this is about what a log takes at once."""


class ClassicPart(Protocol):
    """What is asked of the part that serves classic groups."""

    def new_group(self, group_id: str) -> ClassicGroup:
        """An empty group."""

    def unload(self, shard: GroupShard, error: ErrorCode) -> None:
        """Turn away everybody who waits in the classic groups of a shard."""


class GroupMigration:
    """Changes groups of a coordinator from one kind to the other; without a classic part, only empty ones."""

    def __init__(self, owner: GroupOwner, topics: Callable[[], Topics], classic: ClassicPart | None) -> None:
        self._owner = owner
        self._topics = topics
        self._classic = classic

    def upgraded(self, group: ClassicGroup, limits: ConsumerGroupLimits) -> ConsumerGroup:
        """A consumer group with the same members, not yet in its place; raises GROUP_ID_NOT_FOUND if it may not be."""
        if not self._allows("upgrade"):
            raise cannot_upgrade(group, "online upgrade is disabled.")
        return upgraded(group, limits, self._topics(), self._owner.clock.monotonic())

    def take_place(self, shard: GroupShard, group: ConsumerGroup) -> None:
        """Put a consumer group where it belongs, instead of a classic one if there is one."""
        former = shard.groups.get(group.group_id)
        if former is group:
            return
        shard.groups[group.group_id] = group
        group.changes.classic = former is not None
        if former is not None and not former.is_empty:
            self._turn_away(shard, former)
            log.info("classic group becomes a consumer group", extra={"group_id": group.group_id})

    async def downgrade(
        self, shard: GroupShard, group: ConsumerGroup, leaving: Collection[str] = (), *, rebalances: bool = True
    ) -> bool:
        """Remove members and make the group classic; False, with nothing done, when it must stay what it is.

        The change is valid at once, and taken back when it cannot be stored: then only the members are gone, and
        `changes.classic` tells to try it again before anything else is stored.
        """
        change = self._downgrade(group, leaving, rebalances=rebalances)
        if change is None:
            return False
        shard.groups[group.group_id] = change.group
        self._owner.arm(shard, change.group)
        try:
            await shard.write(change.records)
        except BaseException:
            self._take_back(shard, group, change.group, leaving)
            raise
        log.info(
            "consumer group becomes a classic group", extra={"group_id": group.group_id, "generation": group.epoch}
        )
        return True

    def _downgrade(self, group: ConsumerGroup, leaving: Collection[str], *, rebalances: bool) -> Downgrade | None:
        if self._classic is None or not has_only_guests(group, leaving):
            return None
        change = downgraded(
            group,
            leaving,
            self._classic.new_group(group.group_id),
            self._topics(),
            rebalances=rebalances,
            now_ms=self._owner.clock.now_ms(),
        )
        obstacle = self._obstacle_to(change)
        if obstacle is None:
            return change
        log.info("consumer group does not become classic", extra={"group_id": group.group_id, "reason": obstacle})
        return None

    def _obstacle_to(self, change: Downgrade) -> str | None:
        if not self._allows("downgrade"):
            return "online downgrade is disabled"
        if len(change.group.members) > self._owner.settings.group_max_size:
            return "it has more members than group.max.size"
        return "it is too large for one batch" if bytes_of(change.records) > _DOWNGRADE_BYTES_MAX else None

    def _take_back(
        self, shard: GroupShard, group: ConsumerGroup, classic: ClassicGroup, leaving: Collection[str]
    ) -> None:
        if shard.groups.get(group.group_id) is not classic:
            return  # it has changed again, and what was written for that makes up for this
        self._turn_away(shard, classic)
        shard.groups[group.group_id] = group
        group.remove_members(leaving)
        # The write may have failed only after it was appended: the log gets everything anew.
        group.changes.add(everything_of(group))
        group.changes.classic = True
        group.restart_timers(self._owner.clock.monotonic())
        self._owner.arm(shard, group)

    def _turn_away(self, shard: GroupShard, group: Group) -> None:
        """Whoever waits in a classic group that is no more joins again."""
        if self._classic is not None:
            self._classic.unload(_OneGroup(shard, group), ErrorCode.REBALANCE_IN_PROGRESS)

    def _allows(self, direction: Literal["upgrade", "downgrade"]) -> bool:
        policy = self._owner.settings.group_consumer_migration_policy
        return self._classic is not None and policy in (direction, "bidirectional")


class _OneGroup:
    """A shard with one group only, for what is done to all groups of a shard."""

    def __init__(self, shard: GroupShard, group: Group) -> None:
        self.partition_index = shard.partition_index
        self.groups = {group.group_id: group}
        self.offsets = shard.offsets
        self.write = shard.write
