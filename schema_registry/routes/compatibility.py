"""`/compatibility`: whether a schema is compatible with registered ones."""

from fastapi import APIRouter, Response

from core_broker.service.web.paths import Segment
from schema_registry.models import Compatibility, SchemaBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.guard import AccessDependency, GuardedRoute
from schema_registry.routes.responses import json_response


def router(registry: Registry) -> APIRouter:
    """The routes of `/compatibility`."""
    routes = APIRouter(
        prefix="/compatibility/subjects/{subject}/versions", tags=["compatibility"], route_class=GuardedRoute
    )

    @routes.post("", response_model=Compatibility)
    def with_all(
        subject: Segment, body: SchemaBody, access: AccessDependency, *, normalize: bool = False, verbose: bool = False
    ) -> Response:
        """Check a schema against the versions that the subject's compatibility level names."""
        return json_response(registry.seen_by(access).check(subject, None, body, normalize=normalize, verbose=verbose))

    @routes.post("/{version}", response_model=Compatibility)
    def with_one(
        subject: Segment,
        version: Segment,
        body: SchemaBody,
        access: AccessDependency,
        *,
        normalize: bool = False,
        verbose: bool = False,
    ) -> Response:
        """Check a schema against one version."""
        return json_response(
            registry.seen_by(access).check(subject, version, body, normalize=normalize, verbose=verbose)
        )

    return routes
