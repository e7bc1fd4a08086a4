"""CreatePartitions, key 37, versions 0-3: adds partitions to existing topics.

Supported: a new total, with or without manual assignments of the new partitions; validate_only.
Ignored: the time-out (a metadata change takes no longer than one sync to disk).

Versions: 2 flexible; 3 quota errors, which never happen.
"""

from collections import Counter

from core_broker.cluster.controller.topics import MorePartitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    """Add partitions to the valid topics."""
    counts = Counter(topic.name for topic in request.topics)
    wanted = [topic for topic in request.topics if counts[topic.name] == 1]
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
    )
    results = [_result(topic.name, outcome) for topic, outcome in zip(wanted, outcomes, strict=True)]
    repeated = BrokerError(ErrorCode.INVALID_REQUEST, "The topic is in the request more than once.")
    results.extend(_result(name, repeated) for name, count in counts.items() if count > 1)
    return CreatePartitionsResponse(results=results)


def _result(name: str, outcome: BrokerError | None) -> CreatePartitionsTopicResult:
    if outcome is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, outcome.code, outcome.message)
