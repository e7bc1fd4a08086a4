"""CreateTopics, key 19, versions 2-7.

Supported: partition and replica counts or -1 for the broker's defaults, manual assignments, configs, validate_only;
each topic has its own result. The response is sent when the topics can be used. A client that creates too much is
throttled, and from version 6 on refused topic by topic (KIP-599).
Ignored: the time-out (a metadata change takes no longer than one sync to disk).

Versions: 4 counts of -1 (KIP-464); 5 flexible, counts and configs in the response (KIP-525); 6 quota errors;
7 topic ids (KIP-516).
"""

from collections import Counter
from typing import Final

from core_broker.cluster.controller.topics import CreatedTopic, NewTopic
from core_broker.cluster.effective_settings import broker_config
from core_broker.cluster.quorum import METADATA_TOPIC
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, Purpose, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import create_topics as wire
from core_broker.settings import BrokerConfig, describe_topic

_STRICT_SINCE: Final = 6


async def handle(request: wire.CreateTopicsRequest, context: RequestContext) -> wire.CreateTopicsResponse:
    """Create the valid topics."""
    counts = Counter(topic.name for topic in request.topics)
    may_create = may_use_topics(context)
    plans = {topic.name: _new_topic(topic, may_create) for topic in request.topics if counts[topic.name] == 1}
    wanted = [plan for plan in plans.values() if isinstance(plan, NewTopic)]
    controller = context.services.controller
    quota = context.mutations(is_strict=context.api_version >= _STRICT_SINCE)
    created = await controller.create_topics(wanted, validate_only=request.validate_only, quota=quota)
    outcomes = dict(zip((topic.name for topic in wanted), created, strict=True))
    config = broker_config(controller.image, context.services.settings)
    shows_configs = may_use_topics(context, Purpose.SHOW_CONFIGS)
    return wire.CreateTopicsResponse(
        throttle_time_ms=quota.throttle_ms,
        topics=[_result(name, plans.get(name), outcomes.get(name), config, shows_configs) for name in counts],
    )


def _new_topic(topic: wire.CreatableTopic, may_create: Predicate) -> NewTopic | BrokerError:
    if topic.name == METADATA_TOPIC:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"{METADATA_TOPIC} is reserved for the cluster's own metadata.")
    if not may_create(topic.name):
        return BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
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
    name: str,
    plan: NewTopic | BrokerError | None,
    outcome: CreatedTopic | BrokerError | None,
    config: BrokerConfig,
    shows_configs: Predicate,
) -> wire.CreatableTopicResult:
    if plan is None:
        outcome = BrokerError(ErrorCode.INVALID_REQUEST, f"Topic {name!r} is in the request more than once.")
    elif isinstance(plan, BrokerError):
        outcome = plan
    if isinstance(outcome, CreatedTopic) and not shows_configs(name):
        return wire.CreatableTopicResult(
            name=outcome.name,
            topic_id=outcome.topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
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
