"""Content negotiation of both APIs: the media types of requests and responses."""

from collections.abc import Sequence

from fastapi.responses import JSONResponse

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.errors import status_error
from core_broker.service.web.media_types import negotiate, with_media_type, without_parameters
from rest_proxy.formats.formats import Format

JSON = b"application/json"
V2 = (b"application/vnd.kafka.v2+json", b"application/vnd.kafka+json", JSON, b"application/vnd.kafka.v1+json")
"""Media types of API v2 for responses without records, best first; clients of Karapace ask for the last one."""
_BYTES = b"application/octet-stream"
_BODIES = frozenset({*V2, _BYTES})
EMBEDDED = {
    f"application/vnd.kafka.{format_}.v2+json".encode(): format_ for format_ in Format if format_ is not Format.STRING
}
"""Media types of records in API v2, and the format that they stand for. Binary is the first, hence the default."""
_OTHERS = (b"/metrics", b"/docs", b"/redoc", b"/openapi.json", b"/health")


class V2Response(JSONResponse):
    """Declares the media type of API v2 in the OpenAPI document; responses have the negotiated one."""

    media_type = V2[0].decode()


class MediaTypes:
    """Answers 406 and 415 for routes without records, and gives JSON responses of API v2 the requested type.

    Routes with records check the headers themselves: there the media type decides how a body is read.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or _checks_itself(scope["method"], scope["raw_path"]):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        chosen = negotiate(headers.get(b"accept", b"*/*"), _response_types(scope["raw_path"]))
        if chosen is None:
            await status_error(406)(scope, receive, send)
            return
        send_typed = with_media_type(send, chosen)
        sent = without_parameters(headers.get(b"content-type", b""))
        if sent and sent not in _BODIES and sent not in EMBEDDED:
            await status_error(415)(scope, receive, send_typed)
            return
        if sent and sent != JSON:
            # The body is JSON all the same, but the framework parses it as such only under this media type.
            scope = {**scope, "headers": [*(headers | {b"content-type": JSON}).items()]}
        await self._app(scope, receive, send_typed)


def is_v3(path: bytes) -> bool:
    """Whether a path belongs to API v3."""
    return path == b"/v3" or path.startswith(b"/v3/")


def _response_types(path: bytes) -> Sequence[bytes]:
    """Media types for responses without records. Clients with consumers send their Accept header with all requests."""
    if is_v3(path):
        return (JSON,)
    return (*V2, *EMBEDDED) if path.startswith(b"/consumers/") else V2


def _checks_itself(method: str, path: bytes) -> bool:
    path = path.rstrip(b"/")
    is_produce_v2 = method == "POST" and path.startswith(b"/topics/")
    return is_produce_v2 or path.endswith((b"/records", b"/records:batch")) or path.startswith(_OTHERS)
