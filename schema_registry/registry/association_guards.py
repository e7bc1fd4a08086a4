"""What associations forbid the registry: to be called in the transaction that deletes, with the subject locked."""

from sqlalchemy import Connection

from schema_registry.registry.association_rules import exists_for_subject, no_active_version
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import associations as store


def forbid_subject_deletion(connection: Connection, subject: SubjectName) -> None:
    """40904 when a subject is associated with anything; its associations must be deleted first."""
    if store.has_any(connection, subject.context, subject.name):
        raise exists_for_subject(subject.qualified)


def forbid_last_version_deletion(connection: Connection, subject: SubjectName, *, others_alive: bool) -> None:
    """40907 when an associated subject would be left without a version; `others_alive`: whether one would remain."""
    if not others_alive and store.has_any(connection, subject.context, subject.name):
        raise no_active_version(subject.qualified)
