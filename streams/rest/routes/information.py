"""What the service says about itself: /info, /healthcheck, /status and others."""

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from core_broker.service.web.paths import Segment
from streams.rest.media_types import JSON, V1_JSON, choose
from streams.rest.row_formats import encode
from streams.rest.threads import Threads
from streams.server.errors import ServiceError
from streams.server.properties import check_name
from streams.server.service import Service

_OFFERED: Final = (V1_JSON, JSON)


def router(service: Service, threads: Threads) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["information"])
    _add_states(routes, service, threads)
    _add_probes(routes, service)

    @routes.get("/", include_in_schema=False)
    async def redirect_to_info() -> Response:
        return RedirectResponse("/info")

    @routes.get("/info", operation_id="getInfo")
    async def info(request: Request) -> Response:
        """Version, cluster and state of the server."""
        return _answer(request, await threads.for_statements(service.info))

    @routes.get("/is_valid_property/{name}", operation_id="checkProperty")
    async def is_valid_property(request: Request, name: Segment) -> Response:
        """Whether requests may set a property: true, or an error that says why not."""
        check_name(name, service.settings)
        return _answer(request, True)

    @routes.get("/clusterStatus", operation_id="getClusterStatus")
    async def cluster_status(request: Request) -> Response:
        """The servers that are alive, as far as this one knows."""
        if not service.settings.ksql_heartbeat_enable:
            raise ServiceError("Set ksql.heartbeat.enable=true to see the state of the cluster", code=40400)
        own = {
            "hostAlive": True,
            "lastStatusUpdateMs": 0,
            "activeStandbyPerQuery": {},
            "hostStoreLags": {"stateStoreLags": {}, "updateTimeMs": 0},
        }
        return _answer(request, {"clusterStatus": {service.host: own}})

    @routes.get("/v1/metadata", operation_id="getMetadata")
    @routes.get("/v1/metadata/id", operation_id="getMetadataId")
    async def metadata(request: Request) -> Response:
        """Which clusters this server belongs to."""
        found = (await threads.for_statements(service.info))["KsqlServerInfo"]
        clusters = {"kafka-cluster": found["kafkaClusterId"], "ksql-cluster": found["ksqlServiceId"]}
        return _answer(request, {"scope": {"path": [], "clusters": clusters}, "id": ""})

    return routes


def _add_states(routes: APIRouter, service: Service, threads: Threads) -> None:
    @routes.get("/healthcheck", operation_id="getHealthcheck")
    async def healthcheck(request: Request) -> Response:
        """Whether the parts of the service work; the body says so, the status is always 200."""
        return _answer(request, await threads.for_statements(service.health))

    @routes.get("/status", operation_id="getStatuses")
    async def statuses(request: Request) -> Response:
        """How far the latest statements are."""
        return _answer(request, {"commandStatuses": await threads.for_statements(service.command_statuses)})

    @routes.get("/status/{type}/{entity}/{action}", operation_id="getStatus")
    async def status(request: Request, type: Segment, entity: Segment, action: Segment) -> Response:  # noqa: A002
        """How far a statement is, by the id in its answer."""
        command_id = f"{type}/{entity}/{action}"
        return _answer(request, await threads.for_statements(lambda: service.command_status(command_id)))


def _add_probes(routes: APIRouter, service: Service) -> None:
    @routes.get("/chc/live", operation_id="getLiveness")
    @routes.get("/livez", include_in_schema=False)
    async def live() -> Response:
        """The process answers."""
        return Response(b"{}", media_type="application/json")

    @routes.get("/chc/ready", operation_id="getReadiness")
    @routes.get("/readyz", include_in_schema=False)
    async def ready() -> Response:
        """Whether statements are carried out: 200 or 503."""
        status_code = 200 if service.is_ready else 503
        return Response(b"{}", status_code=status_code, media_type="application/json")


def _answer(request: Request, document: Any) -> Response:
    media_type = choose(request.scope, _OFFERED)
    return Response(encode(document), media_type=media_type.decode())
