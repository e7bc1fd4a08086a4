"""SaslHandshake (key 17)."""

from core_broker.protocol.fields import Int16, Message


class SaslHandshakeRequest(Message):
    """Request of SaslHandshake (key 17)."""

    API_KEY = 17
    VERSIONS = (0, 1)

    mechanism: str = ""


class SaslHandshakeResponse(Message):
    """Response of SaslHandshake (key 17)."""

    API_KEY = 17
    VERSIONS = (0, 1)

    error_code: Int16 = 0
    mechanisms: list[str] = []
