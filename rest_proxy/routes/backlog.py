"""Large responses that clients have not read yet: sent in pieces, and limited in total."""

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import envelope

_LARGE_BYTES = 1024 * 1024
"""Smaller responses cost little. The chunks of live streams are smaller, too; streams are limited by their number."""
_PIECE_BYTES = 256 * 1024
"""How much is sent at once; the client must have read most of it before more follows."""


class Backlog:
    """Refuses reads while clients have too many bytes of large responses unread.

    The HTTP server buffers whatever it is given, however large: hence the pieces.
    """

    def __init__(self, app: Application, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self.bytes = 0
        """The size of the large responses that are being sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
        elif self.bytes > self._max_bytes and scope["path"].rstrip("/").endswith("/records"):
            limit = f"{self._max_bytes} (consumer.untaken.max.bytes)"
            message = f"Clients have not read {self.bytes} bytes of responses, more than {limit}"
            await envelope(429, 429, message, retry_after_seconds=1)(scope, receive, send)
        else:
            await self._app(scope, receive, self._splitting(send))

    def _splitting(self, send: Send) -> Send:
        """Wrap `send` so that large bodies go out in pieces."""

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
