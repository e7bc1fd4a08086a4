"""A member of a consumer group that sends its requests one by one, to the broker that a test chooses."""

import struct

from core_broker.protocol.messages import consumer_group_heartbeat as kip848
from core_broker.protocol.messages import heartbeat, join_group, offset_commit, offset_fetch, sync_group
from tests.support.patience import eventually
from tests.support.wire import WireConnection


class WireMember:
    """The only member of a group of either protocol, which commits offsets of the first partition of its topic."""

    def __init__(self, group: str, topic: str) -> None:
        self.group = group
        self.topic = topic
        self.member_id = "member"
        name = struct.pack(">h", len(topic)) + topic.encode()
        self.subscription = struct.pack(">hi", 0, 1) + name + struct.pack(">i", -1)
        self.assignment = struct.pack(">hi", 0, 1) + name + struct.pack(">iii", 1, 0, -1)
        """What a classic member says to the others in Kafka's own format, which a Kafka coordinator reads, too."""
        self.epoch = -1
        """The generation of a classic group."""

    def join_classic(self, connection: WireConnection) -> None:
        """Join alone, and give oneself an assignment."""

        def join() -> join_group.JoinGroupResponse:
            request = join_group.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=120_000,
                rebalance_timeout_ms=120_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=self.subscription)],
            )
            answer = connection.request(request, 5, join_group.JoinGroupResponse)
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            return answer

        self.member_id = ""
        eventually(join, lambda answer: answer.error_code == 0)
        request = sync_group.SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            assignments=[sync_group.SyncGroupRequestAssignment(self.member_id, self.assignment)],
        )
        assert connection.request(request, 3, sync_group.SyncGroupResponse).error_code == 0

    def beat_classic(self, connection: WireConnection) -> int:
        """Say that one is alive; returns the error code."""
        request = heartbeat.HeartbeatRequest(self.group, self.epoch, self.member_id)
        return connection.request(request, 3, heartbeat.HeartbeatResponse).error_code

    def assignment_classic(self, connection: WireConnection) -> bytes:
        """Ask for the assignment again."""
        request = sync_group.SyncGroupRequest(group_id=self.group, generation_id=self.epoch, member_id=self.member_id)
        return connection.request(request, 3, sync_group.SyncGroupResponse).assignment

    def beat_new(self, connection: WireConnection, *, joins: bool = False) -> kip848.ConsumerGroupHeartbeatResponse:
        """Join, or say that one is alive, in the protocol of KIP-848; the full request asks for the assignment."""
        request = kip848.ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=0 if joins else self.epoch,
            rebalance_timeout_ms=120_000,
            subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )
        return connection.request(request, 1, kip848.ConsumerGroupHeartbeatResponse)

    def commit(self, connection: WireConnection, offset: int) -> int:
        """Commit as the member that one is; returns the error code."""
        partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = offset_commit.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[offset_commit.OffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        answer = connection.request(request, 9, offset_commit.OffsetCommitResponse)
        return answer.topics[0].partitions[0].error_code

    def committed(self, connection: WireConnection) -> int:
        """The committed offset, or -1."""
        topics = [offset_fetch.OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        group = offset_fetch.OffsetFetchRequestGroup(group_id=self.group, topics=topics)
        answer = connection.request(
            offset_fetch.OffsetFetchRequest(groups=[group]), 9, offset_fetch.OffsetFetchResponse
        )
        found = answer.groups[0]
        return -1 if found.error_code else found.topics[0].partitions[0].committed_offset
