"""Batches: several resources in one request, each with its own result or error."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from schema_registry.errors import RegistryError
from schema_registry.models_associations import (
    Association,
    AssociationBatch,
    AssociationInfo,
    AssociationOperation,
    AssociationQueries,
    AssociationQuery,
    AssociationResult,
    AssociationResults,
    ErrorMessage,
    OfResource,
    Operation,
    ResourceChange,
    ResourceOperations,
    ResourceResponse,
)
from schema_registry.registry.association_rules import (
    TOPIC,
    Resource,
    batch_too_large,
    check_association_type,
    check_resource,
    invalid,
    wanted_by_create,
    wanted_by_upsert,
)
from schema_registry.registry.associations import Associations
from schema_registry.store.associations import Filter

R = TypeVar("R")

MAX_ASSOCIATIONS = 1000
"""Maximum number of associations in a batch."""


def mutate(
    associations: Associations, batch: AssociationBatch, *, context: str | None = None, dry_run: bool = False
) -> AssociationResults:
    """Create, change and delete associations; a failure for one resource does not affect the others."""
    requests = _check_size(batch.requests, [len(request.associations or ()) for request in batch.requests or ()])
    return _results(requests, lambda one: _mutate_one(associations, one, context=context, dry_run=dry_run))


def get(
    associations: Associations, queries: AssociationQueries, *, include_schemas: bool = False
) -> AssociationResults:
    """The associations of several resources."""
    requests = _check_size(queries.requests, [1 for _ in queries.requests or ()])
    return _results(requests, lambda one: _get_one(associations, one, include_schemas=include_schemas))


def _results(requests: Sequence[R], serve: Callable[[R], ResourceResponse]) -> AssociationResults:
    results = []
    for request in requests:
        try:
            results.append(AssociationResult(result=serve(request)))
        except RegistryError as error:
            results.append(AssociationResult(error=ErrorMessage(error_code=error.code, message=error.message)))
    return AssociationResults(results=results)


def _mutate_one(
    associations: Associations, request: ResourceOperations, *, context: str | None, dry_run: bool
) -> ResourceResponse:
    resource = _check_request(request, dry_run=dry_run)
    for operation in request.associations or ():
        if operation.op_type is Operation.DELETE:
            _delete(associations, resource, operation, dry_run=dry_run)
        else:
            apply = associations.create if operation.op_type is Operation.CREATE else associations.upsert
            fields = request.model_dump(include=set(OfResource.model_fields))
            apply(ResourceChange(**fields, associations=[operation]), context=context, dry_run=dry_run)
    found: list[Association] = []
    if not dry_run and resource.id is not None:
        found = associations.of_resource(resource.id, Filter(resource_type=resource.type))
    return resource.describe([_to_info(association) for association in found])


def _check_request(request: ResourceOperations, *, dry_run: bool) -> Resource:
    """Refuse a request that is invalid in any state of the registry, before its first operation is applied."""
    resource = check_resource(request, dry_run=dry_run)
    if not request.associations:
        raise invalid("associations", "cannot be null or empty")
    are_frozen = {
        is_frozen
        for operation in request.associations
        if (is_frozen := _check_operation(operation, resource)) is not None
    }
    if len(are_frozen) > 1:
        raise invalid("frozen", "all associations for a resource must be consistently frozen or non-frozen")
    return resource


def _check_operation(operation: AssociationOperation, resource: Resource) -> bool | None:
    """Check an operation by itself; returns whether the association will be frozen, if the operation says so."""
    if operation.op_type is Operation.CREATE:
        return wanted_by_create(operation, resource).is_frozen
    if operation.op_type is Operation.UPSERT:
        return wanted_by_upsert(operation, resource, exists=True).is_frozen
    check_association_type(operation.association_type)
    return None


def _delete(associations: Associations, resource: Resource, operation: AssociationOperation, *, dry_run: bool) -> None:
    kind = check_association_type(operation.association_type)
    wanted = Filter(resource_type=resource.type, association_types=[kind])
    if resource.id is None or not associations.of_resource(resource.id, wanted):
        return
    associations.delete(
        resource.id,
        resource_type=resource.type,
        association_types=[kind],
        cascade=bool(operation.cascade_lifecycle),
        dry_run=dry_run,
    )


def _get_one(associations: Associations, query: AssociationQuery, *, include_schemas: bool) -> ResourceResponse:
    wanted = Filter(
        resource_type=query.resource_type or TOPIC,
        association_types=query.association_types or (),
        lifecycle=query.lifecycle,
    )
    if query.resource_id:
        found = associations.of_resource(query.resource_id, wanted)
    else:
        found = associations.of_name(query.resource_name or "", query.resource_namespace, wanted)
    if len({association.resource_id for association in found}) > 1:
        raise invalid("resourceName", "several resources have this name: give a resourceId or a resourceNamespace")
    first = found[0] if found else None
    infos = [_to_info(association) for association in found]
    if include_schemas:
        infos = [info.model_copy(update={"schema_": associations.latest_schema(info.subject)}) for info in infos]
    return ResourceResponse(
        resource_name=first.resource_name if first else query.resource_name,
        resource_namespace=first.resource_namespace if first else query.resource_namespace,
        resource_id=first.resource_id if first else query.resource_id,
        resource_type=query.resource_type or TOPIC,
        associations=infos or None,
    )


def _check_size(requests: Sequence[R] | None, sizes: Sequence[int]) -> Sequence[R]:
    if not requests:
        raise invalid("requests", "cannot be null or empty")
    if sum(sizes) > MAX_ASSOCIATIONS or len(requests) > MAX_ASSOCIATIONS:
        raise batch_too_large(MAX_ASSOCIATIONS)
    return requests


def _to_info(association: Association) -> AssociationInfo:
    return AssociationInfo(
        subject=association.subject,
        association_type=association.association_type,
        lifecycle=association.lifecycle,
        frozen=association.frozen,
    )
