"""AlterConfigs, key 33, versions 0-2: replaces all configs of a resource; those not named are reset to their default.

Supported: topics, brokers (dynamic keys), groups; validate_only. Clients should prefer IncrementalAlterConfigs, which
does not undo the changes of other clients (KIP-339).
Ignored: nothing.
A broker takes changes of its own configs only, and refuses key stores and trust stores that it could not use.

Versions: 2 flexible.
"""

from collections.abc import Iterable, Sequence

from core_broker.cluster.controller.configs import plan_replacement
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError
from core_broker.handlers.api import Screened
from core_broker.handlers.config_changes import Outcome, change_configs, resource_of, result_fields, screen_configs
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import alter_configs as wire
from core_broker.protocol.stored.metadata import ConfigRecord
from core_broker.settings import BrokerSettings


async def handle(request: wire.AlterConfigsRequest, context: RequestContext) -> wire.AlterConfigsResponse:
    """Replace the configs of each resource."""

    async def change(wanted: Sequence[wire.AlterConfigsResource]) -> list[BrokerError | None]:
        return await context.services.controller.replace_configs(
            [(resource_of(item), _configs(item)) for item in wanted], validate_only=request.validate_only
        )

    return _response(await change_configs(request.resources, context, change))


async def screen(request: wire.AlterConfigsRequest, context: RequestContext) -> Screened | None:
    """What this broker does not forward: changes of brokers that it could not apply."""
    return await screen_configs(request, request.resources, context=context, plan=_plan, respond=_response)


def _plan(item: wire.AlterConfigsResource, image: MetadataImage, settings: BrokerSettings) -> list[ConfigRecord]:
    return plan_replacement(resource_of(item), _configs(item), image, settings)


def _configs(item: wire.AlterConfigsResource) -> dict[str, str | None]:
    return {config.name: config.value for config in item.configs}


def _response(outcomes: Iterable[Outcome]) -> wire.AlterConfigsResponse:
    return wire.AlterConfigsResponse(
        responses=[wire.AlterConfigsResourceResponse(*result_fields(outcome)) for outcome in outcomes]
    )
