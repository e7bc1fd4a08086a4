"""Routes that read requests as bytes and bypass the framework, whose layers cost more than all their own work."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from typing_extensions import override

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.errors import status_error
from core_broker.service.web.limits import BoundedRoute

log = logging.getLogger(__name__)

Answer = Callable[[Request], Awaitable[Response]]
"""Answers a request, whatever is wrong with it: only bugs make it raise."""


class BytesRoute(BoundedRoute):
    """A route whose function gets the raw request; the endpoint's signature serves the OpenAPI document alone."""

    answer: ClassVar[Answer]

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = type(self).answer

        async def handle(request: Request) -> Response:
            return await answer(request)

        return handle


def route_class(answer: Answer) -> type[BytesRoute]:
    """A class for routes whose requests this function answers."""
    return type("BytesRoute", (BytesRoute,), {"answer": staticmethod(answer)})


class Shortcut:
    """Passes requests for such routes directly to their functions, all others to the app."""

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
                    try:
                        response = await type(route).answer(Request(scope, receive))
                    except Exception:
                        log.exception("request failed", extra={"route": route.path})
                        response = status_error(500)
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)
