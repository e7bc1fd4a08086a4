"""Associations in SQL: plain reads and writes; the rules are in the registry package."""

from collections.abc import Iterable, Sequence

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, update

from schema_registry.store.paging import page
from schema_registry.store.tables import associations

ORDER = (
    associations.c.resource_name,
    associations.c.resource_namespace,
    associations.c.resource_type,
    associations.c.association_type,
    associations.c.context,
    associations.c.subject,
)


class StoredAssociation(msgspec.Struct, frozen=True, kw_only=True):
    """A subject that holds the schemas of a resource's keys or values."""

    guid: str
    resource_name: str
    resource_namespace: str
    resource_id: str
    resource_type: str
    association_type: str
    context: str
    subject: str
    lifecycle: str
    is_frozen: bool
    created_ms: int
    updated_ms: int


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects associations of a subject or a resource; a field that is not set matches everything."""

    resource_type: str | None = None
    association_types: Sequence[str] = ()
    lifecycle: str | None = None
    offset: int = 0
    limit: int = -1


EVERYTHING = Filter()


def of_subject(
    connection: Connection, context: str, subject: str, wanted: Filter = EVERYTHING
) -> list[StoredAssociation]:
    """The associations of a subject."""
    return _select(connection, [associations.c.context == context, associations.c.subject == subject], wanted)


def of_resource(connection: Connection, resource_id: str, wanted: Filter = EVERYTHING) -> list[StoredAssociation]:
    """The associations of a resource."""
    return _select(connection, [associations.c.resource_id == resource_id], wanted)


def of_name(
    connection: Connection, resource_name: str, namespace: str | None, wanted: Filter = EVERYTHING
) -> list[StoredAssociation]:
    """The associations of resources with this name, in one namespace or (None) in all."""
    conditions = [associations.c.resource_name == resource_name]
    if namespace is not None:
        conditions.append(associations.c.resource_namespace == namespace)
    return _select(connection, conditions, wanted)


def has_any(connection: Connection, context: str, subject: str) -> bool:
    """Whether a subject is associated with anything."""
    query = select(associations.c.guid).where(associations.c.context == context, associations.c.subject == subject)
    return connection.execute(query.limit(1)).first() is not None


def has(context: ColumnElement[str], subject: ColumnElement[str], wanted: Filter) -> ColumnElement[bool]:
    """A condition for queries over subjects: the subject has such an association."""
    same = (associations.c.context == context, associations.c.subject == subject)
    return exists().where(*same, *_conditions(wanted))


def count(connection: Connection) -> int:
    """The number of associations."""
    return connection.execute(select(func.count()).select_from(associations)).scalar_one()


def put(connection: Connection, association: StoredAssociation) -> None:
    """Add an association, or replace the one with the same guid."""
    values = msgspec.structs.asdict(association)
    changed = connection.execute(update(associations).where(associations.c.guid == association.guid).values(values))
    if changed.rowcount == 0:
        connection.execute(insert(associations).values(values))


def remove(connection: Connection, removed: Iterable[StoredAssociation]) -> None:
    """Remove associations."""
    for association in removed:
        connection.execute(delete(associations).where(associations.c.guid == association.guid))


def _conditions(wanted: Filter) -> Iterable[ColumnElement[bool]]:
    if wanted.resource_type is not None:
        yield associations.c.resource_type == wanted.resource_type
    if wanted.association_types:
        yield associations.c.association_type.in_(wanted.association_types)
    if wanted.lifecycle is not None:
        yield associations.c.lifecycle == wanted.lifecycle


def _select(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], wanted: Filter
) -> list[StoredAssociation]:
    query = select(associations).where(*conditions, *_conditions(wanted)).order_by(*ORDER)
    rows = connection.execute(page(query, offset=wanted.offset, limit=wanted.limit)).mappings()
    return [StoredAssociation(**row) for row in rows]
