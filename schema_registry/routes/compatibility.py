"""`/compatibility`: may this schema follow those that are registered?"""

from fastapi import APIRouter, Response

from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.paths import Segment
from schema_registry.models import Compatibility, SchemaBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.answers import told


def router(registry: Registry) -> APIRouter:
    """The routes, answering from a registry."""
    routes = APIRouter(
        prefix="/compatibility/subjects/{subject}/versions", tags=["compatibility"], route_class=BoundedRoute
    )

    @routes.post("", response_model=Compatibility)
    def with_all(subject: Segment, body: SchemaBody, *, normalize: bool = False, verbose: bool = False) -> Response:
        """Whether a schema may follow the versions that the subject's level says."""
        return told(registry.check(subject, None, body, normalize=normalize, verbose=verbose))

    @routes.post("/{version}", response_model=Compatibility)
    def with_one(
        subject: Segment, version: Segment, body: SchemaBody, *, normalize: bool = False, verbose: bool = False
    ) -> Response:
        """Whether a schema may follow one version."""
        return told(registry.check(subject, version, body, normalize=normalize, verbose=verbose))

    return routes
