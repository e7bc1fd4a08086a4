"""The HTTP application: every route of the API around one service."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from core_broker.service.metrics import Collect
from core_broker.service.web.app import create_app
from core_broker.service.web.asgi import Application, Scope
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.limits import BodyLimits
from core_broker.service.web.paths import RawPaths
from core_broker.web_access.documented import add_access
from core_broker.web_access.login import Login
from core_broker.web_access.middleware import with_login
from streams.rest.routes import information, inserts, queries, statements, websocket
from streams.rest.row_formats import encode
from streams.rest.threads import Threads
from streams.rest.websocket_login import with_websocket_login
from streams.server.errors import ServiceError
from streams.server.service import Service

_DESCRIPTION = """SQL over topics: the REST API of ksqlDB.

`/ksql` carries out statements, `/query` and `/query-stream` answer SELECT and PRINT row by row, `/inserts-stream` takes
rows. Error responses are `{"@type": "generic_error", "error_code": 40001, "message": "..."}`: a hundredth of the code
is the HTTP status.
"""


def api(service: Service, *, collect: Collect) -> FastAPI:
    """The routes, without logins and limits; must be made inside the event loop that serves them."""
    app = create_app(
        title="Caudal streams",
        description=_DESCRIPTION,
        error_type=ServiceError,
        collect=collect,
        is_healthy=lambda: service.is_ready,
    )
    threads = Threads(service.settings)
    for made in (statements, queries, inserts, information, websocket):
        app.include_router(made.router(service, threads))
    app.add_exception_handler(ServiceError, _answer_service_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_bug)
    add_access(app, service.settings, forbidden_code=40300)
    return app


def application(app: FastAPI, service: Service, *, login: Login, counts: RequestCounts) -> Application:
    """The routes with limits and logins."""
    limited = BodyLimits(RawPaths(app), service.settings, is_unbounded=_is_unbounded)
    protected = with_login(limited, login)
    return counts.around(with_websocket_login(protected, login))


def _is_unbounded(scope: Scope) -> bool:
    return bool(scope["path"].rstrip("/") == inserts.PATH)


async def _answer_service_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    headers = {"retry-after": str(error.retry_after_seconds)} if error.retry_after_seconds else None
    return _json(error.status, error.body(), headers)


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    message = (
        f"HTTP {status} {HTTPStatus(status).phrase}" if error.detail == HTTPStatus(status).phrase else error.detail
    )
    return _json(status, ServiceError(message, code=status * 100).body(), dict(error.headers or {}))


async def _answer_bug(_: Request, __: Exception) -> Response:
    # The server logs the exception with its traceback; a client learns only that it is not to blame.
    return _json(500, ServiceError("A bug in this service, see its log", code=50000).body())


def _json(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(encode(body), status_code=status, media_type="application/json", headers=headers)
