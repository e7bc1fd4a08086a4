"""What every HTTP service answers in the same way: errors in one envelope, `/health`, `/metrics`, limits on bodies.

`create_app` gives the FastAPI app that a service adds its routes to; `guarded` puts the limits and the counting of
requests around it. `core_broker.service.web_server` serves the result.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, MutableMapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from typing_extensions import override

from core_broker.service.metrics import PROMETHEUS_TEXT, Collect, Family, renderer
from core_broker.service.web_settings import WebSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_MAX_VALUES = 20_000
_MAX_PROBLEMS = 10
_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class ServiceError(Protocol):
    """What an error of a service tells: the HTTP status, the code in the body, and the words."""

    status: int
    code: int
    message: str


def create_app(
    *,
    title: str,
    description: str,
    error_type: type[Exception],
    collect: Collect,
    is_healthy: Callable[[], bool] = lambda: True,
    told_as: Mapping[int, int] = MappingProxyType({}),
) -> FastAPI:
    """An app that answers `/health` and `/metrics` and tells every failure as `{"error_code", "message"}`.

    `error_type` is the service's own error (a `ServiceError`). `is_healthy` may block: it runs on a worker thread.
    `told_as` gives codes that clients are to see under another number.
    """
    app = FastAPI(title=title, description=description, redirect_slashes=False, strict_content_type=False)

    async def answer_service_error(_: Request, error: Exception) -> Response:
        told: ServiceError = error  # type: ignore[assignment]  # registered for error_type only, which has these three
        return envelope(told.status, told_as.get(told.code, told.code), told.message)

    app.router.route_class = BoundedRoute
    app.add_exception_handler(error_type, answer_service_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_wrong_request)
    app.add_exception_handler(Exception, _answer_bug)
    render = renderer(collect)

    @app.get("/health", tags=["operation"])
    def health() -> Response:
        """Whether the service can do its work: 200 or 503."""
        healthy = is_healthy()
        body = b'{"status":"ok"}' if healthy else b'{"status":"not ready"}'
        return Response(body, status_code=200 if healthy else 503, media_type="application/json")

    @app.get("/metrics", tags=["operation"])
    def metrics() -> Response:
        """Counters and gauges in Prometheus' text format."""
        return Response(render(), media_type=PROMETHEUS_TEXT)

    return app


# --- errors ---


def envelope(status: int, code: int, message: str) -> Response:
    """A failure as clients of Kafka's HTTP services expect it."""
    body = msgspec.json.encode({"error_code": code, "message": message})
    return Response(body, status_code=status, media_type="application/json")


def generic(status: int) -> Response:
    """A failure that needs no words of its own, such as `HTTP 404 Not Found`."""
    return envelope(status, status, f"HTTP {status} {HTTPStatus(status).phrase}")


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.detail == HTTPStatus(error.status_code).phrase:
        return generic(error.status_code)
    return envelope(error.status_code, error.status_code, error.detail)


async def _answer_wrong_request(_: Request, error: Exception) -> Response:
    """A path that cannot be meant does not exist; anything else is told with its place, value and reason."""
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if any(problem["loc"][0] == "path" for problem in problems):
        return generic(404)
    told = [_told(problem) for problem in problems[:_MAX_PROBLEMS]]
    more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    return envelope(400, 400, "; ".join([*told, *more]))


def _told(problem: dict[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"The body is not valid JSON: {problem.get('ctx', {}).get('error', problem['msg'])}"
    kind, *place = problem["loc"]
    where = ".".join(_shortened(part) for part in place) or "body"
    given = "" if problem["type"] == "missing" else f" {_quoted(problem.get('input'))}"
    return f"{'Parameter' if kind == 'query' else 'Body'} {where}{given}: {problem['msg']}"


def _quoted(value: object) -> str:
    """A value that is wrong, if it is short enough to be told."""
    return f"of {len(value)} entries" if isinstance(value, dict | list) and value else _shortened(repr(value))


def _shortened(part: object) -> str:
    # Half a surrogate pair, which JSON can say and UTF-8 cannot, is told as a question mark.
    text = str(part).encode(errors="replace").decode()
    return text if len(text) <= 80 else f"{text[:77]}..."


async def _answer_bug(_: Request, __: Exception) -> Response:
    # The server logs the exception with its traceback; a client learns only that it is not to blame.
    return envelope(500, 500, "HTTP 500 Internal Server Error: a fault of this service, see its log")


# --- limits and counts around the app ---


class BoundedRoute(APIRoute):
    """A route whose bodies hold a bounded number of values: the event loop checks them, and everybody waits for it."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def handle_bounded(request: Request) -> Response:
            return await handle(_BoundedRequest(request.scope, request.receive))

        return handle_bounded


class _BoundedRequest(Request):
    @override
    async def json(self) -> Any:
        encoding = self.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise HTTPException(415, f"Bodies are read as they are, not with the content-encoding {encoding}")
        try:
            content = await self.body()
            text = content.decode(json.detect_encoding(content))
            _check_values(text)
            document = json.loads(text)
            if "\\u" in text:
                json.dumps(document, ensure_ascii=False).encode()
        except UnicodeDecodeError:
            raise HTTPException(400, "The body is not valid JSON: it is no text in UTF-8") from None
        except UnicodeEncodeError:
            raise HTTPException(400, "The body is not valid JSON: half of a surrogate pair is no text") from None
        except RecursionError:
            raise HTTPException(400, "The body is not valid JSON: it nests too deep") from None
        return document


def _check_values(text: str) -> None:
    """Refuse too many values before they are read: making a million empty lists takes more than a second."""
    if _structure(text) > _MAX_VALUES and _structure(_STRINGS.sub("", text)) > _MAX_VALUES:
        raise HTTPException(413, f"The body has more than {_MAX_VALUES} values")


def _structure(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def guarded(app: Application, settings: WebSettings, counts: "RequestCounts") -> Application:
    """The app behind its limits, with every request counted."""
    return counts.around(SendersQueue(BodyLimits(app, settings), settings))


class BodyLimits:
    """Refuses bodies that are too long, and clients that stop sending in the middle of one."""

    def __init__(self, app: Application, settings: WebSettings) -> None:
        self._app = app
        self._max_bytes = settings.request_max_bytes
        self._timeout = settings.request_read_timeout_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        if _content_length(scope["headers"]) > self._max_bytes:
            await self._refusal(scope["headers"])(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    def _bounded(self, receive: Receive) -> Receive:
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            try:
                async with asyncio.timeout(self._timeout):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"No more of the body came within {self._timeout:g} s") from None
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(413, self._too_long)
            return message

        return receive_bounded

    @property
    def _too_long(self) -> str:
        return f"The body is longer than {self._max_bytes} bytes (request.max.bytes)"

    def _refusal(self, headers: Sequence[tuple[bytes, bytes]]) -> Response:
        response = envelope(413, 413, self._too_long)
        # The rest of the body is passed over; a client that waited for our leave does not send it.
        if any(name == b"expect" for name, _ in headers):
            response.headers["connection"] = "close"
        return response


class SendersQueue:
    """Lets requests that send something take most of the worker threads, never all of them.

    What they send can take long to check. Who only asks must not wait for it: some threads are always left.
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
            busy = f"Others were served for {self._timeout:g} s (request.queue.timeout.ms); try again later"
            await envelope(503, 503, busy)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._turns.release()


class RequestCounts:
    """How many requests were answered, by method, route and status, and how long that took.

    Labels are the routes' templates, never the paths that clients send, so their number is bounded.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._counts: dict[tuple[str, str, str], int] = {}
        self._seconds: dict[tuple[str, str], float] = {}
        self.in_work = 0

    def around(self, app: Application) -> Application:
        """The same app, with its requests counted."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            started, status = time.perf_counter(), "500"

            async def noting(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = str(message["status"])
                await send(message)

            self.in_work += 1
            try:
                await app(scope, receive, noting)
            finally:
                self.in_work -= 1
                self.add(_method(scope), _route(scope), status, seconds=time.perf_counter() - started)

        return counted

    def add(self, method: str, route: str, status: str, *, seconds: float = 0.0, count: int = 1) -> None:
        """Count requests."""
        key = (method, route, status)
        self._counts[key] = self._counts.get(key, 0) + count
        self._seconds[method, route] = self._seconds.get((method, route), 0.0) + seconds

    def families(self) -> Iterable[Family]:
        """The counts, for `/metrics`."""
        yield Family(
            name=f"{self._prefix}_http_requests_total",
            help="Requests answered.",
            kind="counter",
            labels=("method", "route", "status"),
            samples=[(key, count) for key, count in list(self._counts.items())],
        )
        yield Family(
            name=f"{self._prefix}_http_request_seconds_total",
            help="Time spent on requests, waiting included.",
            kind="counter",
            labels=("method", "route"),
            samples=[(key, seconds) for key, seconds in list(self._seconds.items())],
        )
        yield Family(
            name=f"{self._prefix}_http_requests_in_work",
            help="Requests that are not answered yet.",
            samples=[((), self.in_work)],
        )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in _METHODS else "other"


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "other")


def _content_length(headers: Sequence[tuple[bytes, bytes]]) -> int:
    value = next((value for name, value in headers if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0
