"""Limits on requests: the size of bodies, the time they may take to arrive, and how many are handled at once."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from typing_extensions import override

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import envelope
from core_broker.service.web.settings import WebSettings

_MAX_VALUES = 20_000
_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class BoundedRoute(APIRoute):
    """A route that bounds the number of values in a body: the event loop parses it while all other requests wait."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that handles a request."""
        handle = super().get_route_handler()

        async def handle_bounded(request: Request) -> Response:
            return await handle(_BoundedRequest(request.scope, request.receive))

        return handle_bounded


class _BoundedRequest(Request):
    @override
    async def json(self) -> Any:
        encoding = self.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise HTTPException(415, f"The content-encoding {encoding} is not supported: send the body uncompressed")
        try:
            content = await self.body()
            text = content.decode(json.detect_encoding(content))
            # Count values before parsing: a million empty lists take more than a second to create. Commas and brackets
            # inside strings count only if removing the strings, which is slower, does not bring the number down.
            if _count_values(text) > _MAX_VALUES and _count_values(_STRINGS.sub("", text)) > _MAX_VALUES:
                raise HTTPException(413, f"The body has more than {_MAX_VALUES} values")
            document = json.loads(text)
            if "\\u" in text:
                json.dumps(document, ensure_ascii=False).encode()  # fails on unpaired surrogates
        except UnicodeDecodeError:
            raise HTTPException(400, "The body is not valid JSON: it is not encoded in UTF-8") from None
        except UnicodeEncodeError:
            raise HTTPException(400, "The body is not valid JSON: it contains an unpaired surrogate") from None
        except RecursionError:
            raise HTTPException(400, "The body is not valid JSON: it is nested too deeply") from None
        return document


def _count_values(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


class BodyLimits:
    """Refuses bodies that are too long, and clients that stop sending in the middle of one.

    Requests for which `is_unbounded` is true are passed on untouched: their handler limits them itself.
    """

    def __init__(
        self, app: Application, settings: WebSettings, *, is_unbounded: Callable[[Scope], bool] = lambda _: False
    ) -> None:
        self._app = app
        self._is_unbounded = is_unbounded
        self.max_bytes = settings.request_max_bytes
        self.max_bytes_together = settings.requests_max_bytes
        self.timeout = settings.request_read_timeout_ms / 1000
        self.bytes = 0
        """Size of the bodies received so far for the requests being handled."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or self._is_unbounded(scope):
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        length = next((value for name, value in headers if name == b"content-length"), b"0")
        if length.isdigit() and int(length) > self.max_bytes:
            response = envelope(413, 413, self.too_long)
            # The server discards the rest of the body. A client that waits for "100 Continue" will not send it.
            if any(name == b"expect" for name, _ in headers):
                response.headers["connection"] = "close"
            await response(scope, receive, send)
            return
        body = _Body(self, receive)
        try:
            await self._app(scope, body.receive, send)
        finally:
            self.bytes -= body.bytes

    @property
    def too_long(self) -> str:
        """The message for a body that is refused."""
        return f"The body is longer than {self.max_bytes} bytes (request.max.bytes)"


class _Body:
    """One body as it is received."""

    __slots__ = ("_is_complete", "_limits", "_receive", "bytes")

    def __init__(self, limits: BodyLimits, receive: Receive) -> None:
        self._limits, self._receive = limits, receive
        self._is_complete = False
        self.bytes = 0

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._receive()  # waits until the client leaves, which may take as long as the response
        limits = self._limits
        try:
            async with asyncio.timeout(limits.timeout):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"The rest of the body did not arrive within {limits.timeout:g} s") from None
        self._is_complete = not message.get("more_body", False)
        size = len(message.get("body", b""))
        self.bytes += size
        limits.bytes += size
        if self.bytes > limits.max_bytes:
            raise HTTPException(413, limits.too_long)
        # A single request is never refused for the sum: nothing would free memory for it later.
        if self.bytes < limits.bytes > limits.max_bytes_together:
            limit = f"{limits.max_bytes_together} bytes (requests.max.bytes)"
            too_much = f"The bodies of all current requests exceed {limit}"
            raise HTTPException(429, too_much, headers={"Retry-After": "1"})
        return message


class WriteQueue:
    """Lets requests other than GET and HEAD take most of the worker threads, but never all of them.

    Checking what they send can take long; the remaining threads keep reads from waiting for it.
    """

    def __init__(self, app: Application, settings: WebSettings) -> None:
        self._app = app
        self._turns = asyncio.Semaphore(max(1, settings.worker_threads * 3 // 4))
        self._timeout = settings.request_queue_timeout_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._timeout):
                await self._turns.acquire()
        except TimeoutError:
            busy = f"The request waited {self._timeout:g} s for its turn (request.queue.timeout.ms); try again later"
            await envelope(503, 503, busy)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._turns.release()
