"""DeleteTopics, key 20, versions 1-6.

Supported: by name, and by id (6, KIP-516). When the response is sent, the topics are removed from the metadata; their
files are deleted in the background. A client that deletes too much is throttled, and from version 5 on refused topic by
topic (KIP-599).
Ignored: the time-out (a metadata change takes no longer than one sync to disk).

Versions: 3 TOPIC_DELETION_DISABLED instead of INVALID_REQUEST (KIP-322); 4 flexible; 5 messages, quota errors.
"""

import random
from collections import Counter
from typing import Final

from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, Purpose, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import delete_topics as wire
from core_broker.protocol.primitives import ZERO_UUID

_BY_ID_SINCE: Final = 6
_DISABLED_SINCE: Final = 3
_STRICT_SINCE: Final = 5


async def handle(request: wire.DeleteTopicsRequest, context: RequestContext) -> wire.DeleteTopicsResponse:
    """Delete the valid topics."""
    controller = context.services.controller
    if not controller.settings.delete_topic_enable:
        is_known = context.api_version >= _DISABLED_SINCE
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        raise BrokerError(code, "topics cannot be deleted because of delete.topic.enable=false")
    if context.api_version < _BY_ID_SINCE:
        wanted = [wire.DeleteTopicState(name=name) for name in request.topic_names]
    else:
        wanted = request.topics
    may_delete, may_know = may_use_topics(context), may_use_topics(context, Purpose.KNOW)
    results = [_find(topic, controller.image, may_delete, may_know) for topic in wanted]
    counts = Counter(result.topic_id for result in results if not result.error_code)
    for result in results:
        if counts[result.topic_id] > 1:
            _set_error(result, BrokerError(ErrorCode.INVALID_REQUEST, "The topic is in the request more than once."))
    found = [result for result in results if not result.error_code]
    quota = context.mutations(is_strict=context.api_version >= _STRICT_SINCE)
    outcomes = await controller.delete_topics([result.topic_id for result in found], quota=quota)
    for result, outcome in zip(found, outcomes, strict=True):
        if outcome is not None:
            _set_error(result, outcome)
    if context.authorizer is not None:
        # In their order, a topic that is missing could be told from one that the client must not know of.
        random.shuffle(results)
    return wire.DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=results)


def _find(
    wanted: wire.DeleteTopicState, image: MetadataImage, may_delete: Predicate, may_know: Predicate
) -> wire.DeletableTopicResult:
    result = wire.DeletableTopicResult(name=wanted.name, topic_id=wanted.topic_id)
    by_id = wanted.topic_id != ZERO_UUID
    if by_id == (wanted.name is not None):
        _set_error(result, BrokerError(ErrorCode.INVALID_REQUEST, "Specify either the name or the id of the topic."))
        return result
    topic = image.topics_by_id.get(wanted.topic_id) if by_id else image.topics.get(wanted.name or "")
    name = wanted.name if topic is None else topic.name
    if name is not None and not ((by_id or may_know(name)) and (topic is None or may_delete(name))):
        if by_id and may_know(name):
            result.name = name
        _set_error(result, BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    elif topic is not None:
        result.name, result.topic_id = topic.name, topic.topic_id
    elif by_id:
        _set_error(result, BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "This topic id does not exist."))
    else:
        text = f"The topic {wanted.name!r} does not exist."
        _set_error(result, BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text))
    return result


def _set_error(result: wire.DeletableTopicResult, error: BrokerError) -> None:
    result.error_code, result.error_message = error.code, error.message
