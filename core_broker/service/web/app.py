"""What every HTTP service answers in the same way: errors in one envelope, `/health`, `/metrics`, limits on bodies.

`create_app` gives the FastAPI app that a service adds its routes to; `guarded` puts the limits and the counting of
requests around it. `core_broker/service/web/server.py` serves the result.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Response

from core_broker.service.metrics import PROMETHEUS_TEXT, Collect, renderer
from core_broker.service.web.asgi import Application
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.errors import tell_errors
from core_broker.service.web.limits import BodyLimits, BoundedRoute, SendersQueue
from core_broker.service.web.settings import WebSettings

_STATUS = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
_HEALTH: dict[int | str, dict[str, Any]] = {
    200: {"description": "It can.", "content": {"application/json": {"schema": _STATUS}}},
    503: {"description": "It cannot now.", "content": {"application/json": {"schema": _STATUS}}},
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
    told_as: Mapping[int, int] = MappingProxyType({}),
    missing_body_status: int = 400,
) -> FastAPI:
    """An app that answers `/health` and `/metrics` and tells every failure as `{"error_code", "message"}`.

    `error_type` is the service's own error (a `ServiceError`). `is_healthy` may block: it runs on a worker thread.
    `told_as` gives codes that clients are to see under another number, `missing_body_status` the status where a request
    needs a body and has none.
    """
    app = FastAPI(title=title, description=description, redirect_slashes=False, strict_content_type=False)
    app.router.route_class = BoundedRoute
    tell_errors(app, error_type, told_as=told_as, missing_body_status=missing_body_status)
    render = renderer(collect)

    @app.get("/health", tags=["operation"], operation_id="getHealth", responses=_HEALTH)
    def health() -> Response:
        """Whether the service can do its work: 200 or 503."""
        healthy = is_healthy()
        body = b'{"status":"ok"}' if healthy else b'{"status":"not ready"}'
        return Response(body, status_code=200 if healthy else 503, media_type="application/json")

    @app.get("/metrics", tags=["operation"], operation_id="getMetrics", response_class=_MetricsResponse)
    def metrics() -> Response:
        """Counters and gauges in Prometheus' text format."""
        return Response(render(), media_type=PROMETHEUS_TEXT)

    return app


def guarded(app: Application, settings: WebSettings, counts: RequestCounts) -> Application:
    """The app behind its limits, with every request counted."""
    return counts.around(SendersQueue(BodyLimits(app, settings), settings))
