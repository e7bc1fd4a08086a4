"""CreatePartitions, key 37, versions 0-3: adds partitions to existing topics.

Supported: a new total, with or without manual assignments of the new partitions; validate_only. A client
that adds too many is throttled, and from version 3 on refused topic by topic (KIP-599).
Ignored: the time-out (a metadata change takes no longer than one sync to disk).

Versions: 2 flexible; 3 quota errors.
"""

from collections import Counter
from typing import Final

from core_broker.cluster.controller.topics import MorePartitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

_STRICT_SINCE: Final = 3


async def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    """Add partitions to the valid topics."""
    counts = Counter(topic.name for topic in request.topics)
    may_alter = may_use_topics(context)
    wanted = [topic for topic in request.topics if counts[topic.name] == 1 and may_alter(topic.name)]
    quota = context.mutations(is_strict=context.api_version >= _STRICT_SINCE)
    outcomes = await context.services.controller.create_partitions(
        [
            MorePartitions(
                name=topic.name,
                count=topic.count,
                assignments=None if topic.assignments is None else [item.broker_ids for item in topic.assignments],
            )
            for topic in wanted
        ],
        validate_only=request.validate_only,
        quota=quota,
    )
    results = [_result(topic.name, outcome) for topic, outcome in zip(wanted, outcomes, strict=True)]
    repeated = BrokerError(ErrorCode.INVALID_REQUEST, "The topic is in the request more than once.")
    results.extend(_result(name, repeated) for name, count in counts.items() if count > 1)
    refused = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    results.extend(_result(name, refused) for name, count in counts.items() if count == 1 and not may_alter(name))
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=results)


def _result(name: str, outcome: BrokerError | None) -> CreatePartitionsTopicResult:
    if outcome is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, outcome.code, outcome.message)
