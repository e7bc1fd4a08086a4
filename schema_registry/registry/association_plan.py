"""Plan the changes that a request makes to the existing associations, and check them before anything is written."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from schema_registry.models_associations import AssociationChange, Lifecycle
from schema_registry.registry import scopes
from schema_registry.registry.association_rules import (
    Resource,
    Wanted,
    check_types_differ,
    exists_for_resource,
    exists_for_subject,
    frozen,
    invalid,
    no_active_version,
    strong_exists,
    wanted_by_create,
    wanted_by_upsert,
    weak_is_frozen,
)
from schema_registry.registry.subject_names import SubjectName, parse_beside, parse_for_write
from schema_registry.store import associations as store
from schema_registry.store import subjects
from schema_registry.store.associations import Filter, StoredAssociation


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """An association as it will be, and as it was."""

    wanted: Wanted
    subject: SubjectName
    lifecycle: Lifecycle
    is_frozen: bool
    is_importing: bool
    """Whether the subject is in an import mode, in which its schema is not registered here."""
    old: StoredAssociation | None

    @property
    def is_unchanged(self) -> bool:
        """Whether the association exists already, exactly like this."""
        return (
            self.old is not None
            and self.subject == subject_of(self.old)
            and self.lifecycle == self.old.lifecycle
            and self.is_frozen == self.old.is_frozen
        )


def plan(
    connection: Connection, resource: Resource, changes: Sequence[AssociationChange], *, context: str, create_only: bool
) -> list[Planned]:
    """Complete the requested associations from the existing ones; refuses what the resource's own ones forbid."""
    existing = {}
    if resource.id is not None:
        found = store.of_resource(connection, resource.id, Filter(resource_type=resource.type))
        existing = {association.association_type: association for association in found}
    planned = []
    for change in changes:
        old = existing.get(change.association_type or "value")
        if create_only:
            wanted = wanted_by_create(change, resource)
        else:
            wanted = wanted_by_upsert(change, resource, exists=old is not None)
        planned.append(_plan_one(connection, wanted, _subject(wanted, resource, old, context=context), old))
    check_types_differ([association.wanted for association in planned])
    for association in planned:
        if association.old is not None and not association.is_unchanged:
            _check_change(association, association.old, create_only=create_only)
    types = {association.wanted.association_type for association in planned}
    others = [association.is_frozen for kind, association in existing.items() if kind not in types]
    if len({*others, *(association.is_frozen for association in planned)}) > 1:
        raise invalid("frozen", "all associations for a resource must be consistently frozen or non-frozen")
    return planned


def check_subjects(connection: Connection, planned: Sequence[Planned], *, are_registered: bool) -> None:
    """Refuse what the subjects forbid; `are_registered` says whether the request's schemas are registered by now."""
    for association in planned:
        has_versions = subjects.exists(connection, *association.subject.key, deleted=False)
        if association.wanted.schema is None and not has_versions:
            raise no_active_version(association.subject.qualified)
        if association.old is None and association.is_frozen and has_versions and not are_registered:
            reason = "cannot create a frozen association when schemas already exist in the subject"
            raise invalid("frozen", reason)
        others = _other_lifecycles(connection, association, planned)
        if association.lifecycle is Lifecycle.STRONG and others:
            raise exists_for_subject(association.subject.qualified)
        if Lifecycle.STRONG in others:
            raise strong_exists(association.subject.qualified)


def _plan_one(connection: Connection, wanted: Wanted, subject: SubjectName, old: StoredAssociation | None) -> Planned:
    subject = scopes.follow_alias(connection, subject)
    scopes.refuse_read_only(connection, subject)
    return Planned(
        wanted=wanted,
        subject=subject,
        lifecycle=wanted.lifecycle or Lifecycle(old.lifecycle if old else Lifecycle.WEAK),
        is_frozen=bool(old and old.is_frozen) if wanted.is_frozen is None else wanted.is_frozen,
        is_importing=scopes.effective_mode(connection, subject).is_import,
        old=old,
    )


def _subject(wanted: Wanted, resource: Resource, old: StoredAssociation | None, *, context: str) -> SubjectName:
    if wanted.subject is not None:
        return parse_for_write(parse_beside(SubjectName(context, ""), wanted.subject).qualified)
    if old is not None:
        return subject_of(old)
    return parse_for_write(resource.default_subject(wanted.association_type))


def _check_change(new: Planned, old: StoredAssociation, *, create_only: bool) -> None:
    if create_only:
        raise exists_for_resource(old.association_type, old.resource_name)
    if new.subject != subject_of(old):
        raise invalid("subject", "subject of association cannot be changed")
    if new.is_frozen and new.lifecycle is Lifecycle.WEAK and not old.is_frozen:
        raise weak_is_frozen()
    if new.is_frozen != old.is_frozen:
        raise invalid("frozen", "frozen attribute of association cannot be changed")
    if old.is_frozen:
        raise frozen(old.association_type, new.subject.qualified)


def _other_lifecycles(connection: Connection, association: Planned, planned: Sequence[Planned]) -> list[str]:
    """The lifecycles of the other associations, existing or planned, with the same subject."""
    replaced = {other.old.guid for other in planned if other.old is not None}
    existing = store.of_subject(connection, *association.subject.key)
    beside = [other for other in planned if other is not association and other.subject == association.subject]
    return [other.lifecycle for other in existing if other.guid not in replaced] + [other.lifecycle for other in beside]


def subject_of(association: StoredAssociation) -> SubjectName:
    """The subject of an association."""
    return SubjectName(association.context, association.subject)
