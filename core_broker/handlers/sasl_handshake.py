"""SaslHandshake, key 17, versions 0-1: from a client that cannot log in now.

Clients log in before any request is dispatched. What gets here comes over a listener without SASL, or from a client
that has logged in and need not do so again.
"""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:  # noqa: ARG001 - every handler has this shape
    """Reject it; the connection remains."""
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
