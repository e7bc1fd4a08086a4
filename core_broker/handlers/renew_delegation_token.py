"""RenewDelegationToken, key 39, versions 1-2: a token expires later (KIP-48).

Supported: all of it. The owner and the renewers of the token may do this, and no other.
Ignored: nothing. The message of an error is not part of the response.
"""

from core_broker.handlers.context import RequestContext
from core_broker.handlers.token_login import check_forwarded_login, refused_login
from core_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def refuse(_request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse | None:
    """The response of a broker that does not forward the request, because of how the client is connected."""
    code = refused_login(context)
    return None if code is None else RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


async def handle(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
    """Renew the token."""
    check_forwarded_login(context)
    expires_ms = await context.services.controller.renew_token(
        request.hmac, requester=context.session.principal, period_ms=request.renew_period_ms
    )
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
