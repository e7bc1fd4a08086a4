"""IncrementalAlterConfigs, key 44, versions 0-1: changes individual configs and keeps the others (KIP-339).

Supported: SET, DELETE, and for lists APPEND and SUBTRACT; topics, brokers (dynamic keys), groups; validate_only.
Ignored: nothing. Broker loggers are rejected with a message.

Versions: 1 flexible.
"""

from collections import Counter

from core_broker.cluster.controller.configs import ConfigChange
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import config_refusal
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import incremental_alter_configs as wire


async def handle(
    request: wire.IncrementalAlterConfigsRequest, context: RequestContext
) -> wire.IncrementalAlterConfigsResponse:
    """Change the configs of each resource."""
    counts = Counter(_key(item) for item in request.resources)
    refusal = config_refusal(context)
    refusals = {key: refused for key in counts if (refused := refusal(*key)) is not None}
    wanted = [item for item in request.resources if counts[_key(item)] == 1 and _key(item) not in refusals]
    outcomes = await context.services.controller.alter_configs(
        [
            (
                _key(item),
                [
                    ConfigChange(key=config.name, operation=config.config_operation, value=config.value)
                    for config in item.configs
                ],
            )
            for item in wanted
        ],
        validate_only=request.validate_only,
    )
    results = [_response(_key(item), outcome) for item, outcome in zip(wanted, outcomes, strict=True)]
    repeated = BrokerError(ErrorCode.INVALID_REQUEST, "The resource is in the request more than once.")
    results.extend(_response(key, repeated) for key, count in counts.items() if count > 1)
    results.extend(_response(key, refused) for key, refused in refusals.items() if counts[key] == 1)
    return wire.IncrementalAlterConfigsResponse(responses=results)


def _key(resource: wire.AlterConfigsResource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _response(key: tuple[int, str], outcome: BrokerError | None) -> wire.AlterConfigsResourceResponse:
    if outcome is None:
        return wire.AlterConfigsResourceResponse(ErrorCode.NONE, None, *key)
    return wire.AlterConfigsResourceResponse(outcome.code, outcome.message, *key)
