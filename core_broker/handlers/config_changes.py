"""What AlterConfigs and IncrementalAlterConfigs have in common: rights, repeated resources, and a broker's own checks.

The stores of a broker's listeners are files on its own disk, so no other node can tell whether it could use them. As in
Kafka, only the broker itself takes changes of its configs, and those that it could not apply never reach the metadata.
Unlike in Kafka, the client's right is checked first: without it a client learns nothing about files.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from core_broker.cluster.effective_settings import EVERY_BROKER
from core_broker.cluster.metadata import ConfigResource, MetadataImage, ResourceType
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import config_refusal, may_use
from core_broker.handlers.api import Screened
from core_broker.handlers.context import RequestContext
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import alter_configs, incremental_alter_configs
from core_broker.protocol.stored.metadata import ConfigRecord
from core_broker.security.operations import CLUSTER_NAME
from core_broker.security.operations import ResourceType as AclResourceType
from core_broker.settings import BrokerConfig, BrokerSettings

ConfigsRequest: TypeAlias = alter_configs.AlterConfigsRequest | incremental_alter_configs.IncrementalAlterConfigsRequest
R = TypeVar("R", alter_configs.AlterConfigsResource, incremental_alter_configs.AlterConfigsResource)

Outcome: TypeAlias = tuple[ConfigResource, BrokerError | None]
Plan: TypeAlias = Callable[[R, MetadataImage, BrokerSettings], list[ConfigRecord]]
"""The records of a change of one resource; raises BrokerError if the change is not valid."""


def resource_of(item: R) -> ConfigResource:
    """Type and name of the resource."""
    return item.resource_type, item.resource_name


async def change_configs(
    items: Sequence[R], context: RequestContext, change: Callable[[Sequence[R]], Awaitable[list[BrokerError | None]]]
) -> list[Outcome]:
    """Have the resources changed that are named once and that the client may change."""
    counts = Counter(map(resource_of, items))
    refusal = config_refusal(context)
    refusals = {key: refused for key in counts if (refused := refusal(*key)) is not None}
    wanted = [item for item in items if counts[resource_of(item)] == 1 and resource_of(item) not in refusals]
    outcomes: list[Outcome] = list(zip(map(resource_of, wanted), await change(wanted), strict=True))
    repeated = BrokerError(ErrorCode.INVALID_REQUEST, "The resource is in the request more than once.")
    outcomes.extend((key, repeated) for key, count in counts.items() if count > 1)
    outcomes.extend((key, refused) for key, refused in refusals.items() if counts[key] == 1)
    return outcomes


async def screen_configs(
    request: ConfigsRequest,
    items: Sequence[R],
    *,
    context: RequestContext,
    plan: Plan[R],
    respond: Callable[[Iterable[Outcome]], Message],
) -> Screened | None:
    """What this broker does not forward: changes of brokers that it could not apply."""
    refusals = await _find_refusals(items, context, plan)
    if not refusals:
        return None
    rest = [item for item in items if resource_of(item) not in refusals]
    refused = [item for item in items if resource_of(item) in refusals]
    return Screened(
        rest=replace(request, resources=rest) if rest else None,
        refused=replace(request, resources=refused),
        refusal=respond(refusals.items()),
    )


def result_fields(outcome: Outcome) -> tuple[int, str | None, int, str]:
    """A result in the order of the protocol: error, message, and the resource."""
    (kind, name), error = outcome
    return (ErrorCode.NONE, None, kind, name) if error is None else (error.code, error.message, kind, name)


async def _find_refusals(
    items: Sequence[R], context: RequestContext, plan: Plan[R]
) -> dict[ConfigResource, BrokerError]:
    """The brokers among the resources whose changes this broker refuses, before the controller gets the others."""
    if not may_use(context, AclResourceType.CLUSTER, is_logged=False)(CLUSTER_NAME):
        return {}  # the controller refuses all of them
    counts = Counter(map(resource_of, items))
    refusals: dict[ConfigResource, BrokerError] = {}
    for item in items:
        kind, name = key = resource_of(item)
        if kind == ResourceType.BROKER and name != EVERY_BROKER and counts[key] == 1:
            try:
                await _check_own(item, context, plan)
            except BrokerError as error:
                refusals[key] = error
    return refusals


async def _check_own(item: R, context: RequestContext, plan: Plan[R]) -> None:
    """Raise BrokerError unless the resource is this broker, and it could apply the change."""
    services = context.services
    settings, image = services.settings, services.metadata.image
    if item.resource_name != str(settings.node_id):
        reason = f"Unexpected broker id, expected {settings.node_id}, but received {item.resource_name}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, reason)
    own = dict(image.config_of(*resource_of(item)))
    for record in plan(item, image, settings):
        if record.value is None:
            own.pop(record.name, None)
        else:
            own[record.name] = record.value
    cluster_wide = image.config_of(ResourceType.BROKER, EVERY_BROKER)
    await services.check_stores(BrokerConfig(static=settings, cluster_wide=cluster_wide, own=own).effective)
