"""The worker itself: its version, its health, and the levels of its loggers."""

import asyncio
import logging
from importlib.metadata import version
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response
from fastapi.routing import APIRoute

from connect.rest.answers import empty, json_response
from connect.rest.models import HealthView, LevelBody, ServerView, errors
from connect.rest.views import view
from connect.runtime.errors import BadRequest, WorkerError
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.loggers import LoggerLevel, Loggers, parse_level
from connect.settings import ConnectSettings
from core_broker.service.web.paths import Segment

log = logging.getLogger(__name__)

API_VERSION: Final = "4.1.0"
"""Tools look at the release of Kafka Connect to know which endpoints it has."""
_HEALTH_SECONDS: Final = 10.0
_STATUSES: Final = {"healthy": 200, "starting": 503, "unhealthy": 500}
_WORDS: Final = {
    "healthy": "Worker has completed startup and is ready to handle requests.",
    "starting": "Worker is still starting up.",
    "unhealthy": "Worker was unable to handle this request and may be unable to handle other requests.",
}
LoggerName = Annotated[
    Segment, Path(description="The logger's name; root for all loggers.", examples=["connect.runtime"])
]
Scope = Annotated[str | None, Query(description="worker (the default): only this one; cluster: all workers.")]


def router(
    supervisor: Supervisor, *, route_class: type[APIRoute], loggers: Loggers, settings: ConnectSettings
) -> APIRouter:
    """The routes of one worker."""
    routes = APIRouter(route_class=route_class)
    _add_server(routes, supervisor)
    if settings.admin_listeners:
        _add_loggers(routes, supervisor, loggers)
    return routes


def _add_server(routes: APIRouter, supervisor: Supervisor) -> None:
    commit = f"caudal-{version('caudal')}"

    @routes.get("/", response_model=ServerView, responses=errors(), tags=["worker"], operation_id="getServer")
    def get_server() -> Response:
        """The version of this worker, and its Kafka cluster."""
        return json_response({"version": API_VERSION, "commit": commit, "kafka_cluster_id": supervisor.cluster_id()})

    @routes.get(
        "/health",
        response_model=HealthView,
        responses={
            500: {"model": HealthView, "description": "The worker is unhealthy."},
            503: {"model": HealthView, "description": "The worker is starting."},
        },
        tags=["operation"],
        operation_id="getHealth",
    )
    async def get_health() -> Response:
        """The health of this worker; takes ten seconds at most."""
        asked = asyncio.ensure_future(asyncio.to_thread(_health, supervisor))
        done, _ = await asyncio.wait({asked}, timeout=_HEALTH_SECONDS)
        state, details = asked.result() if done else ("unhealthy", "")
        words = _WORDS[state]
        message = words if not details or details == words else f"{words} {details}"
        return json_response({"status": state, "message": message}, status=_STATUSES[state])


def _health(supervisor: Supervisor) -> tuple[str, str]:
    try:
        state, details = supervisor.health()
    except WorkerError as error:
        return "unhealthy", error.message
    return (state, details) if state in _STATUSES else ("unhealthy", f"{state} {details}".strip())


def _add_loggers(routes: APIRouter, supervisor: Supervisor, loggers: Loggers) -> None:
    @routes.get(
        "/admin/loggers",
        response_model=view(dict[str, LoggerLevel]),
        responses=errors(),
        tags=["loggers"],
        operation_id="listLoggers",
    )
    def list_loggers() -> Response:
        """The loggers of this worker with a level of their own."""
        return json_response(loggers.levels())

    @routes.get(
        "/admin/loggers/{logger}",
        response_model=view(LoggerLevel),
        responses=errors(404),
        tags=["loggers"],
        operation_id="getLogger",
    )
    def get_logger(logger: LoggerName) -> Response:
        """The level of a logger of this worker."""
        return json_response(loggers.level(logger))

    @routes.put(
        "/admin/loggers/{logger}",
        response_model=list[str],
        responses={**errors(404), 204: {"description": "All workers set it."}},
        tags=["loggers"],
        operation_id="setLoggerLevel",
    )
    def set_logger_level(logger: LoggerName, body: LevelBody, scope: Scope = None) -> Response:
        """Set the level of a logger and those below it until the worker stops; returns their names."""
        if body.level is None:
            raise BadRequest("Desired 'level' parameter was not specified in request.")
        level = parse_level(body.level)
        match (scope or "worker").lower():
            case "cluster":
                supervisor.set_logger_level(logger, level)
                return empty(204)
            case "worker":
                pass
            case _:
                log.warning("unknown scope, only this worker's loggers are changed", extra={"scope": scope})
        return json_response(loggers.set_level(logger, level))
