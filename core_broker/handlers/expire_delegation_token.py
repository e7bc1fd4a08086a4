"""ExpireDelegationToken, key 40, versions 1-2: a token expires earlier, or is removed at once (KIP-48).

Supported: all of it. The owner and the renewers of the token may do this, and no other.
Ignored: nothing. The message of an error is not part of the response.
"""

from core_broker.handlers.context import RequestContext
from core_broker.handlers.token_login import check_forwarded_login, refused_login
from core_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def refuse(_request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse | None:
    """The response of a broker that does not forward the request, because of how the client is connected."""
    code = refused_login(context)
    return None if code is None else ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


async def handle(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
    """Set the expiry of the token, or remove it."""
    check_forwarded_login(context)
    expires_ms = await context.services.controller.expire_token(
        request.hmac, requester=context.session.principal, period_ms=request.expiry_time_period_ms
    )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
