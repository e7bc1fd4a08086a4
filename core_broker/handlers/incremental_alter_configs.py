"""IncrementalAlterConfigs, key 44, versions 0-1: changes individual configs and keeps the others (KIP-339).

Supported: SET, DELETE, and for lists APPEND and SUBTRACT; topics, brokers (dynamic keys), groups; validate_only.
Ignored: nothing. Broker loggers are rejected with a message.
A broker takes changes of its own configs only, and refuses key stores and trust stores that it could not use.

Versions: 1 flexible.
"""

from collections.abc import Iterable, Sequence

from core_broker.cluster.controller.configs import ConfigChange, plan_increment
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError
from core_broker.handlers.api import Screened
from core_broker.handlers.config_changes import Outcome, change_configs, resource_of, result_fields, screen_configs
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import incremental_alter_configs as wire
from core_broker.protocol.stored.metadata import ConfigRecord
from core_broker.settings import BrokerSettings


async def handle(
    request: wire.IncrementalAlterConfigsRequest, context: RequestContext
) -> wire.IncrementalAlterConfigsResponse:
    """Change the configs of each resource."""

    async def change(wanted: Sequence[wire.AlterConfigsResource]) -> list[BrokerError | None]:
        return await context.services.controller.alter_configs(
            [(resource_of(item), _changes(item)) for item in wanted], validate_only=request.validate_only
        )

    return _response(await change_configs(request.resources, context, change))


async def screen(request: wire.IncrementalAlterConfigsRequest, context: RequestContext) -> Screened | None:
    """What this broker does not forward: changes of brokers that it could not apply."""
    return await screen_configs(request, request.resources, context=context, plan=_plan, respond=_response)


def _plan(item: wire.AlterConfigsResource, image: MetadataImage, settings: BrokerSettings) -> list[ConfigRecord]:
    return plan_increment(resource_of(item), _changes(item), image, settings)


def _changes(item: wire.AlterConfigsResource) -> list[ConfigChange]:
    return [
        ConfigChange(key=config.name, operation=config.config_operation, value=config.value) for config in item.configs
    ]


def _response(outcomes: Iterable[Outcome]) -> wire.IncrementalAlterConfigsResponse:
    return wire.IncrementalAlterConfigsResponse(
        responses=[wire.AlterConfigsResourceResponse(*result_fields(outcome)) for outcome in outcomes]
    )
