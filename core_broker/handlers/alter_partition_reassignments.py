"""AlterPartitionReassignments, key 45, versions 0-1: moves replicas between brokers (KIP-455).

Supported: a single node has nowhere to move replicas to. The current replicas of a partition are accepted, others
rejected; cancelling returns NO_REASSIGNMENT_IN_PROGRESS.
Ignored: the time-out, allow_replication_factor_change.

Versions: 1 allow_replication_factor_change (KIP-860).
"""

from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.replica_placement import check_assignment
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import alter_partition_reassignments as wire


def handle(
    request: wire.AlterPartitionReassignmentsRequest, context: RequestContext
) -> wire.AlterPartitionReassignmentsResponse:
    """Check each partition."""
    image = context.services.metadata.image
    return wire.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            wire.ReassignableTopicResponse(topic.name, [_answer(topic.name, item, image) for item in topic.partitions])
            for topic in request.topics
        ],
    )


def _answer(topic: str, wanted: wire.ReassignablePartition, image: MetadataImage) -> wire.ReassignablePartitionResponse:
    try:
        found = image.topics[topic].partitions.get(wanted.partition_index) if topic in image.topics else None
        if found is None:
            text = f"No such partition as {topic}-{wanted.partition_index}"
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        if wanted.replicas is None:
            raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        check_assignment(wanted.replicas, image.brokers, replication_factor=len(wanted.replicas))
        if tuple(wanted.replicas) != found.replicas:
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{topic}-{wanted.partition_index} has the replicas {list(found.replicas)};"
                " moving them is not supported.",
            )
    except BrokerError as error:
        return wire.ReassignablePartitionResponse(wanted.partition_index, error.code, error.message)
    return wire.ReassignablePartitionResponse(wanted.partition_index, ErrorCode.NONE, None)
