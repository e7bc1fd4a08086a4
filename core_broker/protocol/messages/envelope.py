"""Envelope (key 58), and the principal inside it."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Message, NullableSince, message


@message(versions=(0, 0), flexible_since=0)
class DefaultPrincipalData(Message):
    type: str = ""
    name: str = ""
    token_authenticated: bool = False


@message(58, versions=(0, 0), flexible_since=0)
class EnvelopeRequest(Message):
    request_data: bytes = b""
    request_principal: Annotated[bytes | None, NullableSince()] = b""
    client_host_address: bytes = b""


@message(58, versions=(0, 0), flexible_since=0)
class EnvelopeResponse(Message):
    response_data: Annotated[bytes | None, NullableSince()] = None
    error_code: Int16 = 0
