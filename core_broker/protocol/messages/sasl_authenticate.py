"""SaslAuthenticate (key 36)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int64, Message, NullableSince, Since, message


@message(36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = b""


@message(36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0
