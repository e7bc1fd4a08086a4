"""Who may send requests about delegation tokens: clients that have logged in with something else than a token."""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import may_see_token, may_use
from core_broker.handlers.context import RequestContext
from core_broker.protocol.principals import ANONYMOUS, Principal
from core_broker.security.operations import ResourceType
from core_broker.security.tokens import DelegationToken


def check_login(context: RequestContext) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED unless the login of the client allows requests about tokens.

    The broker that the client is connected to has to check this: a request in an envelope does not say how the client
    is connected, only whether it logged in with a token.
    """
    session = context.session
    if session.principal.is_by_token:
        raise _refusal("a client that has logged in with a delegation token cannot handle tokens")
    if session.security_protocol == "PLAINTEXT" or (
        session.security_protocol == "SSL" and session.principal == ANONYMOUS
    ):
        raise _refusal(f"listener {session.listener_name} does not know who the client is; use one with a login")


def refused_login(context: RequestContext) -> ErrorCode | None:
    """The error of `check_login`, if there is one."""
    try:
        check_login(context)
    except BrokerError as error:
        return error.code
    return None


def check_forwarded_login(context: RequestContext) -> None:
    """The same on the controller, for a client of its own or of a broker that has checked the rest."""
    if context.session.is_controller_listener:
        check_login(context)
    elif context.session.principal.is_by_token:
        raise _refusal("a client that has logged in with a delegation token cannot handle tokens")


def may_create_for(context: RequestContext, owner: Principal) -> bool:
    """Whether the client may create tokens of this owner; its own it always may."""
    return owner == context.session.principal or may_use(context, ResourceType.USER)(str(owner))


def may_see(context: RequestContext, token: DelegationToken) -> bool:
    """Whether the client may see a token, and so log in with it."""
    is_own = token.may_be_changed_by(context.session.principal)
    return is_own or may_see_token(context, token.token_id, str(token.owner))


def _refusal(message: str) -> BrokerError:
    return BrokerError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)
