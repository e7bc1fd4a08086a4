"""Paths as they were sent: routed before they are decoded, so that `%2F` in a name does not end the name."""

import asyncio
import re
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import AfterValidator

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send

_SLASHES: Final = re.compile("//+")

Segment = Annotated[str, AfterValidator(unquote)]
"""One part of the path, for the routes' signatures: it arrives percent-encoded."""

IS_HEAD = "caudal.is_head"
"""Marks in the scope that a request was HEAD, for routes where GET changes something."""


class RawPaths:
    """Routes on the path as it was sent, without trailing slashes; answers HEAD like GET, without the body.

    `merges_slashes` treats several slashes in a row as one, for APIs in which no part of a path may be empty.
    """

    def __init__(self, app: Application, *, merges_slashes: bool = False) -> None:
        self._app = app
        self._merges_slashes = merges_slashes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            if scope["method"] == "HEAD":
                scope = {**scope, "method": "GET", IS_HEAD: True}
                receive, send = _end_after_head(receive, send)
            path = scope["raw_path"].decode("ascii", "replace")
            if self._merges_slashes and "//" in path:
                path = _SLASHES.sub("/", path)
            scope["path"] = path.rstrip("/") or "/"
        await self._app(scope, receive, send)


def _end_after_head(receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Act like a client that disconnects after the headers of the response: the body of a live stream never ends."""
    has_head = asyncio.Event()

    async def receive_until_head() -> Message:
        if not has_head.is_set():
            return await receive()
        return {"type": "http.disconnect"}

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            has_head.set()

    return receive_until_head, send_head
