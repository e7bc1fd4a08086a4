"""A group coordinator over partitions in memory, with a clock that tests move."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.cluster.partitions import Partitions
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.groups.offset_commits import Committer, TransactionalProducer
from core_broker.groups.offsets import CommittedOffset
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.classic_group_world import RANGE
from tests.support.fake_partitions import FakePartition, FakePartitions

GROUP = "readers"


class GroupCoordinatorWorld:
    """One coordinator of all partitions; `restart` gives its log to a fresh one."""

    topics: Topics = {}

    def __init__(self, *, partition_count: int = 2, **settings: int | str) -> None:
        self.clock = ManualClock(1_000_000)
        self.settings = BrokerSettings(**{"group_initial_rebalance_delay_ms": 0, **settings})  # type: ignore[arg-type]
        # ... since mypy takes the values for those of every setting
        self.partitions = FakePartitions()
        self.partition_count = partition_count
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = self.new_coordinator()
        for index in range(self.partition_count):
            coordinator.become_leader(index, self.partitions.get(OFFSETS_TOPIC, index).leader_epoch)
        return coordinator

    def new_coordinator(self) -> GroupCoordinator:
        """A coordinator of the same partitions that leads none of them yet."""
        return GroupCoordinator(
            settings=self.settings,
            clock=self.clock,
            partitions=cast(Partitions, self.partitions),
            partition_count=lambda: self.partition_count,
            topics=lambda: self.topics,
            group_overrides=lambda _group_id: {},
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the coordinator's background work for as long as the block lasts."""
        task = asyncio.ensure_future(self.coordinator.run())
        try:
            await asyncio.sleep(0)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def restart(self) -> None:
        """A new coordinator reads what the old one has written."""
        self.coordinator = self._new_coordinator()
        for index in range(self.partition_count):
            await self.coordinator.load_now(index)

    def partition_of(self, group_id: str = GROUP) -> FakePartition:
        """Where a group is stored."""
        return self.partitions.get(OFFSETS_TOPIC, self.coordinator.partition_of(group_id))

    async def advance(self, milliseconds: int) -> None:
        """Let time pass and what came due happen."""
        self.clock.advance(milliseconds)
        self.coordinator.run_due()
        await settle()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def join(
        self, member_id: str = "", *, group_id: str = GROUP, version: int = 3, instance_id: str | None = None
    ) -> JoinGroupResponse:
        """Send a JoinGroup."""
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in RANGE],
        )
        return await self.coordinator.classic.join(
            request, api_version=version, client_id="client", client_host="/127.0.0.1"
        )

    async def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, *, group_id: str = GROUP
    ) -> SyncGroupResponse:
        """Send a SyncGroup."""
        given = [SyncGroupRequestAssignment(member, assignment) for member, assignment in (assignments or {}).items()]
        request = SyncGroupRequest(group_id=group_id, generation_id=generation, member_id=member_id, assignments=given)
        return await self.coordinator.classic.sync(request)

    async def stable_member(self, group_id: str = GROUP) -> str:
        """Join alone and get an assignment; returns the member id."""
        joined = await self.join(group_id=group_id)
        synced = await self.sync(joined.member_id, joined.generation_id, {joined.member_id: b"all"}, group_id=group_id)
        assert synced.assignment == b"all"
        return joined.member_id

    async def commit(
        self,
        offset: int,
        *,
        topic: str = "orders",
        partition: int = 0,
        committer: Committer | None = None,
        version: int = 8,
        expires_at_ms: int = -1,
    ) -> None:
        """Commit one offset."""
        committed = CommittedOffset(offset, committed_at_ms=self.clock.now_ms(), expires_at_ms=expires_at_ms)
        await self.coordinator.offset_commits.commit(
            committer or Committer(group_id=GROUP), [(topic, partition, committed)], api_version=version
        )

    async def commit_in_transaction(self, offset: int, *, producer_id: int = 7, topic: str = "orders") -> None:
        """Commit one offset as part of a transaction."""
        await self.coordinator.offset_commits.commit_in_transaction(
            Committer(group_id=GROUP),
            [(topic, 0, CommittedOffset(offset, committed_at_ms=self.clock.now_ms()))],
            producer=TransactionalProducer(producer_id=producer_id, producer_epoch=0),
            api_version=3,
        )

    async def end_transaction(self, *, commit: bool, producer_id: int = 7) -> None:
        """Write the marker, as the transaction coordinator does."""
        partition = self.partition_of()
        offset = await partition.append_marker(producer_id, 0, commit=commit, coordinator_epoch=0)
        self.coordinator.complete_transaction(partition.index, producer_id, commit=commit, log_offset=offset)

    def committed(self, topic: str = "orders", partition: int = 0, *, group_id: str = GROUP) -> int | None:
        """The committed offset of a partition."""
        found = self.coordinator.offset_commits.fetch(group_id).get(topic, partition)
        return found.offset if found is not None else None


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)
