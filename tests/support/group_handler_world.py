"""The broker without sockets, with a group coordinator in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.cluster.partition import Partition
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from core_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from core_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.support.classic_group_world import RANGE
from tests.support.handler_world import OFFSETS_PARTITIONS, HandlerWorld

GROUP = "readers"
R = TypeVar("R", bound=Message)


class GroupHandlers:
    """A handler world whose groups work, and the requests that lead up to the one under test."""

    def __init__(self, world: HandlerWorld) -> None:
        self.world = world
        self.call = world.call
        self.coordinator = world.services.groups
        world.partitions.on_leadership.append(self._take_over)

    def _take_over(self, partition: Partition) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.coordinator.become_leader(partition.index, partition.leader_epoch)

    async def join(self, member_id: str = "", *, version: int = 9, instance_id: str | None = None) -> JoinGroupResponse:
        """Send a JoinGroup; with version 4 and above twice, as clients do."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in RANGE],
        )
        return await self.call(request, JoinGroupResponse, version)

    async def stable_member(self, instance_id: str | None = None) -> str:
        """Join alone and get an assignment; returns the member id."""
        joined = await self.join(version=3 if instance_id is None else 9, instance_id=instance_id)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[SyncGroupRequestAssignment(joined.member_id, b"all")],
        )
        synced = await self.call(request, SyncGroupResponse, 3)
        assert (synced.error_code, synced.assignment) == (0, b"all")
        return joined.member_id

    async def commit(
        self,
        *offsets: tuple[str, int, int],
        version: int = 9,
        member_id: str = "",
        generation: int = -1,
        note: str | None = None,
        retention_time_ms: int = -1,
    ) -> list[int]:
        """Commit offsets (topic, partition, offset); returns the error of each."""
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            retention_time_ms=retention_time_ms,
            topics=[
                OffsetCommitRequestTopic(
                    topic, partitions=[OffsetCommitRequestPartition(partition, offset, 4, committed_metadata=note)]
                )
                for topic, partition, offset in offsets
            ],
        )
        answer = await self.call(request, OffsetCommitResponse, version)
        return [partition.error_code for topic in answer.topics for partition in topic.partitions]

    async def fetch(self, topic: str, *partitions: int, require_stable: bool = False) -> list[tuple[int, int]]:
        """The (offset, error) of partitions."""
        group = OffsetFetchRequestGroup(
            GROUP, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[*partitions])]
        )
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        answer = await self.call(request, OffsetFetchResponse, 9)
        assert answer.groups[0].error_code == 0
        found: list[OffsetFetchResponsePartitions] = answer.groups[0].topics[0].partitions
        return [(partition.committed_offset, partition.error_code) for partition in found]


@asynccontextmanager
async def group_handlers(world: HandlerWorld) -> AsyncIterator[GroupHandlers]:
    """`__consumer_offsets`, `orders` with two partitions, and a running coordinator."""
    handlers = GroupHandlers(world)
    await world.create(OFFSETS_TOPIC, OFFSETS_PARTITIONS, cleanup_policy="compact")
    await world.create("orders", 2)
    running = asyncio.get_running_loop().create_task(handlers.coordinator.run())
    await asyncio.sleep(0)
    yield handlers
    running.cancel()
    await asyncio.wait([running])
