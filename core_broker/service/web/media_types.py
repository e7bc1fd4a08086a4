"""Content negotiation: the media type of a body, and the one that a client prefers for the response."""

from collections.abc import Sequence

from core_broker.service.web.asgi import Message, Send


def without_parameters(content_type: bytes) -> bytes:
    """The media type in a Content-Type header, in lower case and without its parameters."""
    return content_type.partition(b";")[0].strip().lower()


def negotiate(accept: bytes, offered: Sequence[bytes]) -> bytes | None:
    """The offered type that an Accept header prefers, earlier ones first; None when it accepts none of them."""
    ranges = [_parse_range(part) for part in accept.lower().split(b",") if part.strip()] or [(b"*/*", 1.0)]
    qualities = {media_type: _quality(media_type, ranges) for media_type in offered}
    best = max(offered, key=lambda media_type: qualities[media_type])
    return best if qualities[best] > 0 else None


def with_media_type(send: Send, media_type: bytes) -> Send:
    """Wrap `send` so that responses have this media type."""

    async def send_typed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0] != b"content-type"]
            message["headers"] = [*headers, (b"content-type", media_type)]
        await send(message)

    return send_typed


def _quality(offered: bytes, ranges: list[tuple[bytes, float]]) -> float:
    """How much a type is wanted: the most specific range decides."""
    for pattern in (offered, offered.partition(b"/")[0] + b"/*", b"*/*"):
        found = [quality for accepted, quality in ranges if accepted == pattern]
        if found:
            return max(found)
    return 0.0


def _parse_range(part: bytes) -> tuple[bytes, float]:
    """A media range and its quality, from one element of an Accept header."""
    name, *parameters = (piece.strip() for piece in part.split(b";"))
    if name == b"*" or name.startswith(b"*/"):  # some clients write `*` or `*/json`
        name = b"*/*"
    quality = next((piece[2:] for piece in parameters if piece.startswith(b"q=")), b"1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0
