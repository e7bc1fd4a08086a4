"""The bodies about associations, by the names that Confluent's clients send and read."""

from enum import StrEnum

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from schema_registry.models import Model, SchemaAnswer, SchemaBody


class Lifecycle(StrEnum):
    """Whether a subject lives and dies with its resource."""

    STRONG = "STRONG"
    WEAK = "WEAK"


class Operation(StrEnum):
    """What is done with an association in a batch."""

    CREATE = "CREATE"
    UPSERT = "UPSERT"
    DELETE = "DELETE"


class WithSchema(Model):
    """What bodies with a property `schema` share; Python's models have a method of that name."""

    model_config = ConfigDict(alias_generator=lambda name: "schema" if name == "schema_" else to_camel(name))


class AssociationChange(WithSchema):
    """An association as a client asks for it."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: Lifecycle | None = None
    frozen: bool | None = None
    schema_: SchemaBody | None = None
    normalize: bool | None = None


class ResourceChange(Model):
    """Associations of one resource as a client asks for them."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationChange] | None = None


class AssociationOperation(AssociationChange):
    """One step of a batch."""

    op_type: Operation
    cascade_lifecycle: bool | None = None


class ResourceOperations(Model):
    """The steps of a batch for one resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationOperation] | None = None


class AssociationBatch(Model):
    """Steps for several resources."""

    requests: list[ResourceOperations] | None = None


class AssociationQuery(Model):
    """Which associations of one resource are asked for, by its id or else by its name."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    association_types: list[str] | None = None
    lifecycle: Lifecycle | None = None


class AssociationQueries(Model):
    """Questions about several resources."""

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
    """An association among those of one resource, with its schema where that is told."""

    subject: str
    association_type: str
    lifecycle: Lifecycle
    frozen: bool
    schema_: SchemaAnswer | None = None


class ResourceAnswer(Model):
    """The associations of one resource; none after a dry run."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None


class ErrorMessage(Model):
    """Why one part of a batch failed."""

    error_code: int
    message: str

    model_config = ConfigDict(alias_generator=None)


class AssociationResult(Model):
    """What became of one part of a batch."""

    error: ErrorMessage | None = None
    result: ResourceAnswer | None = None


class AssociationResults(Model):
    """What became of a batch."""

    results: list[AssociationResult]
