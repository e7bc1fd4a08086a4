"""The references that lead to a version."""

from sqlalchemy import ColumnElement, Connection, and_, select

from schema_registry.store.paging import page
from schema_registry.store.tables import schema_references, versions


def referrers(
    connection: Connection, context: str, subject: str, version: int, *, deleted: bool, offset: int, limit: int
) -> list[int]:
    """Ids of the schemas that reference a version; without `deleted` only those that a version still has."""
    found = select(schema_references.c.schema_id).distinct().where(_target(context, subject))
    if not deleted:
        found = found.join(versions, _referring_version()).where(~versions.c.is_deleted)
    found = found.where(schema_references.c.referenced_version == version).order_by(schema_references.c.schema_id)
    return [row.schema_id for row in connection.execute(page(found, offset=offset, limit=limit))]


def referring_subjects(
    connection: Connection, context: str, subject: str, version: int, *, deleted: bool
) -> list[tuple[int, str, str]]:
    """The schemas that reference a version, each with the contexts and subjects that have it."""
    columns = (schema_references.c.schema_id, versions.c.context, versions.c.subject)
    found = select(*columns).distinct().join(versions, _referring_version()).where(_target(context, subject))
    if not deleted:
        found = found.where(~versions.c.is_deleted)
    found = found.where(schema_references.c.referenced_version == version).order_by(*columns)
    return [(row.schema_id, row.context, row.subject) for row in connection.execute(found)]


def first_referenced(
    connection: Connection, context: str, subject: str, *, version: int | None, deleted: bool
) -> int | None:
    """A version that other schemas reference: `version`, or any of the subject, whose own references do not count."""
    table = schema_references.c
    found = select(table.referenced_version).join(versions, _referring_version()).where(_target(context, subject))
    if not deleted:
        found = found.where(~versions.c.is_deleted)
    if version is not None:
        found = found.where(table.referenced_version == version)
    else:
        found = found.where(~and_(versions.c.context == context, versions.c.subject == subject))
    first: int | None = connection.execute(found.order_by(table.referenced_version).limit(1)).scalar()
    return first


def _target(context: str, subject: str) -> ColumnElement[bool]:
    table = schema_references.c
    return and_(table.referenced_context == context, table.referenced_subject == subject)


def _referring_version() -> ColumnElement[bool]:
    table = schema_references.c
    return and_(versions.c.context == table.context, versions.c.schema_id == table.schema_id)
