"""ListPartitionReassignments, key 46, version 0: the partitions being reassigned (KIP-455).

Supported: selected partitions, or (null) all; as in Kafka, only those with a reassignment in progress are listed.
Ignored: the time-out.
"""

from collections.abc import Iterable

from core_broker.cluster.metadata import MetadataImage
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import list_partition_reassignments as wire


def handle(
    request: wire.ListPartitionReassignmentsRequest, context: RequestContext
) -> wire.ListPartitionReassignmentsResponse:
    """List the reassignments in progress."""
    image = context.services.metadata.image
    if request.topics is None:
        wanted: list[tuple[str, Iterable[int]]] = [(name, topic.partitions) for name, topic in image.topics.items()]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = [wire.OngoingTopicReassignment(name, _reassignments(name, indexes, image)) for name, indexes in wanted]
    return wire.ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in topics if topic.partitions]
    )


def _reassignments(topic: str, indexes: Iterable[int], image: MetadataImage) -> list[wire.OngoingPartitionReassignment]:
    partitions = image.topics[topic].partitions if topic in image.topics else {}
    found = ((index, partitions[index]) for index in indexes if index in partitions)
    return [
        wire.OngoingPartitionReassignment(
            index, list(partition.replicas), list(partition.adding_replicas), list(partition.removing_replicas)
        )
        for index, partition in found
        if partition.adding_replicas or partition.removing_replicas
    ]
