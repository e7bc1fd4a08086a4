"""Routes of associations: `/associations…`.

Batches return 200, as Confluent's servers do, although its documentation says 207.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from core_broker.service.web.paths import Segment
from schema_registry.models_associations import (
    Association,
    AssociationBatch,
    AssociationQueries,
    AssociationResults,
    Lifecycle,
    ResourceChange,
    ResourceResponse,
)
from schema_registry.registry import association_batches as batches
from schema_registry.registry.association_rules import TOPIC, invalid
from schema_registry.registry.associations import Associations
from schema_registry.routes.guard import AccessDependency, GuardedRoute
from schema_registry.routes.parameters import Limit, Offset
from schema_registry.routes.responses import json_response, list_response
from schema_registry.store.associations import Filter

Context = Annotated[str | None, Query()]
"""The context of subjects whose names do not include one."""

Types = Annotated[list[str] | None, Query(alias="associationType")]
"""`key`, `value` or both."""

_NO_CONTENT = 204


def _filter(
    *,
    resourceType: str | None = None,
    types: Types = None,
    lifecycle: str | None = None,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Filter:
    if lifecycle and lifecycle not in Lifecycle.__members__:
        raise invalid("lifecycle", "must be either 'STRONG' or 'WEAK'")
    return Filter(
        resource_type=resourceType or TOPIC,
        association_types=types or (),
        lifecycle=lifecycle or None,
        offset=offset,
        limit=limit,
    )


Wanted = Annotated[Filter, Depends(_filter)]
"""The filter in the query parameters that all reads share."""


def router(associations: Associations) -> APIRouter:
    """Associations over HTTP."""
    routes = APIRouter(tags=["associations"], route_class=GuardedRoute)
    _add_reads(routes, associations)
    _add_writes(routes, associations)
    _add_batches(routes, associations)
    return routes


def _add_reads(routes: APIRouter, associations: Associations) -> None:
    @routes.get("/associations/subjects/{subject}", response_model=list[Association])
    def of_subject(subject: Segment, wanted: Wanted, access: AccessDependency) -> Response:
        """The associations of a subject."""
        return list_response(associations.seen_by(access).of_subject(subject, wanted))

    @routes.get("/associations/resources/{namespace}/{name}", response_model=list[Association])
    def of_name(namespace: Segment, name: Segment, wanted: Wanted, access: AccessDependency) -> Response:
        """The associations of a resource by its name; `-` stands for every namespace."""
        return list_response(associations.seen_by(access).of_name(name, namespace, wanted))

    @routes.get("/associations/resources/{resource_id}", response_model=list[Association])
    def of_resource(resource_id: Segment, wanted: Wanted, access: AccessDependency) -> Response:
        """The associations of a resource by its id."""
        return list_response(associations.seen_by(access).of_resource(resource_id, wanted))


def _add_writes(routes: APIRouter, associations: Associations) -> None:
    @routes.post("/associations", response_model=ResourceResponse)
    def create(
        body: ResourceChange, access: AccessDependency, *, context: Context = None, dryRun: bool = False
    ) -> Response:
        """Associate a resource with subjects."""
        return json_response(associations.seen_by(access).create(body, context=context, dry_run=dryRun))

    @routes.put("/associations", response_model=ResourceResponse)
    def upsert(
        body: ResourceChange, access: AccessDependency, *, context: Context = None, dryRun: bool = False
    ) -> Response:
        """Associate a resource with subjects, or change how it is associated."""
        return json_response(associations.seen_by(access).upsert(body, context=context, dry_run=dryRun))

    @routes.put("/associations/resources/{resource_id}", response_model=ResourceResponse)
    def upsert_by_id(
        resource_id: Segment,
        body: ResourceChange,
        access: AccessDependency,
        *,
        context: Context = None,
        dryRun: bool = False,
    ) -> Response:
        """Associate a resource with subjects; a proxy can authorize the request by the resource in the path."""
        if body.resource_id not in (None, resource_id):
            reason = "Resource ID in the path parameter does not match the resource ID in the request body"
            raise invalid("resourceId", reason)
        change = body.model_copy(update={"resource_id": resource_id})
        return json_response(associations.seen_by(access).upsert(change, context=context, dry_run=dryRun))

    @routes.delete("/associations/resources/{resource_id}", status_code=_NO_CONTENT)
    def delete(
        resource_id: Segment,
        access: AccessDependency,
        *,
        resourceType: str | None = None,
        types: Types = None,
        cascadeLifecycle: bool = False,
        dryRun: bool = False,
    ) -> Response:
        """Delete associations of a resource, with `cascadeLifecycle` also the subjects that belong to it alone."""
        associations.seen_by(access).delete(
            resource_id,
            resource_type=resourceType,
            association_types=types or (),
            cascade=cascadeLifecycle,
            dry_run=dryRun,
        )
        return Response(status_code=_NO_CONTENT)


def _add_batches(routes: APIRouter, associations: Associations) -> None:
    @routes.post("/associations:batchGet", response_model=AssociationResults)
    def batch_get(body: AssociationQueries, access: AccessDependency, *, includeSchemas: bool = False) -> Response:
        """The associations of several resources."""
        return json_response(batches.get(associations.seen_by(access), body, include_schemas=includeSchemas))

    @routes.post("/associations:batchMutate", response_model=AssociationResults)
    def batch_mutate(
        body: AssociationBatch, access: AccessDependency, *, context: Context = None, dryRun: bool = False
    ) -> Response:
        """Create, change and delete associations of several resources."""
        return json_response(batches.mutate(associations.seen_by(access), body, context=context, dry_run=dryRun))
