"""CreateDelegationToken, key 38, versions 1-3: a token with which clients log in on behalf of its owner (KIP-48).

Supported: owners other than the requester (KIP-373), if they are of type User; renewers.
Ignored: nothing. The message of an error is not part of the response.

Versions: 3 an owner other than the requester.
"""

import logging

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.token_login import check_forwarded_login, check_login, may_create_for
from core_broker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from core_broker.protocol.principals import Principal

log = logging.getLogger(__name__)


def refuse(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse | None:
    """The response of a broker that does not forward the request, because of how the client is connected."""
    try:
        check_login(context)
    except BrokerError as error:
        return _failure(error, owner=_owner(request, context), requester=context.session.principal)
    return None


async def handle(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse:
    """Create a token."""
    owner, requester = _owner(request, context), context.session.principal
    try:
        check_forwarded_login(context)
        if not may_create_for(context, owner):
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        token, hmac = await context.services.controller.create_token(
            owner=owner,
            requester=requester,
            renewers=[Principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers],
            lifetime_ms=request.max_lifetime_ms,
        )
    except BrokerError as error:
        return _failure(error, owner=owner, requester=requester)
    return CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
    )


def _owner(request: CreateDelegationTokenRequest, context: RequestContext) -> Principal:
    """The owner of the new token: the requester, unless the request names another."""
    if not request.owner_principal_name:
        return context.session.principal
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def _failure(error: BrokerError, *, owner: Principal, requester: Principal) -> CreateDelegationTokenResponse:
    if error.code is ErrorCode.NOT_CONTROLLER:
        raise error
    log.info("delegation token refused", extra={"owner": str(owner), "reason": str(error)})
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
