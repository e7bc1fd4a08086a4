"""Content negotiation: which of the registry's media types a request sends, and which one it gets."""

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import status_error
from core_broker.service.web.media_types import negotiate, without_parameters

VERSIONED = b"application/vnd.schemaregistry.v1+json"
ANSWERS = (VERSIONED, b"application/vnd.schemaregistry+json", b"application/json")
"""What answers may be called, best first."""
_BYTES = b"application/octet-stream"
BODIES = frozenset({*ANSWERS, _BYTES})
"""What bodies may be called; the last stands for clients that do not say."""
_NO_JSON = (b"/metrics", b"/docs", b"/redoc", b"/openapi.json", b"/health")


class MediaTypes:
    """Answers 406 and 415, and gives JSON answers the type that the client asked for."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["raw_path"].startswith(_NO_JSON):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        chosen = negotiate(headers.get(b"accept", b"*/*"), ANSWERS)
        if chosen is None:
            await status_error(406)(scope, receive, send)
            return
        answering = _typed(send, chosen)
        sent = without_parameters(headers.get(b"content-type", b""))
        if sent and sent not in BODIES:
            await status_error(415)(scope, receive, answering)
            return
        if sent == _BYTES:
            # It is JSON all the same, and read as such only under that name.
            scope = {**scope, "headers": [*(headers | {b"content-type": b"application/json"}).items()]}
        await self._app(scope, receive, answering)


def _typed(send: Send, media_type: bytes) -> Send:
    async def send_typed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0] != b"content-type"]
            message["headers"] = [*headers, (b"content-type", media_type)]
        await send(message)

    return send_typed
