"""The root, the contexts, and what the registry tells about itself."""

from importlib.metadata import version as version_of

from fastapi import APIRouter, Response

from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.paths import Segment
from schema_registry.registry.registry import Registry
from schema_registry.routes.answers import JSON, listed
from schema_registry.routes.parameters import Limit, Offset

_CLUSTER_ID = b'{"scope":{"path":[],"clusters":{"kafka-cluster":"","schema-registry-cluster":"caudal"}},"id":""}'
_DEPLOYMENT = b'{"attributes":["deployment:self-managed"]}'


def router(registry: Registry) -> APIRouter:
    """The routes, answering from a registry."""
    routes = APIRouter(tags=["server"], route_class=BoundedRoute)

    @routes.get("/")
    @routes.post("/")
    def root() -> Response:
        """Nothing: clients ask to learn whether somebody is here."""
        return Response(b"{}", media_type=JSON)

    @routes.get("/contexts", response_model=list[str])
    def contexts(*, contextPrefix: str = "", offset: Offset = 0, limit: Limit = -1) -> Response:
        """The contexts that hold schemas; `.` is the default one."""
        return listed(registry.contexts(prefix=contextPrefix, offset=offset, limit=limit))

    @routes.delete("/contexts/{context}", status_code=204, response_class=Response)
    def delete_context(context: Segment) -> Response:
        """Forget a context that holds nothing."""
        registry.delete_context(context)
        return Response(status_code=204)

    @routes.get("/v1/metadata/id")
    def cluster_id() -> Response:
        """Which cluster this is."""
        return Response(_CLUSTER_ID, media_type=JSON)

    @routes.get("/v1/metadata/version")
    def version() -> Response:
        """Which release this is."""
        return Response(f'{{"version":"{version_of("caudal")}","commitId":""}}', media_type=JSON)

    @routes.get("/v1/metadata/deployment")
    def deployment() -> Response:
        """How it is deployed."""
        return Response(_DEPLOYMENT, media_type=JSON)

    return routes
