"""The group coordinator: owns the shards, runs the deadlines of groups, and passes requests to their servers.

classic           JoinGroup, SyncGroup, Heartbeat, LeaveGroup       classic_groups.py
offset_commits    OffsetCommit, TxnOffsetCommit, OffsetFetch, ...   offset_commits.py
consumer_groups   ConsumerGroupHeartbeat, ConsumerGroupDescribe     consumer_groups.py (KIP-848)
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final

from core_broker.cluster.coordinators import OFFSETS_TOPIC, partition_for
from core_broker.cluster.led_partition import NotCommittedError
from core_broker.cluster.partitions import Partitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.background import Background
from core_broker.groups.classic_group import ClassicGroup, GroupLimits
from core_broker.groups.classic_groups import STRING_BYTES_MAX, ClassicGroups
from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.consumer_groups import ConsumerGroups, GroupOverrides
from core_broker.groups.deadlines import Deadlines
from core_broker.groups.expiry import Expiry
from core_broker.groups.group import Group, StoredRecord
from core_broker.groups.loading import Loader
from core_broker.groups.offset_commits import OffsetCommits
from core_broker.groups.records import offset_key
from core_broker.groups.shard import Shard, ShardState
from core_broker.groups.subscriptions import Topics
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_DUE_PER_TURN: Final = 1000
_IDLE_SECONDS: Final = 60.0
_CACHED_CHARS_MAX: Final = 200
_cached_partition_for = lru_cache(maxsize=10_000)(partition_for)
"""Java's hash iterates over every character, which is slow; heartbeats need it for the same few groups all the time."""


class GroupCoordinator:
    """All groups whose partition of `__consumer_offsets` is led by this broker."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        clock: Clock,
        partitions: Partitions,
        partition_count: Callable[[], int],
        topics: Callable[[], Topics],
        group_overrides: GroupOverrides,
        group_version: Callable[[], int] = lambda: 1,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._partitions = partitions
        self._partition_count = partition_count
        self._limits = GroupLimits(
            initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms, size_max=settings.group_max_size
        )
        self._shards: dict[int, Shard] = {}
        self._background = Background()
        self._deadlines = Deadlines()
        self._woken = asyncio.Event()
        self._expiry = Expiry(settings=settings, clock=clock)
        self.consumer_groups = ConsumerGroups(self, topics, group_overrides, group_version)
        self.classic = ClassicGroups(self, self._background, self.consumer_groups)
        self.offset_commits = OffsetCommits(
            settings=settings, clock=clock, shard_for=self.shard_for_offsets, new_group=self.new_classic_group
        )

    # --- run, load and resign ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the background work until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._background.run())
                tasks.create_task(self._run_timers())
                tasks.create_task(self._run_expiry())
        finally:
            self.close()

    def close(self) -> None:
        """Resign from all shards; waiting requests get NOT_COORDINATOR."""
        for partition_index in list(self._shards):
            self.resign(partition_index)

    def become_leader(self, partition_index: int, leader_epoch: int) -> None:
        """Load a partition that this broker leads now. Meanwhile requests get COORDINATOR_LOAD_IN_PROGRESS.

        An empty partition is ready at once; others are read in the background by `run()`.
        """
        known = self._shards.get(partition_index)
        if known is not None:
            if known.leader_epoch >= leader_epoch:
                return
            self.resign(partition_index)
        shard = Shard(
            partition_index,
            leader_epoch,
            self._partitions.get(OFFSETS_TOPIC, partition_index),
            clock=self.clock,
            timeout_ms=self.settings.offsets_commit_timeout_ms,
        )
        self._shards[partition_index] = shard
        if shard.led.is_empty:
            self._loader(shard).finish()
        else:
            self._background.start(lambda: self._load(shard))

    def resign(self, partition_index: int) -> None:
        """Drop the groups of a partition that another broker leads now, or that was deleted."""
        shard = self._shards.pop(partition_index, None)
        if shard is None:
            return
        shard.resign()
        for group in shard.groups.values():
            if isinstance(group, ClassicGroup):
                self.classic.reject_waiting(shard, group, ErrorCode.NOT_COORDINATOR)
        log.info("no longer coordinator", extra={"partition": partition_index, "groups": len(shard.groups)})

    async def load_now(self, partition_index: int) -> None:
        """Load a shard without waiting for `run()`, so that it is ready on return."""
        shard = self._shards.get(partition_index)
        if shard is not None and shard.state is ShardState.LOADING:
            await self._load(shard)

    async def _load(self, shard: Shard) -> None:
        if shard.state is not ShardState.LOADING:
            return
        try:
            await self._loader(shard).run()
        except BrokerError as error:
            log.info("load of groups stopped", extra={"partition": shard.partition_index, "reason": error.message})
            return
        for group in shard.groups.values():
            self.arm(shard, group)
        log.info("groups loaded", extra={"partition": shard.partition_index, "groups": len(shard.groups)})

    def _loader(self, shard: Shard) -> Loader:
        return Loader(shard, new_group=self.new_classic_group, consumer_groups=self.consumer_groups)

    # --- finding groups ----------------------------------------------------------------------------------------------

    def shard_for(self, group_id: str) -> Shard:
        """The shard of a group; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS or INVALID_GROUP_ID."""
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        return self.shard_for_offsets(group_id)

    def shard_for_offsets(self, group_id: str) -> Shard:
        """As `shard_for`, but allows an empty group id, which very old clients use for offsets."""
        if len(group_id) > STRING_BYTES_MAX // 4 and len(group_id.encode()) > STRING_BYTES_MAX:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, f"the group id has more than {STRING_BYTES_MAX} bytes")
        shard = self._shards.get(self.partition_of(group_id))
        if shard is None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if shard.state is not ShardState.READY:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard.apply_committed()
        return shard

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that stores a group."""
        count = self._partition_count()
        return (
            _cached_partition_for(group_id, count)
            if len(group_id) <= _CACHED_CHARS_MAX
            else partition_for(group_id, count)
        )

    def find_group(self, group_id: str) -> Group | None:
        """The group, or None; raises the same as `shard_for_offsets`."""
        return self.shard_for_offsets(group_id).groups.get(group_id)

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """An empty classic group, not yet in its shard."""
        return ClassicGroup(group_id, clock=self.clock, limits=self._limits)

    def reject_waiting(self, shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer the requests that wait in a classic group with an error."""
        self.classic.reject_waiting(shard, group, error)

    def loaded_shards(self) -> Iterable[Shard]:
        """All shards that are ready."""
        ready = [shard for shard in self._shards.values() if shard.state is ShardState.READY]
        for shard in ready:
            shard.apply_committed()
        return ready

    @property
    def is_loading(self) -> bool:
        """Whether some groups are not loaded yet."""
        return any(shard.state is ShardState.LOADING for shard in self._shards.values())

    # --- deletion, transactions, expiry ------------------------------------------------------------------------------

    async def delete_group(self, group_id: str) -> None:
        """Delete an empty group with its offsets; raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        shard = self.shard_for_offsets(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        if not group.is_empty:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)
        # Removed at once, so that a member that joins while the deletion is being written gets a new group.
        del shard.groups[group_id]
        removed = shard.offsets.remove_group(group_id)
        tombstones: list[StoredRecord] = [(offset_key(group_id, topic, index), None) for topic, index, _ in removed]
        try:
            await shard.write(tombstones + group.tombstones())
        except NotCommittedError:
            raise  # the group is deleted as soon as the records are committed; until then it is hidden
        except BrokerError:
            shard.groups.setdefault(group_id, group)
            for topic, index, committed in removed:
                shard.offsets.put(group_id, topic, index, committed)
            raise
        log.info("group deleted", extra={"group": group_id, "offsets": len(removed)})

    def complete_transaction(self, partition_index: int, producer_id: int, *, commit: bool, log_offset: int) -> None:
        """A marker was appended to `__consumer_offsets`: commit or drop the pending offsets once it is committed.

        To be called before anything else is appended.
        """
        shard = self._shards.get(partition_index)
        # A shard that is loading reads the marker from the log.
        if shard is not None and shard.state is ShardState.READY:
            shard.apply_committed()
            complete = shard.offsets.complete
            shard.when_committed(log_offset, lambda _: complete(producer_id, commit=commit))

    def on_topics_deleted(self, names: Iterable[str]) -> None:
        """Remove the offsets of deleted topics in the background."""
        topics = [name for name in names if name != OFFSETS_TOPIC]
        for shard in self.loaded_shards() if topics else ():
            self._background.start(partial(self._expiry.forget_topics, shard, topics))

    async def expire(self) -> None:
        """Remove expired offsets and groups now."""
        for shard in self.loaded_shards():
            await self._expiry.clean(shard)

    # --- time --------------------------------------------------------------------------------------------------------

    def arm(self, shard: Shard, group: Group) -> None:
        """Schedule the group's next deadline."""
        moment = group.next_deadline()
        if moment is not None and self._deadlines.arm((shard.partition_index, group.group_id), moment):
            self._woken.set()

    def run_due(self) -> None:
        """Notify every group whose deadline has passed."""
        for partition_index, group_id in self._deadlines.take_due(self.clock.monotonic(), limit=_DUE_PER_TURN):
            shard = self._shards.get(partition_index)
            group = shard.groups.get(group_id) if shard is not None else None
            if shard is None or group is None or shard.state is not ShardState.READY:
                continue
            if isinstance(group, ClassicGroup):
                self.classic.on_deadline(shard, group)
            elif isinstance(group, ConsumerGroup):
                self._background.start(partial(self._on_consumer_deadline, shard, group))

    async def _on_consumer_deadline(self, shard: Shard, group: ConsumerGroup) -> None:
        try:
            await self.consumer_groups.on_deadline(shard, group)
        except BrokerError as error:
            log.warning("expired members not removed yet", extra={"group_id": group.group_id, "error": error.code.name})
        finally:
            self.arm(shard, group)

    async def _run_timers(self) -> None:
        while True:
            moment = self._deadlines.next_moment()
            seconds = _IDLE_SECONDS if moment is None else max(moment - self.clock.monotonic(), 0.0)
            try:
                async with asyncio.timeout(min(seconds, _IDLE_SECONDS)):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            self.run_due()

    async def _run_expiry(self) -> None:
        while True:
            await asyncio.sleep(self.settings.offsets_retention_check_interval_ms / 1000)
            await self.expire()
