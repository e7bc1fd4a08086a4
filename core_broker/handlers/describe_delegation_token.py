"""DescribeDelegationToken, key 41, versions 1-3: the tokens that the client may see, with their HMACs (KIP-48).

Supported: owners as a filter, which also finds the tokens that they may renew. A client that may see a token
can log in with it: the HMAC is in the response.
Ignored: nothing.

Versions: 3 the requester of each token (KIP-373).
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.token_login import check_login, may_see
from core_broker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from core_broker.protocol.principals import Principal
from core_broker.security.tokens import DelegationToken, TokenStore


def handle(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
    """Describe the tokens of the owners; of all if there is no list of owners, and none if it is empty."""
    check_login(context)
    tokens = context.services.tokens
    if not tokens.is_enabled:
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {Principal(owner.principal_type, owner.principal_name) for owner in request.owners}
    found = (token for token in tokens if owners is None or not owners.isdisjoint((token.owner, *token.renewers)))
    return DescribeDelegationTokenResponse(
        tokens=[_describe(token, tokens) for token in found if may_see(context, token)]
    )


def _describe(token: DelegationToken, tokens: TokenStore) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=tokens.hmac_of(token.token_id),
        renewers=[DescribedDelegationTokenRenewer(renewer.kind, renewer.name) for renewer in token.renewers],
    )
