"""Delete versions and subjects: softly first, which hides them, then permanently."""

from sqlalchemy import Connection

from schema_registry.errors import (
    not_permitted,
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from schema_registry.registry import lookups, scopes
from schema_registry.registry.association_rules import exists_for_subject, no_active_version
from schema_registry.registry.scopes import TOP, Mode
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import associations, references, subjects, versions
from schema_registry.store import scopes as scope_rows
from schema_registry.store.subjects import DeletionFilter


def delete_version(connection: Connection, subject: SubjectName, number: int, *, permanent: bool) -> int:
    """Hide a version, or remove a hidden one permanently; returns its number."""
    if not subjects.lock(connection, *subject.key):
        raise subject_not_found(subject.qualified)
    found = lookups.find_version(connection, subject, number, deleted=True)
    if found is None:
        raise version_not_found(number)
    version = found.version
    if found.is_deleted and not permanent:
        raise version_soft_deleted(subject.qualified, version)
    scopes.refuse_read_only(connection, subject)
    _refuse_referenced(connection, subject, version, permanent=permanent)
    if permanent:
        if not found.is_deleted:
            raise version_not_soft_deleted(subject.qualified, version)
        versions.remove(connection, *subject.key, version)
    else:
        alive = versions.numbers(connection, *subject.key, which=DeletionFilter.ALIVE, limit=2)
        # An associated subject must keep a version; the subject is locked, so no association can be added meanwhile.
        if len(alive) == 1 and associations.has_any(connection, *subject.key):
            raise no_active_version(subject.qualified)
        versions.mark_deleted(connection, *subject.key, version)
    _refresh_subject(connection, subject)
    return version


def delete_subject(connection: Connection, subject: SubjectName, *, permanent: bool) -> list[int]:
    """Hide all versions of a subject, or remove them permanently if all are hidden; returns their numbers."""
    if not subjects.lock(connection, *subject.key):
        raise subject_not_found(subject.qualified)
    which = DeletionFilter.ALL if permanent else DeletionFilter.ALIVE
    found = versions.numbers(connection, *subject.key, which=which)
    if not found:
        raise subject_soft_deleted(subject.qualified)
    scopes.refuse_read_only(connection, subject)
    if associations.has_any(connection, *subject.key):
        raise exists_for_subject(subject.qualified)
    _refuse_referenced(connection, subject, None, permanent=permanent)
    if permanent:
        if not all(is_deleted for _, is_deleted in found):
            raise subject_not_soft_deleted(subject.qualified)
        versions.remove(connection, *subject.key, None)
    else:
        versions.mark_deleted(connection, *subject.key, None)
    _refresh_subject(connection, subject)
    return [number for number, _ in found]


def set_mode(connection: Connection, subject: SubjectName | None, mode: Mode, *, force: bool) -> None:
    """Change a mode. An import needs an empty scope: hidden versions are removed, others make it fail."""
    scope = subject or TOP
    if mode is Mode.IMPORT and not force and not scopes.effective_mode(connection, scope).is_import:
        if subject is not None and subject.name:
            keys = [subject.key]
        else:
            keys = subjects.all_in(connection, None if subject is None else subject.context)
        _clear(connection, [SubjectName(*key) for key in keys])
    scope_rows.write_mode(connection, scope.key, mode)


def _clear(connection: Connection, cleared: list[SubjectName]) -> None:
    """Remove subjects whose versions are all hidden."""
    for subject in cleared:
        if not subjects.lock(connection, *subject.key):
            continue
        if subjects.exists(connection, *subject.key, deleted=False):
            raise not_permitted("Cannot import since found existing subjects")
        versions.remove(connection, *subject.key, None)
        subjects.refresh(connection, *subject.key)
    # Checked last, because subjects that are cleared together may reference each other.
    for subject in cleared:
        _refuse_referenced(connection, subject, None, permanent=True)


def _refuse_referenced(connection: Connection, subject: SubjectName, version: int | None, *, permanent: bool) -> None:
    """Raise 42206 if other schemas reference the version.

    Hidden schemas count for a permanent delete: without what they reference, their records would be unreadable.
    """
    referenced = references.first_referenced(connection, *subject.key, version=version, deleted=permanent)
    if referenced is not None:
        raise reference_exists(subject.qualified, referenced)


def _refresh_subject(connection: Connection, subject: SubjectName) -> None:
    """Update the subject's row. Its config and mode survive soft deletes, and go with its last version."""
    if not subjects.refresh(connection, *subject.key):
        scope_rows.remove_config(connection, subject.key)
        scope_rows.remove_mode(connection, subject.key)
