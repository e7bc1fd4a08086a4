"""The rules of associations, and the errors of those that are refused.

A subject has either one strong association or any number of weak ones. A frozen association keeps the schema that it
was created with: it is strong, and its subject is named after the resource.
"""

from collections.abc import Sequence

import msgspec

from schema_registry.errors import RegistryError
from schema_registry.models import SchemaBody
from schema_registry.models_associations import (
    AssociationChange,
    AssociationInfo,
    Lifecycle,
    OfResource,
    ResourceResponse,
)

TOPIC = "topic"
TYPES = ("key", "value")
_MAX_CHARACTERS = 256


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that can be associated with subjects: a topic of a cluster."""

    name: str
    namespace: str
    id: str | None
    """None only in dry runs."""
    type: str

    def describe(self, associations: Sequence[AssociationInfo] = ()) -> ResourceResponse:
        """The resource with its associations, as the registry returns it."""
        return ResourceResponse(
            resource_name=self.name,
            resource_namespace=self.namespace,
            resource_id=self.id,
            resource_type=self.type,
            associations=list(associations) or None,
        )

    def default_subject(self, association_type: str) -> str:
        """The subject of an association that names none."""
        return f":.{self.namespace}:{self.name}-{association_type}"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A requested association with its implied values; None keeps the value of the existing one."""

    subject: str | None
    association_type: str
    lifecycle: Lifecycle | None
    is_frozen: bool | None
    schema: SchemaBody | None
    normalize: bool


# --- rules ---


def check_resource(body: OfResource, *, dry_run: bool) -> Resource:
    """The resource of a request, if its values are valid."""
    resource_id, checked_type = body.resource_id, body.resource_type or TOPIC
    name = _check_name("resourceName", body.resource_name)
    namespace = _check_name("resourceNamespace", body.resource_namespace)
    if not resource_id and not dry_run:
        raise invalid("resourceId", "cannot be null or empty")
    if resource_id and (len(resource_id) > _MAX_CHARACTERS or not resource_id.isprintable()):
        raise invalid("resourceId", f"must have at most {_MAX_CHARACTERS} characters, all of them printable")
    if checked_type != TOPIC:
        raise invalid("resourceType", f"must be '{TOPIC}'")
    return Resource(name=name, namespace=namespace, id=resource_id or None, type=checked_type)


def check_association_type(association_type: str | None) -> str:
    """`key` or `value`, which is the default."""
    if association_type and association_type not in TYPES:
        raise invalid("associationType", "must be either 'key' or 'value'")
    return association_type or "value"


def wanted_by_create(change: AssociationChange, resource: Resource) -> Wanted:
    """A new association: frozen if it has a schema, otherwise weak by default."""
    if change.schema_ is not None:
        if change.lifecycle is Lifecycle.WEAK:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided for create")
        if change.frozen is False:
            raise invalid("frozen", "cannot be false when schema is provided for create")
        return _check_subject_rules(_to_wanted(change, lifecycle=Lifecycle.STRONG, is_frozen=True), resource)
    if change.frozen:
        if change.lifecycle is Lifecycle.WEAK:
            raise weak_is_frozen()
        raise invalid("schema", "schema must be provided when creating a frozen association")
    wanted = _to_wanted(change, lifecycle=change.lifecycle or Lifecycle.WEAK, is_frozen=False)
    return _check_subject_rules(wanted, resource)


def wanted_by_upsert(change: AssociationChange, resource: Resource, *, exists: bool) -> Wanted:
    """A new or changed association: a changed one keeps the values that are not given."""
    if change.lifecycle is Lifecycle.WEAK:
        if change.schema_ is not None:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if change.frozen:
            raise weak_is_frozen()
    if exists:
        wanted = _to_wanted(change, lifecycle=change.lifecycle, is_frozen=change.frozen)
        return _check_subject_rules(wanted, resource, exists=True)
    if change.frozen and change.schema_ is None:
        raise invalid("schema", "schema must be provided when creating a frozen association")
    implied = Lifecycle.STRONG if change.schema_ is not None else Lifecycle.WEAK
    wanted = _to_wanted(change, lifecycle=change.lifecycle or implied, is_frozen=bool(change.frozen))
    return _check_subject_rules(wanted, resource)


def check_types_differ(wanted: list[Wanted]) -> None:
    """Refuse two associations of the same type for one resource."""
    seen: set[str] = set()
    for association in wanted:
        if association.association_type in seen:
            raise invalid("associationType", f"Duplicate association type: {association.association_type}")
        seen.add(association.association_type)


def _to_wanted(change: AssociationChange, *, lifecycle: Lifecycle | None, is_frozen: bool | None) -> Wanted:
    subject = change.subject
    if subject is not None and (not subject or any(ord(character) < 32 for character in subject)):
        raise invalid("subject", "must not be empty")
    return Wanted(
        subject=subject,
        association_type=check_association_type(change.association_type),
        lifecycle=lifecycle,
        is_frozen=is_frozen,
        schema=change.schema_,
        normalize=bool(change.normalize),
    )


def _check_subject_rules(wanted: Wanted, resource: Resource, *, exists: bool = False) -> Wanted:
    default = resource.default_subject(wanted.association_type)
    if wanted.is_frozen and wanted.subject not in (None, default):
        raise invalid("subject", f"frozen associations must use subject '{default}'")
    is_defaulted = wanted.subject == default or (wanted.subject is None and not exists)
    if wanted.lifecycle is Lifecycle.WEAK and is_defaulted:
        raise invalid("subject", f"must be provided for WEAK associations, and not as '{default}'")
    return wanted


def _check_name(field: str, name: str | None) -> str:
    if not name:
        raise invalid(field, "cannot be null or empty")
    if len(name) > _MAX_CHARACTERS:
        raise invalid(field, f"exceeds max length of {_MAX_CHARACTERS}")
    for character in name:
        # Names of Kafka topics may contain dots.
        if not (character.isalnum() or character in "_-."):
            raise invalid(field, f"illegal character {character!r}")
    return name


# --- errors ---


def not_found(resource: str) -> RegistryError:
    """The resource has no such association."""
    return RegistryError(40410, f"Association for '{resource}' not found.")


def too_many(maximum: int) -> RegistryError:
    """The registry has as many associations as it may have."""
    return RegistryError(40902, f"A maximum of {maximum} associations already exist")


def exists_for_resource(association_type: str, resource: str) -> RegistryError:
    """The resource has another association of that type."""
    message = f"An association of type '{association_type}' already exists for resource '{resource}'"
    return RegistryError(40903, message)


def exists_for_subject(subject: str) -> RegistryError:
    """A subject cannot be associated strongly, or deleted, because it has associations."""
    return RegistryError(40904, f"An association already exists for subject '{subject}'")


def strong_exists(subject: str) -> RegistryError:
    """The subject has a strong association with another resource."""
    return RegistryError(40905, f"A strong association already exists for subject '{subject}'")


def no_active_version(subject: str) -> RegistryError:
    """An associated subject has no version that is not deleted, or would lose the last one."""
    return RegistryError(40907, f"No active (non-deleted) version exists for subject '{subject}'")


def frozen(association_type: str, subject: str) -> RegistryError:
    """The association is frozen and must not change."""
    return RegistryError(40908, f"The association of type '{association_type}' is frozen for subject '{subject}'")


def invalid(field: str, reason: str) -> RegistryError:
    """A property has an invalid value."""
    return RegistryError(42212, f"The association specified an invalid value for property: '{field}', reason: {reason}")


def weak_is_frozen() -> RegistryError:
    """Only strong associations can be frozen."""
    return invalid("frozen", "association with lifecycle of WEAK cannot be frozen")


def batch_too_large(maximum: int) -> RegistryError:
    """A batch has too many associations."""
    return RegistryError(42213, f"Associations batch request exceeds the limit of {maximum} associations")
