"""DescribeQuorum, key 55, versions 0-2: the leader of the metadata log and the progress of each voter (KIP-595).

Supported: its only partition. This node is the only voter, so it has always caught up.
Ignored: nothing.

Versions: 1 times of the last fetch (KIP-836); 2 directory ids, messages and listeners (KIP-853).
"""

from core_broker.cluster.quorum import METADATA_TOPIC
from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_quorum as wire


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
        nodes=[_node(context)],
    )


def _describe(topic: str, index: int, context: RequestContext) -> wire.DescribeQuorumResponsePartitionData:
    if topic != METADATA_TOPIC or index != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return wire.DescribeQuorumResponsePartitionData(index, code, f"only {METADATA_TOPIC}-0 has a quorum")
    quorum = context.services.metadata
    now_ms = context.services.clock.now_ms()
    voter = wire.ReplicaState(
        replica_id=quorum.node_id,
        log_end_offset=quorum.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return wire.DescribeQuorumResponsePartitionData(
        partition_index=index,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[voter],
    )


def _node(context: RequestContext) -> wire.Node:
    """The listeners of the controller; on this node they are those of the broker."""
    node_id = context.services.metadata.node_id
    broker = context.services.metadata.image.brokers.get(node_id)
    endpoints = broker.endpoints if broker is not None else ()
    return wire.Node(
        node_id, [wire.Listener(endpoint.listener, endpoint.host, endpoint.port) for endpoint in endpoints]
    )
