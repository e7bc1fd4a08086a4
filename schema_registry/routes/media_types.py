"""Content negotiation: the media types that requests may send and accept."""

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.errors import status_error
from core_broker.service.web.media_types import negotiate, with_media_type, without_parameters

VERSIONED = b"application/vnd.schemaregistry.v1+json"
RESPONSES = (VERSIONED, b"application/vnd.schemaregistry+json", b"application/json")
"""Media types of responses, preferred ones first."""
_BYTES = b"application/octet-stream"
BODIES = frozenset({*RESPONSES, _BYTES})
"""Media types of request bodies; the last one is sent by clients that name no type of their own."""
_NO_JSON = (b"/metrics", b"/docs", b"/redoc", b"/openapi.json", b"/health")


class MediaTypes:
    """Responds with 406 or 415 where it must, and gives JSON responses the media type that the client accepts."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["raw_path"].startswith(_NO_JSON):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        chosen = negotiate(headers.get(b"accept", b"*/*"), RESPONSES)
        if chosen is None:
            await status_error(406)(scope, receive, send)
            return
        send_as_chosen = with_media_type(send, chosen)
        sent = without_parameters(headers.get(b"content-type", b""))
        if sent and sent not in BODIES:
            await status_error(415)(scope, receive, send_as_chosen)
            return
        if sent == _BYTES:
            # The body is JSON all the same, but FastAPI parses it only if it is labelled as JSON.
            scope = {**scope, "headers": [*(headers | {b"content-type": b"application/json"}).items()]}
        await self._app(scope, receive, send_as_chosen)
