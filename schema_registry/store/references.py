"""Who mentions a version."""

from sqlalchemy import ColumnElement, Connection, Select, and_, select

from schema_registry.store.paging import page
from schema_registry.store.tables import schema_references, versions


def referrers(
    connection: Connection, context: str, subject: str, version: int, *, deleted: bool, offset: int, limit: int
) -> list[int]:
    """Ids of schemas that mention a version; if not `deleted`, only those that some live version has."""
    found = _referrers(context, subject, deleted=deleted).where(schema_references.c.referenced_version == version)
    found = found.order_by(schema_references.c.schema_id)
    return [row.schema_id for row in connection.execute(page(found, offset=offset, limit=limit))]


def first_referenced(
    connection: Connection, context: str, subject: str, *, version: int | None, deleted: bool
) -> int | None:
    """A version that others mention: the one asked for, or any of the subject's (then mentions by itself are fine)."""
    table = schema_references.c
    found = select(table.referenced_version).join(versions, _user()).where(_target(context, subject))
    if not deleted:
        found = found.where(~versions.c.is_deleted)
    if version is not None:
        found = found.where(table.referenced_version == version)
    else:
        found = found.where(~and_(versions.c.context == context, versions.c.subject == subject))
    first: int | None = connection.execute(found.order_by(table.referenced_version).limit(1)).scalar()
    return first


def _referrers(context: str, subject: str, *, deleted: bool) -> Select[tuple[int]]:
    found = select(schema_references.c.schema_id).distinct().where(_target(context, subject))
    return found if deleted else found.join(versions, _user()).where(~versions.c.is_deleted)


def _target(context: str, subject: str) -> ColumnElement[bool]:
    table = schema_references.c
    return and_(table.referenced_context == context, table.referenced_subject == subject)


def _user() -> ColumnElement[bool]:
    table = schema_references.c
    return and_(versions.c.context == table.context, versions.c.schema_id == table.schema_id)
