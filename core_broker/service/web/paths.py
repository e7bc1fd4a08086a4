"""Paths as they were sent: routed before they are decoded, so that `%2F` in a name does not end the name."""

from typing import Annotated
from urllib.parse import unquote

from pydantic import AfterValidator

from core_broker.service.web.asgi import Application, Receive, Scope, Send

Segment = Annotated[str, AfterValidator(unquote)]
"""One part of the path, for the routes' signatures: it arrives percent-encoded."""


class RawPaths:
    """Routes on the path as it was sent, without a slash at its end; HEAD is answered like GET, without the body."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            if scope["method"] == "HEAD":
                scope = {**scope, "method": "GET"}
            scope["path"] = scope["raw_path"].decode("ascii", "replace").rstrip("/") or "/"
        await self._app(scope, receive, send)
