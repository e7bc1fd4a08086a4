"""DescribeTopicPartitions, key 75, version 0: topics page by page, with their eligible leader replicas (KIP-966).

Supported: selected topics or (an empty list) all of them, ordered by name; a cursor to continue from; at most
`max.request.partition.size.limit` partitions in one response.
Ignored: nothing. Topics are never created automatically.
"""

from core_broker.cluster.controller.topic_rules import is_valid_topic_name
from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import ErrorCode
from core_broker.handlers.access import may_use_topics
from core_broker.handlers.authorized_operations import topic_operations
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_topic_partitions as wire


def handle(
    request: wire.DescribeTopicPartitionsRequest, context: RequestContext
) -> wire.DescribeTopicPartitionsResponse:
    """Describe topics from the cursor on, until the page is full."""
    image = context.services.metadata.image
    room = max(1, min(request.response_partition_limit, context.services.settings.max_request_partition_size_limit))
    first_topic, first_partition = "", 0
    if request.cursor is not None:
        first_topic, first_partition = request.cursor.topic_name, request.cursor.partition_index
        if first_partition < 0:
            # The response has no top-level error code, only those of its topics.
            rejected = [
                wire.DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name)
                for topic in request.topics
            ]
            return wire.DescribeTopicPartitionsResponse(topics=rejected)
    response = wire.DescribeTopicPartitionsResponse(topics=[])
    named = {topic.name for topic in request.topics if topic.name >= first_topic}
    wanted = named if request.topics else {name for name in image.topics if name >= first_topic}
    may_describe = may_use_topics(context)
    for name in sorted(filter(may_describe, wanted)):
        if room <= 0:
            response.next_cursor = wire.DescribeTopicPartitionsResponseCursor(name, 0)
            break
        start = first_partition if name == first_topic else 0
        described, next_partition = _describe(name, image, start, room)
        if not described.error_code:
            described.topic_authorized_operations = topic_operations(context, name)
        response.topics.append(described)
        room -= len(described.partitions)
        if next_partition is not None:
            response.next_cursor = wire.DescribeTopicPartitionsResponseCursor(name, next_partition)
            break
    # Whether or not they exist, and not where they would be if they did.
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    response.topics.extend(
        wire.DescribeTopicPartitionsResponseTopic(refused, name) for name in sorted(named) if not may_describe(name)
    )
    return response


def _describe(
    name: str, image: MetadataImage, start: int, room: int
) -> tuple[wire.DescribeTopicPartitionsResponseTopic, int | None]:
    """One topic from partition `start` on, and the partition to go on with if there was no room for all."""
    topic = image.topics.get(name)
    if topic is None:
        known = is_valid_topic_name(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.INVALID_TOPIC_EXCEPTION
        return wire.DescribeTopicPartitionsResponseTopic(code, name), None
    indexes = [index for index in sorted(topic.partitions) if index >= start]
    live = {broker.broker_id for broker in image.live_brokers()}
    described = wire.DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[
            wire.DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if partition.leader_id in live else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader_id if partition.leader_id in live else -1,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=[replica for replica in partition.replicas if replica not in live],
            )
            for index, partition in ((index, topic.partitions[index]) for index in indexes[:room])
        ],
    )
    return described, indexes[room] if len(indexes) > room else None
