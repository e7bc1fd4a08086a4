"""AlterConfigs, key 33, versions 0-2: replaces all configs of a resource; those not named are reset to their default.

Supported: topics, brokers (dynamic keys), groups; validate_only. Clients should prefer IncrementalAlterConfigs, which
does not undo the changes of other clients (KIP-339).
Ignored: nothing.

Versions: 2 flexible.
"""

from collections import Counter

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Replace the configs of each resource."""
    counts = Counter(_key(item) for item in request.resources)
    wanted = [item for item in request.resources if counts[_key(item)] == 1]
    outcomes = await context.services.controller.replace_configs(
        [(_key(item), {config.name: config.value for config in item.configs}) for item in wanted],
        validate_only=request.validate_only,
    )
    results = [_response(_key(item), outcome) for item, outcome in zip(wanted, outcomes, strict=True)]
    repeated = BrokerError(ErrorCode.INVALID_REQUEST, "The resource is in the request more than once.")
    results.extend(_response(key, repeated) for key, count in counts.items() if count > 1)
    return AlterConfigsResponse(responses=results)


def _key(resource: AlterConfigsResource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _response(key: tuple[int, str], outcome: BrokerError | None) -> AlterConfigsResourceResponse:
    if outcome is None:
        return AlterConfigsResourceResponse(ErrorCode.NONE, None, *key)
    return AlterConfigsResourceResponse(outcome.code, outcome.message, *key)
