"""The bodies of associations, with the property names of Confluent's clients."""

from enum import StrEnum

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from schema_registry.models import Model, SchemaBody, SchemaResponse


class Lifecycle(StrEnum):
    """Whether a subject is deleted with its resource."""

    STRONG = "STRONG"
    WEAK = "WEAK"


class Operation(StrEnum):
    """What a batch does with an association."""

    CREATE = "CREATE"
    UPSERT = "UPSERT"
    DELETE = "DELETE"


class WithSchema(Model):
    """The base of bodies with a property `schema`, which is also a method of pydantic's models."""

    model_config = ConfigDict(alias_generator=lambda name: "schema" if name == "schema_" else to_camel(name))


class AssociationChange(WithSchema):
    """An association to create or change."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: Lifecycle | None = None
    frozen: bool | None = None
    schema_: SchemaBody | None = None
    normalize: bool | None = None


class OfResource(Model):
    """The base of bodies about one resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None


class ResourceChange(OfResource):
    """Associations of one resource to create or change."""

    associations: list[AssociationChange] | None = None


class AssociationOperation(AssociationChange):
    """One operation of a batch."""

    op_type: Operation
    cascade_lifecycle: bool | None = None


class ResourceOperations(OfResource):
    """The operations of a batch on one resource."""

    associations: list[AssociationOperation] | None = None


class AssociationBatch(Model):
    """Operations on several resources."""

    requests: list[ResourceOperations] | None = None


class AssociationQuery(OfResource):
    """A query for the associations of one resource, by its id or else by its name."""

    association_types: list[str] | None = None
    lifecycle: Lifecycle | None = None


class AssociationQueries(Model):
    """Queries for several resources."""

    requests: list[AssociationQuery] | None = None


class Association(Model):
    """An association as the registry returns it."""

    subject: str
    guid: str
    resource_name: str
    resource_namespace: str
    resource_id: str
    resource_type: str
    association_type: str
    lifecycle: Lifecycle
    frozen: bool
    create_ts: int
    update_ts: int


class AssociationInfo(WithSchema):
    """An association of a resource, with its schema if that was asked for."""

    subject: str
    association_type: str
    lifecycle: Lifecycle
    frozen: bool
    schema_: SchemaResponse | None = None


class ResourceResponse(OfResource):
    """The associations of one resource; none after a dry run."""

    associations: list[AssociationInfo] | None = None


class ErrorMessage(Model):
    """Why one part of a batch failed."""

    error_code: int
    message: str

    model_config = ConfigDict(alias_generator=None)


class AssociationResult(Model):
    """The result of one part of a batch."""

    error: ErrorMessage | None = None
    result: ResourceResponse | None = None


class AssociationResults(Model):
    """The results of a batch."""

    results: list[AssociationResult]
