"""DescribeQuorum, key 55, versions 0-2: the leader of the metadata log and the progress of each voter (KIP-595).

Supported: its only partition, voters and observers; answered by the leader.
Ignored: nothing.

Versions: 1 times of the last fetch (KIP-836); 2 directory ids, messages and listeners (KIP-853).
"""

from core_broker.cluster.quorum import METADATA_TOPIC, QuorumReplica
from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_quorum as wire
from core_broker.raft.voters import Voter


def handle(request: wire.DescribeQuorumRequest, context: RequestContext) -> wire.DescribeQuorumResponse:
    """Describe the quorum."""
    return wire.DescribeQuorumResponse(
        error_message=None,
        topics=[
            wire.DescribeQuorumResponseTopicData(
                topic.topic_name,
                [_describe(topic.topic_name, item.partition_index, context) for item in topic.partitions],
            )
            for topic in request.topics
        ],
        nodes=[_node(voter) for voter in context.services.metadata.voters],
    )


def _describe(topic: str, index: int, context: RequestContext) -> wire.DescribeQuorumResponsePartitionData:
    if topic != METADATA_TOPIC or index != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return wire.DescribeQuorumResponsePartitionData(index, code, f"only {METADATA_TOPIC}-0 has a quorum")
    quorum = context.services.metadata
    replicas = quorum.replicas()
    return wire.DescribeQuorumResponsePartitionData(
        partition_index=index,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_replica(replica) for replica in replicas if replica.is_voter],
        observers=[_replica(replica) for replica in replicas if not replica.is_voter],
    )


def _replica(replica: QuorumReplica) -> wire.ReplicaState:
    return wire.ReplicaState(
        replica_id=replica.key.id,
        replica_directory_id=replica.key.directory,
        log_end_offset=replica.end_offset,
        last_fetch_timestamp=replica.fetched_ms,
        last_caught_up_timestamp=replica.caught_up_ms,
    )


def _node(voter: Voter) -> wire.Node:
    return wire.Node(voter.key.id, [wire.Listener(name, *address) for name, address in voter.endpoints])
