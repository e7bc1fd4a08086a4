"""SaslAuthenticate, key 36, versions 0-2: from a client that cannot log in now (see SaslHandshake)."""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.settings.sasl import SASL_PROTOCOLS


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:  # noqa: ARG001 - every handler has this shape
    """Reject it; the connection remains."""
    session = context.session
    if session.security_protocol in SASL_PROTOCOLS:
        message = "The client has logged in, and must send SaslHandshake to do so again."
    else:
        protocol = session.security_protocol
        message = f"Listener {session.listener_name} has no SASL: use security.protocol={protocol}."
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
