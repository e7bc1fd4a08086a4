"""SaslAuthenticate (key 36)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int64, Message, NullableSince, Since


class SaslAuthenticateRequest(Message):
    """Request of SaslAuthenticate (key 36)."""

    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Message):
    """Response of SaslAuthenticate (key 36)."""

    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0
