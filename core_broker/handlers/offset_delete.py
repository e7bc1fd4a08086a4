"""OffsetDelete, key 47, version 0.

Deletes committed offsets of a group (KIP-496). Topics that its members subscribe to are rejected with
GROUP_SUBSCRIBED_TO_TOPIC; a group whose members are not consumers is rejected as a whole with NON_EMPTY_GROUP.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import offset_delete as wire


async def handle(request: wire.OffsetDeleteRequest, context: RequestContext) -> wire.OffsetDeleteResponse:
    """Delete the committed offsets."""
    topics = context.services.metadata.image.topics
    response = wire.OffsetDeleteResponse()
    wanted: list[tuple[str, int]] = []
    accepted: list[wire.OffsetDeleteResponsePartition] = []
    may_read = may_use_topics(context)
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            answer = wire.OffsetDeleteResponsePartition(partition.partition_index)
            if not may_read(topic.name):
                answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic.name not in topics or partition.partition_index not in topics[topic.name].partitions:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append((topic.name, partition.partition_index))
                accepted.append(answer)
            answers.append(answer)
        response.topics.append(wire.OffsetDeleteResponseTopic(topic.name, answers))
    try:
        errors = await context.services.groups.offset_commits.delete(request.group_id, wanted)
    except BrokerError as error:
        return wire.OffsetDeleteResponse(error_code=error.code)
    for answer, error_code in zip(accepted, errors, strict=True):
        answer.error_code = error_code
    return response
