"""The root, the contexts, and information about the registry itself."""

from importlib.metadata import version as version_of

from fastapi import APIRouter, Response

from core_broker.service.web.paths import Segment
from schema_registry.registry.registry import Registry
from schema_registry.routes.guard import AccessDependency, GuardedRoute
from schema_registry.routes.parameters import Limit, Offset
from schema_registry.routes.responses import JSON, list_response

_CLUSTER_ID = b'{"scope":{"path":[],"clusters":{"kafka-cluster":"","schema-registry-cluster":"caudal"}},"id":""}'
_DEPLOYMENT = b'{"attributes":["deployment:self-managed"]}'


def router(registry: Registry) -> APIRouter:
    """The routes of a registry's root and metadata."""
    routes = APIRouter(tags=["server"], route_class=GuardedRoute)

    @routes.get("/")
    @routes.post("/")
    def root() -> Response:
        """An empty object: clients check that the registry is up."""
        return Response(b"{}", media_type=JSON)

    @routes.get("/contexts", response_model=list[str])
    def contexts(
        access: AccessDependency, *, contextPrefix: str = "", offset: Offset = 0, limit: Limit = -1
    ) -> Response:
        """The contexts that have schemas; `.` is the default one."""
        return list_response(registry.seen_by(access).contexts(prefix=contextPrefix, offset=offset, limit=limit))

    @routes.delete("/contexts/{context}", status_code=204, response_class=Response)
    def delete_context(context: Segment) -> Response:
        """Remove an empty context."""
        registry.delete_context(context)
        return Response(status_code=204)

    @routes.get("/v1/metadata/id")
    def cluster_id() -> Response:
        """The ids of this cluster."""
        return Response(_CLUSTER_ID, media_type=JSON)

    @routes.get("/v1/metadata/version")
    def version() -> Response:
        """The version of this registry."""
        return Response(f'{{"version":"{version_of("caudal")}","commitId":""}}', media_type=JSON)

    @routes.get("/v1/metadata/deployment")
    def deployment() -> Response:
        """The kind of deployment."""
        return Response(_DEPLOYMENT, media_type=JSON)

    return routes
