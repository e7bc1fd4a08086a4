"""SaslAuthenticate, key 36, versions 0-2. Listeners are PLAINTEXT: there is nothing to authenticate."""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:  # noqa: ARG001 - every handler has this shape
    """Reject: on a PLAINTEXT listener a client is never in a state to authenticate."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message=f"Listener {context.listener_name} has no authentication: use security.protocol=PLAINTEXT.",
    )
