"""AlterClientQuotas, key 49, versions 0-1: sets and removes quotas of users, client ids and addresses (KIP-546).

Supported: everything; each entity has its own result, and the valid ones change together. The quota of an address must
name an IP address: host names are not looked up.
Ignored: nothing.

Versions: 1 flexible.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse


async def handle(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse:
    """Change the quotas of the valid entities."""
    results = await context.services.controller.alter_client_quotas(
        request.entries, validate_only=request.validate_only
    )
    return AlterClientQuotasResponse(entries=results)
