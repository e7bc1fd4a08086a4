"""DescribeConfigs, key 32, versions 1-4: every key with its value, source, type and documentation.

Supported: topics, brokers (by id: all configs; by the empty name: those set for all brokers), groups; selected keys;
synonyms; documentation. Values of secrets are null.
Ignored: nothing. Broker loggers and client metrics are rejected with a message. As in Kafka, a type of resource that
does not exist fails the whole request.

Versions: 1 sources and synonyms (KIP-226); 3 types and documentation (KIP-569); 4 flexible.
"""

from collections.abc import Callable
from typing import Final

from core_broker.cluster.controller.topic_rules import check_topic_name
from core_broker.cluster.effective_settings import EVERY_BROKER, broker_config
from core_broker.cluster.metadata import ResourceType
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import ConfigRefusal, config_refusal
from core_broker.handlers.access_table import DENIED
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_configs as wire
from core_broker.settings import (
    BrokerConfig,
    ConfigSource,
    DescribedSetting,
    GroupSettings,
    Synonym,
    describe_topic,
)


def handle(request: wire.DescribeConfigsRequest, context: RequestContext) -> wire.DescribeConfigsResponse:
    """Describe each resource."""
    for resource in request.resources:
        if resource.resource_type not in _TYPES:
            reason = f"resource type {resource.resource_type} is unknown; use topics (2), brokers (4) or groups (32)"
            raise BrokerError(ErrorCode.INVALID_REQUEST, reason)
    refusal = config_refusal(context)
    results = [_describe(item, request, context, refusal) for item in request.resources]
    refused = {*DENIED.values()}
    results.sort(key=lambda result: result.error_code in refused)
    return wire.DescribeConfigsResponse(results=results)


def _describe(
    resource: wire.DescribeConfigsResource,
    request: wire.DescribeConfigsRequest,
    context: RequestContext,
    refusal: ConfigRefusal,
) -> wire.DescribeConfigsResult:
    result = wire.DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        describe = _DESCRIBERS.get(resource.resource_type)
        if describe is None:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"resource type {resource.resource_type} cannot be described;"
                " use topics (2), brokers (4) or groups (32)",
            )
        if (refused := refusal(resource.resource_type, resource.resource_name)) is not None:
            raise refused
        settings = describe(resource.resource_name, context)
    except BrokerError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    # Like null, an empty list means all keys: a request for no key makes no sense.
    wanted = set(resource.configuration_keys) if resource.configuration_keys else None
    result.error_message = None
    result.configs = [_config(item, request) for item in settings if wanted is None or item.key in wanted]
    return result


def _describe_topic(name: str, context: RequestContext) -> list[DescribedSetting]:
    check_topic_name(name)
    image = context.services.metadata.image
    if name not in image.topics:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
    return describe_topic(image.config_of(ResourceType.TOPIC, name), _broker(context))


def _describe_broker(name: str, context: RequestContext) -> list[DescribedSetting]:
    config = _broker(context)
    if name == str(context.services.settings.node_id):
        return config.describe()
    if name != EVERY_BROKER:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {context.services.settings.node_id} or empty string, but received {name}",
        )
    return config.describe_cluster_wide()


def _describe_group(name: str, context: RequestContext) -> list[DescribedSetting]:
    if not name:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the name of a group must not be empty")
    overrides = context.services.metadata.image.config_of(ResourceType.GROUP, name)
    broker = _broker(context)
    described = []
    for key, definition in GroupSettings.DEFINITIONS.items():
        own = [Synonym(key=key, value=overrides[key], source=ConfigSource.GROUP_CONFIG)] if key in overrides else []
        sources = (*own, *broker.sources(*definition.synonyms))
        described.append(
            DescribedSetting(definition=definition, value=sources[0].value, synonyms=sources, settings=GroupSettings)
        )
    return described


def _refuse_logger(name: str, _context: RequestContext) -> list[DescribedSetting]:
    raise BrokerError(
        ErrorCode.INVALID_REQUEST, f"broker logger {name!r}: individual loggers cannot be described; see logging.level"
    )


_TYPES: Final = frozenset(ResourceType)
_DESCRIBERS: Final[dict[int, Callable[[str, RequestContext], list[DescribedSetting]]]] = {
    ResourceType.TOPIC: _describe_topic,
    ResourceType.BROKER: _describe_broker,
    ResourceType.BROKER_LOGGER: _refuse_logger,
    ResourceType.GROUP: _describe_group,
}


def _broker(context: RequestContext) -> BrokerConfig:
    return broker_config(context.services.metadata.image, context.services.settings)


def _config(setting: DescribedSetting, request: wire.DescribeConfigsRequest) -> wire.DescribeConfigsResourceResult:
    """As on the wire. Whatever the description says, the value of a secret does not leave the broker."""
    is_secret = setting.is_sensitive
    synonyms = setting.synonyms if request.include_synonyms else ()
    return wire.DescribeConfigsResourceResult(
        name=setting.key,
        value=None if is_secret else setting.value,
        read_only=setting.is_read_only,
        config_source=setting.source,
        is_sensitive=is_secret,
        synonyms=[
            wire.DescribeConfigsSynonym(item.key, None if is_secret else item.value, item.source) for item in synonyms
        ],
        config_type=setting.type_code,
        documentation=setting.documentation if request.include_documentation else None,
    )
