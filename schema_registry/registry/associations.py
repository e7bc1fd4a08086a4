"""Associations: the subjects that have the schemas of a topic's keys and values.

A strong association ties a subject to one topic: deleting it may delete the subject. Schemas are registered before the
association is written, each in a transaction of its own; the checks run before that and, under lock, again after it.
"""

import copy
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection

from core_broker.service.clock import Clock
from core_broker.web_access.rules import Operation
from schema_registry.errors import RegistryError, incompatible
from schema_registry.models import SchemaBody, SchemaResponse
from schema_registry.models_associations import (
    Association,
    AssociationInfo,
    Lifecycle,
    ResourceChange,
    ResourceResponse,
)
from schema_registry.registry import deletes, scopes
from schema_registry.registry.access import EVERYTHING, Access
from schema_registry.registry.association_plan import Planned, check_subjects, plan, subject_of
from schema_registry.registry.association_rules import (
    TOPIC,
    Resource,
    check_resource,
    exists_for_resource,
    frozen,
    invalid,
    not_found,
    too_many,
)
from schema_registry.registry.listings import page
from schema_registry.registry.registry import Registry
from schema_registry.registry.subject_names import SubjectName, context_name, is_storable, parse
from schema_registry.store import associations as store
from schema_registry.store import subjects
from schema_registry.store.associations import Filter, StoredAssociation
from schema_registry.store.contexts import DEFAULT
from schema_registry.store.database import Database

T = TypeVar("T")

ANY_NAMESPACE = "-"


class Associations:
    """All associations. Thread-safe."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        schemas: Registry,
        max_associations: int = 100_000,
        on_subjects_removed: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_subjects_removed` is called after subjects were deleted permanently with their associations."""
        self._database = database
        self._clock = clock
        self._schemas = schemas
        self._max_associations = max_associations
        self._on_subjects_removed = on_subjects_removed
        self._access = EVERYTHING

    def seen_by(self, access: Access) -> "Associations":
        """The same associations, for a caller that may use some subjects."""
        limited = copy.copy(self)
        limited._access = access  # noqa: SLF001 - of the same class
        limited._schemas = self._schemas.seen_by(access)  # noqa: SLF001 - of the same class
        return limited

    # --- reading ---

    def of_subject(self, subject: str, wanted: Filter) -> list[Association]:
        """The associations of a subject."""
        return self._find(
            lambda connection, some: store.of_subject(connection, *parse(subject).key, some), subject, wanted
        )

    def of_resource(self, resource_id: str, wanted: Filter) -> list[Association]:
        """The associations of a resource by its id."""
        return self._find(
            lambda connection, some: store.of_resource(connection, resource_id, some), resource_id, wanted
        )

    def of_name(self, name: str, namespace: str | None, wanted: Filter) -> list[Association]:
        """The associations of resources by their name; `-` or None means every namespace."""
        one_namespace = None if namespace == ANY_NAMESPACE else namespace
        text = f"{namespace}/{name}"
        return self._find(lambda connection, some: store.of_name(connection, name, one_namespace, some), text, wanted)

    def latest_schema(self, subject: str) -> SchemaResponse | None:
        """The latest schema of an associated subject."""
        return _or_none(lambda: self._schemas.version(subject, "latest"))

    # --- writing ---

    def create(self, change: ResourceChange, *, context: str | None = None, dry_run: bool = False) -> ResourceResponse:
        """Associate a resource with subjects; an existing association may be repeated, but not changed."""
        return self._change(change, context=context, dry_run=dry_run, create_only=True)

    def upsert(self, change: ResourceChange, *, context: str | None = None, dry_run: bool = False) -> ResourceResponse:
        """Associate a resource with subjects, or change how it is associated."""
        return self._change(change, context=context, dry_run=dry_run, create_only=False)

    def delete(
        self,
        resource_id: str,
        *,
        resource_type: str | None = None,
        association_types: Sequence[str] = (),
        cascade: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Delete associations of a resource, with `cascade` also the subjects that belong to it alone."""
        self._access.require_whole(Operation.DELETE)
        wanted = Filter(resource_type=resource_type or TOPIC, association_types=association_types)
        if not self.of_resource(resource_id, wanted):
            raise not_found(resource_id)

        def work(connection: Connection) -> bool:
            found = store.of_resource(connection, resource_id, wanted)
            if not found:
                raise not_found(resource_id)
            for association in found:
                self._access.require(Operation.DELETE if cascade else Operation.WRITE, subject_of(association))
                scopes.refuse_read_only(connection, subject_of(association))
                if association.is_frozen and not cascade:
                    raise frozen(association.association_type, subject_of(association).qualified)
            if dry_run:
                return False
            store.remove(connection, found)
            strong = [subject_of(association) for association in found if association.lifecycle == Lifecycle.STRONG]
            removed = [_delete_subject(connection, subject) for subject in sorted(strong)] if cascade else []
            return any(removed)

        if self._database.write(work):
            self._on_subjects_removed()

    def _find(
        self, find: Callable[[Connection, Filter], list[StoredAssociation]], text: str, wanted: Filter
    ) -> list[Association]:
        """The result of a query; texts that no database can store match nothing."""
        if not all(map(is_storable, [text, wanted.resource_type or "", *wanted.association_types])):
            return []
        with self._database.read() as connection:
            found = find(connection, replace(wanted, offset=0, limit=-1) if self._access.is_limited else wanted)
        if self._access.is_limited:
            visible = (one for one in found if self._access.allows(Operation.DESCRIBE, subject_of(one)))
            found = page(visible, offset=wanted.offset, limit=wanted.limit)
        return [_to_model(association) for association in found]

    def _change(
        self, change: ResourceChange, *, context: str | None, dry_run: bool, create_only: bool
    ) -> ResourceResponse:
        resource = check_resource(change, dry_run=dry_run)
        if not change.associations:
            raise invalid("associations", "cannot be null or empty")
        changes = change.associations
        default_context = context_name(context) if context else DEFAULT

        def plan_changes(connection: Connection, *, are_registered: bool) -> list[Planned]:
            found = plan(connection, resource, changes, context=default_context, create_only=create_only)
            for association in found:
                self._access.require(Operation.WRITE, association.subject)
            check_subjects(connection, found, are_registered=are_registered)
            return found

        with self._database.read() as connection:
            planned = plan_changes(connection, are_registered=False)
        for association in planned:
            self._check_schema(association, create_only=create_only)
        registered: dict[str, SchemaResponse] = {}
        written: list[StoredAssociation] = []
        if not dry_run:
            registered = self._register(planned)

            def work(connection: Connection) -> list[StoredAssociation]:
                for key in sorted({association.subject.key for association in planned}):
                    subjects.lock(connection, *key)
                return self._store(connection, resource, plan_changes(connection, are_registered=True))

            written = self._database.write(work)
        return resource.describe([_to_info(stored, registered.get(stored.association_type)) for stored in written])

    def _store(self, connection: Connection, resource: Resource, planned: Sequence[Planned]) -> list[StoredAssociation]:
        new = sum(association.old is None for association in planned)
        if new and store.count(connection) + new > self._max_associations:
            raise too_many(self._max_associations)
        written = [_to_stored(association, resource, self._clock.now_ms()) for association in planned]
        for association, stored in zip(planned, written, strict=True):
            if not association.is_unchanged:
                store.put(connection, stored)
        return written

    def _register(self, planned: Sequence[Planned]) -> dict[str, SchemaResponse]:
        registered = {}
        for association in planned:
            wanted, subject = association.wanted, association.subject
            if wanted.schema is not None and not association.is_importing:
                schema = self._schemas.register(subject.qualified, wanted.schema, normalize=wanted.normalize)
                registered[wanted.association_type] = schema
        return registered

    def _check_schema(self, association: Planned, *, create_only: bool) -> None:
        """Refuse a schema that cannot be registered, before any schema of the request is."""
        subject, wanted = association.subject.qualified, association.wanted
        schema = wanted.schema
        if schema is None:
            return
        if association.old is not None and (create_only or association.old.is_frozen):
            self._check_registered(association, association.old, schema, create_only=create_only)
        if not self._schemas.check(subject, None, schema, normalize=wanted.normalize, verbose=False).is_compatible:
            checked = self._schemas.check(subject, None, schema, normalize=wanted.normalize, verbose=True)
            raise incompatible(subject, checked.messages or [])

    def _check_registered(
        self, association: Planned, old: StoredAssociation, schema: SchemaBody, *, create_only: bool
    ) -> None:
        """Refuse a new schema for an association that must not change."""
        subject, wanted = association.subject.qualified, association.wanted
        known = _or_none(lambda: self._schemas.look_up(subject, schema, normalize=wanted.normalize))
        if known is not None and known.subject == subject:
            return
        if create_only:
            raise exists_for_resource(wanted.association_type, old.resource_name)
        raise frozen(wanted.association_type, subject)


def _to_model(association: StoredAssociation) -> Association:
    return Association(
        subject=subject_of(association).qualified,
        guid=association.guid,
        resource_name=association.resource_name,
        resource_namespace=association.resource_namespace,
        resource_id=association.resource_id,
        resource_type=association.resource_type,
        association_type=association.association_type,
        lifecycle=Lifecycle(association.lifecycle),
        frozen=association.is_frozen,
        create_ts=association.created_ms,
        update_ts=association.updated_ms,
    )


def _to_info(association: StoredAssociation, schema: SchemaResponse | None) -> AssociationInfo:
    return AssociationInfo(
        subject=subject_of(association).qualified,
        association_type=association.association_type,
        lifecycle=Lifecycle(association.lifecycle),
        frozen=association.is_frozen,
        schema_=schema,
    )


def _to_stored(association: Planned, resource: Resource, now_ms: int) -> StoredAssociation:
    old = association.old
    return StoredAssociation(
        guid=old.guid if old else str(uuid.uuid4()),
        resource_name=old.resource_name if old else resource.name,
        resource_namespace=old.resource_namespace if old else resource.namespace,
        resource_id=old.resource_id if old else resource.id or "",
        resource_type=resource.type,
        association_type=association.wanted.association_type,
        context=association.subject.context,
        subject=association.subject.name,
        lifecycle=association.lifecycle,
        is_frozen=association.is_frozen,
        created_ms=old.created_ms if old else now_ms,
        updated_ms=now_ms,
    )


def _delete_subject(connection: Connection, subject: SubjectName) -> bool:
    """Delete a subject permanently; subjects in an import mode are left alone, and the result is False."""
    if scopes.effective_mode(connection, subject).is_import:
        return False
    if subjects.exists(connection, *subject.key, deleted=False):
        deletes.delete_subject(connection, subject, permanent=False)
    if subjects.exists(connection, *subject.key, deleted=True):
        deletes.delete_subject(connection, subject, permanent=True)
    return True


def _or_none(ask: Callable[[], T]) -> T | None:
    """The result of a call to the registry, or None if it finds nothing (404)."""
    try:
        return ask()
    except RegistryError as error:
        if error.status == 404:
            return None
        raise
