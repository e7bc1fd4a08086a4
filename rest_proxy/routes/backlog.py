"""Answers that clients have not taken yet: handed over bit by bit, and bounded together."""

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import envelope

_LARGE_BYTES = 1024 * 1024
"""What is smaller costs little, and live streams, whose chunks are, are bounded by their number."""
_PIECE_BYTES = 256 * 1024
"""So much is handed over at once; the client must have taken most of it before more is."""


class Backlog:
    """Refuses reads while too much is not taken of those before: who asks for large pages and does not read them.

    The server takes whatever it is given into its own memory, however large: hence the pieces.
    """

    def __init__(self, app: Application, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self.bytes = 0
        """Of large answers that are being sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
        elif self.bytes > self._max_bytes and scope["path"].rstrip("/").endswith("/records"):
            most = f"{self._max_bytes} (consumer.untaken.max.bytes)"
            refusal = envelope(429, 429, f"Clients have not taken {self.bytes} bytes of answers, more than {most}")
            refusal.headers["retry-after"] = "1"
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, self._in_pieces(send))

    def _in_pieces(self, send: Send) -> Send:
        async def send_in_pieces(message: Message) -> None:
            body: bytes = message.get("body", b"")
            if len(body) <= _LARGE_BYTES:
                await send(message)
                return
            self.bytes += len(body)
            try:
                for start in range(0, len(body), _PIECE_BYTES):
                    await send({**message, "body": body[start : start + _PIECE_BYTES], "more_body": True})
            finally:
                self.bytes -= len(body)
            await send({**message, "body": b"", "more_body": message.get("more_body", False)})

        return send_in_pieces
