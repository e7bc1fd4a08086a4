"""SaslHandshake (key 17)."""

from core_broker.protocol.fields import Int16, Message, message


@message(17, versions=(0, 1))
class SaslHandshakeRequest(Message):
    mechanism: str = ""


@message(17, versions=(0, 1))
class SaslHandshakeResponse(Message):
    error_code: Int16 = 0
    mechanisms: list[str] = []
