"""What every HTTP service has in common: one error envelope, `/health`, `/metrics`, limits on bodies.

`create_app` returns the FastAPI app to which a service adds its routes; `with_limits` wraps it with the limits and the
request counters. `core_broker/service/web/server.py` serves the result.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Response
from fastapi.routing import APIRoute

from core_broker.service.metrics import PROMETHEUS_TEXT, Collect, renderer
from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.errors import add_error_handlers, envelope
from core_broker.service.web.limits import BodyLimits, BoundedRoute, WriteQueue
from core_broker.service.web.settings import WebSettings

_STATUS = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
_HEALTH: dict[int | str, dict[str, Any]] = {
    200: {"description": "The service is ready.", "content": {"application/json": {"schema": _STATUS}}},
    503: {"description": "The service is not ready.", "content": {"application/json": {"schema": _STATUS}}},
}


class _MetricsResponse(Response):
    media_type = PROMETHEUS_TEXT


def create_app(
    *,
    title: str,
    description: str,
    error_type: type[Exception],
    collect: Collect,
    is_healthy: Callable[[], bool] = lambda: True,
    code_aliases: Mapping[int, int] = MappingProxyType({}),
    missing_body_status: int = 400,
    route_class: type[APIRoute] = BoundedRoute,
) -> FastAPI:
    """Create an app that serves `/health` and `/metrics` and answers every failure with `{"error_code", "message"}`.

    `error_type` is the service's own error (a `ServiceError`). `is_healthy` may block: it runs on a worker thread.
    `code_aliases` replaces error codes in responses; `missing_body_status` is for requests that lack a required body.
    """
    app = FastAPI(title=title, description=description, redirect_slashes=False, strict_content_type=False)
    app.router.route_class = route_class
    add_error_handlers(app, error_type, code_aliases=code_aliases, missing_body_status=missing_body_status)
    render = renderer(collect)

    @app.get("/health", tags=["operation"], operation_id="getHealth", responses=_HEALTH)
    def health() -> Response:
        """Whether the service is ready: 200 or 503."""
        healthy = is_healthy()
        body = b'{"status":"ok"}' if healthy else b'{"status":"not ready"}'
        return Response(body, status_code=200 if healthy else 503, media_type="application/json")

    @app.get("/metrics", tags=["operation"], operation_id="getMetrics", response_class=_MetricsResponse)
    def metrics() -> Response:
        """Counters and gauges in the text format of Prometheus."""
        return Response(render(), media_type=PROMETHEUS_TEXT)

    return app


def with_limits(app: Application, settings: WebSettings, counts: RequestCounts) -> Application:
    """Wrap an app with the limits on bodies and worker threads, and count its requests."""
    return counts.around(WriteQueue(BodyLimits(app, settings), settings))


class LateApplication:
    """Answers 503 until its application is set: the port is open, and known, before the service is ready."""

    def __init__(self, message: str) -> None:
        self._message = message
        self.application: Application | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self.application is not None:
            await self.application(scope, receive, send)
        elif scope["type"] == "http":
            await envelope(503, 503, self._message, retry_after_seconds=1)(scope, receive, send)
