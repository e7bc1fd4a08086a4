"""Content negotiation: which media type a body has, and which of several a client would rather get."""

from collections.abc import Sequence


def named(content_type: bytes) -> bytes:
    """The media type of a Content-Type header, without its parameters."""
    return content_type.partition(b";")[0].strip().lower()


def preferred(accept: bytes, offered: Sequence[bytes]) -> bytes | None:
    """The best of the offered types that an Accept header allows, earlier ones first; None when it allows none."""
    weights = [_weighted(part) for part in accept.lower().split(b",") if part.strip()] or [(b"*/*", 1.0)]
    allowed = {media_type: _weight(media_type, weights) for media_type in offered}
    best = max(offered, key=lambda media_type: allowed[media_type])
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
    if name == b"*" or name.startswith(b"*/"):  # as some clients have it
        name = b"*/*"
    quality = next((piece[2:] for piece in parameters if piece.startswith(b"q=")), b"1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0
