"""`/compatibility`: whether a schema is compatible with registered ones."""

from fastapi import APIRouter, Response

from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.paths import Segment
from schema_registry.models import Compatibility, SchemaBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.responses import json_response


def router(registry: Registry) -> APIRouter:
    """The routes of `/compatibility`."""
    routes = APIRouter(
        prefix="/compatibility/subjects/{subject}/versions", tags=["compatibility"], route_class=BoundedRoute
    )

    @routes.post("", response_model=Compatibility)
    def with_all(subject: Segment, body: SchemaBody, *, normalize: bool = False, verbose: bool = False) -> Response:
        """Check a schema against the versions that the subject's compatibility level names."""
        return json_response(registry.check(subject, None, body, normalize=normalize, verbose=verbose))

    @routes.post("/{version}", response_model=Compatibility)
    def with_one(
        subject: Segment, version: Segment, body: SchemaBody, *, normalize: bool = False, verbose: bool = False
    ) -> Response:
        """Check a schema against one version."""
        return json_response(registry.check(subject, version, body, normalize=normalize, verbose=verbose))

    return routes
