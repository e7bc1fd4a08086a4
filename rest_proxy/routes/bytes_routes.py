"""Routes that read requests as bytes, served without the framework's layers, which cost more than all their work."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from typing_extensions import override

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.errors import status_error
from core_broker.service.web.limits import BoundedRoute
from rest_proxy.errors import ProxyError

log = logging.getLogger(__name__)

Answer = Callable[[Request], Awaitable[Response]]
"""Answers a request, whatever is wrong with it: such a function raises for its own faults alone."""


class BytesRoute(BoundedRoute):
    """A route whose requests are handed over as they came; what its endpoint declares is for the OpenAPI document."""

    answer: ClassVar[Answer]

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = type(self).answer

        async def handle(request: Request) -> Response:
            return await answer(request)

        return handle


def answered_by(answer: Answer) -> type[BytesRoute]:
    """The class of routes whose requests a function answers."""
    return type("BytesRoute", (BytesRoute,), {"answer": staticmethod(answer)})


def refused_body(error: HTTPException) -> ProxyError:
    """Why a body was not read to its end, as an answer."""
    later = (error.headers or {}).get("Retry-After")
    return ProxyError(error.status_code, error.detail, retry_after_seconds=int(later) if later else None)


class Shortcut:
    """Leads requests for such routes straight to their answers, all others through the app."""

    def __init__(self, app: Application, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._routes = [
            (method, route)
            for router in routers
            for route in router.routes
            if isinstance(route, BytesRoute)
            for method in route.methods or ()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            for method, route in self._routes:
                if scope["method"] == method and (found := route.path_regex.match(scope["path"])):
                    scope["route"], scope["path_params"] = route, found.groupdict()
                    await _answer(route, scope, receive, send)
                    return
        await self._app(scope, receive, send)


async def _answer(route: BytesRoute, scope: Scope, receive: Receive, send: Send) -> None:
    try:
        response = await type(route).answer(Request(scope, receive))
    except Exception:
        log.exception("request failed", extra={"route": route.path})
        response = status_error(500)
    await response(scope, receive, send)
