"""A coordinator that serves classic and KIP-848 members of the same groups."""

import struct
from typing import Any

from core_broker.cluster.metadata import PartitionImage, TopicImage
from core_broker.groups.consumer_groups import ConsumerGroups
from core_broker.groups.group import Group
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from core_broker.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
)
from tests.support.group_coordinator_world import GROUP, GroupCoordinatorWorld

PARTITION = PartitionImage(replicas=(0,), isr=(0,), leader_id=0, leader_epoch=0, partition_epoch=0)
ORDERS = TopicImage("orders", b"o" * 16, {0: PARTITION, 1: PARTITION})


def assigned(*numbers: int, user_data: bytes | None = None) -> bytes:
    """What a leader sends to a member that is to read these partitions."""
    topics = [ConsumerProtocolAssignmentTopicPartition("orders", list(numbers))] if numbers else []
    return struct.pack(">h", 3) + bytes(encode(ConsumerProtocolAssignment(topics, user_data), 3))


def numbers_in(assignment: bytes) -> list[int]:
    """The partitions that a SyncGroup gives to a member."""
    if not assignment:
        return []
    (version,) = struct.unpack_from(">h", assignment)
    content = decode(ConsumerProtocolAssignment, version, assignment, 2)
    return [number for topic in content.assigned_partitions for number in topic.partitions]


WHOLE_TOPIC = assigned(0, 1)


class BothKindsWorld(GroupCoordinatorWorld):
    """One topic, `orders`, of two partitions."""

    topics = {"orders": ORDERS}

    @property
    def consumer_groups(self) -> ConsumerGroups:
        """The server of members of the new protocol."""
        return self.coordinator.consumer_groups

    async def beat(self, epoch: int = 0, member_id: str = "new", **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat of the new protocol; epoch 0 joins, -1 leaves."""
        said = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, **{**said, **fields}
        )
        return await self.consumer_groups.heartbeat(request, version=1, client_id="client", client_host="/127.0.0.1")

    @property
    def group(self) -> Group:
        """The group that all tests use."""
        group = self.coordinator.find_group(GROUP)
        assert group is not None
        return group
