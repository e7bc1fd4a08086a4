"""ListConfigResources, key 74, versions 0-1: the resources that have configs (KIP-1142).

Supported: topics, brokers, broker loggers, groups with configs; an empty list of types means all.
Ignored: nothing. Client metrics (the only type of version 0, KIP-714) are not supported, so there are none to list.

Versions: 1 other types than client metrics.
"""

from collections.abc import Iterator

from core_broker.cluster.metadata import MetadataImage, ResourceType
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse:
    """List the resources of the wanted types."""
    if context.api_version == 0:
        return ListConfigResourcesResponse()
    wanted = dict.fromkeys(request.resource_types or list(ResourceType))
    if unknown := [kind for kind in wanted if kind not in list(ResourceType)]:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"resource type {unknown[0]} is unknown")
    image = context.services.metadata.image
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(name, kind) for kind in wanted for name in _names(kind, image)]
    )


def _names(kind: int, image: MetadataImage) -> Iterator[str]:
    match kind:
        case ResourceType.TOPIC:
            yield from image.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            yield from map(str, image.brokers)
        case _:
            yield from (name for resource_type, name in image.configs if resource_type == kind)
