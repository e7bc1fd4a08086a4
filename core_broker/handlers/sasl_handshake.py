"""SaslHandshake, key 17, versions 0-1. Listeners are PLAINTEXT: there is nothing to authenticate, and no mechanism."""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:  # noqa: ARG001 - every handler has this shape
    """Reject: on a PLAINTEXT listener a client is never in a state to authenticate."""
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
