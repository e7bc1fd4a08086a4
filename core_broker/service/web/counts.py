"""Request counters for `/metrics`."""

import time
from collections.abc import Iterable

from core_broker.service.metrics import Family
from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class RequestCounts:
    """Counts requests by method, route and status, and the time they took.

    Labels are the templates of routes, never the paths that clients send, so their number is bounded.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._counts: dict[tuple[str, str, str], int] = {}
        self._seconds: dict[tuple[str, str], float] = {}
        self.in_work = 0

    def around(self, app: Application) -> Application:
        """Wrap an app so that its requests are counted."""

        async def count_request(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            started, status = time.perf_counter(), "500"

            async def send_and_note_status(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = str(message["status"])
                await send(message)

            self.in_work += 1
            try:
                await app(scope, receive, send_and_note_status)
            finally:
                self.in_work -= 1
                route = getattr(scope.get("route"), "path", "other")
                self.add(scope["method"], route, status, seconds=time.perf_counter() - started)

        return count_request

    def add(self, method: str, route: str, status: str, *, seconds: float = 0.0, count: int = 1) -> None:
        """Count requests."""
        method = method if method in _METHODS else "other"
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
