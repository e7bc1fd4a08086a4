"""Content negotiation: which of the registry's media types a request sends, and which one it gets."""

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import generic

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
        chosen = preferred(headers.get(b"accept", b"*/*"))
        if chosen is None:
            await generic(406)(scope, receive, send)
            return
        answering = _typed(send, chosen)
        sent = _name(headers.get(b"content-type", b""))
        if sent and sent not in BODIES:
            await generic(415)(scope, receive, answering)
            return
        if sent == _BYTES:
            # It is JSON all the same, and read as such only under that name.
            scope = {**scope, "headers": [*(headers | {b"content-type": b"application/json"}).items()]}
        await self._app(scope, receive, answering)


def preferred(accept: bytes) -> bytes | None:
    """The best of our types that an Accept header allows; None when it allows none."""
    weights = [_weighted(part) for part in accept.lower().split(b",") if part.strip()] or [(b"*/*", 1.0)]
    allowed = {offered: _weight(offered, weights) for offered in ANSWERS}
    best = max(ANSWERS, key=lambda offered: allowed[offered])
    return best if allowed[best] > 0 else None


def _weight(offered: bytes, weights: list[tuple[bytes, float]]) -> float:
    """How much a type is wanted: the most specific range decides."""
    for pattern in (offered, offered.partition(b"/")[0] + b"/*", b"*/*"):
        found = [weight for accepted, weight in weights if accepted == pattern]
        if found:
            return max(found)
    return 0.0


def _weighted(part: bytes) -> tuple[bytes, float]:
    name, *parameters = (piece.strip() for piece in part.split(b";"))
    if name == b"*" or name.startswith(b"*/"):
        name = b"*/*"
    quality = next((piece[2:] for piece in parameters if piece.startswith(b"q=")), b"1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0


def _name(content_type: bytes) -> bytes:
    return content_type.partition(b";")[0].strip().lower()


def _typed(send: Send, media_type: bytes) -> Send:
    async def send_typed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0] != b"content-type"]
            message["headers"] = [*headers, (b"content-type", media_type)]
        await send(message)

    return send_typed
