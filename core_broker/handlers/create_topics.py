"""CreateTopics, key 19, versions 2-7.

Supported: partition and replica counts or -1 for the broker's defaults, manual assignments, configs, validate_only;
each topic has its own result. The response is sent when the topics can be used.
Ignored: the time-out (a metadata change takes no longer than one sync to disk).

Versions: 4 counts of -1 (KIP-464); 5 flexible, counts and configs in the response (KIP-525); 6 quota errors, which
never happen; 7 topic ids (KIP-516).
"""

from collections import Counter

from core_broker.cluster.controller.topics import CreatedTopic, NewTopic
from core_broker.cluster.effective_settings import broker_config
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import create_topics as wire
from core_broker.settings import BrokerConfig, describe_topic


async def handle(request: wire.CreateTopicsRequest, context: RequestContext) -> wire.CreateTopicsResponse:
    """Create the valid topics."""
    counts = Counter(topic.name for topic in request.topics)
    plans = {topic.name: _new_topic(topic) for topic in request.topics if counts[topic.name] == 1}
    wanted = [plan for plan in plans.values() if isinstance(plan, NewTopic)]
    controller = context.services.controller
    created = await controller.create_topics(wanted, validate_only=request.validate_only)
    outcomes = dict(zip((topic.name for topic in wanted), created, strict=True))
    config = broker_config(controller.image, context.services.settings)
    return wire.CreateTopicsResponse(
        topics=[_result(name, plans.get(name), outcomes.get(name), config) for name in counts]
    )


def _new_topic(topic: wire.CreatableTopic) -> NewTopic | BrokerError:
    assignments = {item.partition_index: item.broker_ids for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        return BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment names a partition more than once."
        )
    return NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs={config.name: config.value for config in topic.configs},
    )


def _result(
    name: str, plan: NewTopic | BrokerError | None, outcome: CreatedTopic | BrokerError | None, config: BrokerConfig
) -> wire.CreatableTopicResult:
    if plan is None:
        outcome = BrokerError(ErrorCode.INVALID_REQUEST, f"Topic {name!r} is in the request more than once.")
    elif isinstance(plan, BrokerError):
        outcome = plan
    if isinstance(outcome, CreatedTopic):
        return wire.CreatableTopicResult(
            name=outcome.name,
            topic_id=outcome.topic_id,
            error_message=None,
            num_partitions=outcome.partition_count,
            replication_factor=outcome.replication_factor,
            configs=[
                wire.CreatableTopicConfigs(
                    setting.key, setting.value, setting.is_read_only, setting.source, setting.is_sensitive
                )
                for setting in describe_topic(outcome.configs, config)
            ],
        )
    error = outcome or BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return wire.CreatableTopicResult(name=name, error_code=error.code, error_message=error.message, configs=None)
