"""The media types of the API, and which one a response has."""

from collections.abc import Sequence
from typing import Final

from core_broker.service.web.asgi import Scope
from core_broker.service.web.media_types import negotiate
from streams.server.errors import ServiceError

JSON: Final = b"application/json"
V1_JSON: Final = b"application/vnd.ksql.v1+json"
DELIMITED: Final = b"application/vnd.ksqlapi.delimited.v1"
PROTOBUF: Final = b"application/vnd.ksql.v1+protobuf"


def choose(scope: Scope, offered: Sequence[bytes]) -> bytes:
    """The media type of the response; the first one if the client does not care. Raises ServiceError (406)."""
    accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
    found = negotiate(accept, offered)
    if found is None:
        names = ", ".join(name.decode() for name in offered)
        raise ServiceError(f"The response cannot have a media type of the Accept header; it can be {names}", code=40600)
    return found
