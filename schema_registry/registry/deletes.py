"""Deleting versions and subjects: softly at first, which hides them; then for good."""

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
from schema_registry.registry import association_guards, lookups, scopes
from schema_registry.registry.scopes import TOP, Mode
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import references, subjects, versions
from schema_registry.store import scopes as scope_rows
from schema_registry.store.subjects import Kind


def delete_version(connection: Connection, subject: SubjectName, number: int, *, permanent: bool) -> int:
    """Hide a version, or forget one that is hidden; returns its number."""
    if not subjects.lock(connection, *subject.key):
        raise subject_not_found(subject.qualified)
    found = lookups.version(connection, subject, number, deleted=True)
    if found is None:
        raise version_not_found(number)
    version = found.version
    if found.is_deleted and not permanent:
        raise version_soft_deleted(subject.qualified, version)
    scopes.refuse_read_only(connection, subject)
    _refuse_mentioned(connection, subject, version, permanent=permanent)
    if permanent:
        if not found.is_deleted:
            raise version_not_soft_deleted(subject.qualified, version)
        versions.remove(connection, *subject.key, version)
    else:
        others = versions.numbers(connection, *subject.key, kind=Kind.ALIVE, limit=2)
        association_guards.forbid_last_version_deletion(connection, subject, others_alive=len(others) > 1)
        versions.mark_deleted(connection, *subject.key, version)
    _tidy(connection, subject)
    return version


def delete_subject(connection: Connection, subject: SubjectName, *, permanent: bool) -> list[int]:
    """Hide all versions of a subject, or forget them when all are hidden; returns their numbers."""
    if not subjects.lock(connection, *subject.key):
        raise subject_not_found(subject.qualified)
    kind = Kind.ALL if permanent else Kind.ALIVE
    found = versions.numbers(connection, *subject.key, kind=kind)
    if not found:
        raise subject_soft_deleted(subject.qualified)
    scopes.refuse_read_only(connection, subject)
    association_guards.forbid_subject_deletion(connection, subject)
    _refuse_mentioned(connection, subject, None, permanent=permanent)
    if permanent:
        if not all(is_deleted for _, is_deleted in found):
            raise subject_not_soft_deleted(subject.qualified)
        versions.remove(connection, *subject.key, None)
    else:
        versions.mark_deleted(connection, *subject.key, None)
    _tidy(connection, subject)
    return [number for number, _ in found]


def set_mode(connection: Connection, subject: SubjectName | None, mode: Mode, *, force: bool) -> None:
    """Change a mode. An import begins with an empty scope: what is hidden there goes, what is not stands in the way."""
    scope = subject or TOP
    if mode is Mode.IMPORT and not force and not scopes.mode_in_scope(connection, scope).is_import:
        _clear(connection, [SubjectName(*key) for key in _in_scope(connection, subject)])
    scope_rows.write_mode(connection, scope.key, mode)


def _in_scope(connection: Connection, subject: SubjectName | None) -> list[tuple[str, str]]:
    if subject is None:
        return subjects.all_in(connection, None)
    if not subject.name:
        return [*subjects.all_in(connection, subject.context)]
    return [subject.key]


def _clear(connection: Connection, cleared: list[SubjectName]) -> None:
    """Forget subjects whose versions are all hidden."""
    for subject in cleared:
        if not subjects.lock(connection, *subject.key):
            continue
        if subjects.exists(connection, *subject.key, deleted=False):
            raise not_permitted("Cannot import since found existing subjects")
        versions.remove(connection, *subject.key, None)
        subjects.refresh(connection, *subject.key)
    # Only now: subjects that are cleared together may mention each other.
    for subject in cleared:
        _refuse_mentioned(connection, subject, None, permanent=True)


def _refuse_mentioned(connection: Connection, subject: SubjectName, version: int | None, *, permanent: bool) -> None:
    """42206 while others mention it: for good, also hidden ones, whose records could not be read any more."""
    mentioned = references.first_referenced(connection, *subject.key, version=version, deleted=permanent)
    if mentioned is not None:
        raise reference_exists(subject.qualified, mentioned)


def _tidy(connection: Connection, subject: SubjectName) -> None:
    """Keep the subject's row true. What was set for a subject outlives soft deletes, and goes with its last version."""
    if not subjects.refresh(connection, *subject.key):
        scope_rows.remove_config(connection, subject.key)
        scope_rows.remove_mode(connection, subject.key)
