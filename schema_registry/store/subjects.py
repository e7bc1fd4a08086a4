"""Subjects: their names, and the lock under which their versions change."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import assert_never

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from schema_registry.store.contexts import DEFAULT
from schema_registry.store.paging import page
from schema_registry.store.tables import subjects, versions

SubjectKey = tuple[str, str]
"""A context and the name of a subject in it; an empty name means the context itself."""


class DeletionFilter(Enum):
    """Which subjects or versions to return: live ones, deleted ones or all."""

    ALIVE = auto()
    DELETED = auto()
    ALL = auto()

    @classmethod
    def of(cls, *, deleted: bool, deleted_only: bool = False) -> "DeletionFilter":
        """The filter for the query parameters of these names."""
        if deleted_only:
            return cls.DELETED
        return cls.ALL if deleted else cls.ALIVE


def lock(connection: Connection, context: str, name: str) -> bool:
    """Lock the subject for writing until the commit; False if it does not exist."""
    return connection.execute(_LOCK, {"context": context, "name": name}).first() is not None


def lock_or_create(connection: Connection, context: str, name: str) -> None:
    """Lock the subject for writing until the commit; create it if it does not exist."""
    if connection.dialect.name == "sqlite":  # its single writer has locked everything
        connection.execute(_CREATE_SQLITE, {"context": context, "name": name})
        return
    # Loops again only if the subject is deleted between the two statements.
    while not lock(connection, context, name):
        connection.execute(_CREATE_POSTGRESQL, {"context": context, "name": name})


def lock_against_deletion(connection: Connection, wanted: Iterable[SubjectKey]) -> None:
    """Keep subjects from being deleted until the commit; always in one order, so that writers do not deadlock."""
    for context, name in sorted(set(wanted)):
        found = select(subjects.c.name).where(subjects.c.context == context, subjects.c.name == name)
        connection.execute(found.with_for_update(read=True))


def exists(connection: Connection, context: str, name: str, *, deleted: bool) -> bool:
    """Whether the subject has a version, with `deleted` also a deleted one."""
    found = select(subjects.c.latest_version).where(subjects.c.context == context, subjects.c.name == name)
    row = connection.execute(found).first()
    return row is not None and (deleted or row.latest_version is not None)


def any_in(connection: Connection, context: str | None, *, deleted: bool) -> bool:
    """Whether a context, or the whole registry (None), has a subject."""
    found = select(subjects.c.name).limit(1)
    if context is not None:
        found = found.where(subjects.c.context == context)
    if not deleted:
        found = found.where(subjects.c.latest_version.is_not(None))
    return connection.execute(found).first() is not None


def all_in(connection: Connection, context: str | None) -> list[SubjectKey]:
    """All subjects of a context, or of the whole registry (None), including those with only deleted versions."""
    found = select(subjects.c.context, subjects.c.name).order_by(subjects.c.context, subjects.c.name)
    if context is not None:
        found = found.where(subjects.c.context == context)
    return [(row.context, row.name) for row in connection.execute(found)]


def names(
    connection: Connection, contexts: Sequence[str], prefix: str, *, which: DeletionFilter, offset: int, limit: int
) -> list[SubjectKey]:
    """The subjects in some contexts whose names begin with `prefix`, sorted by qualified name."""
    found = select(subjects.c.context, subjects.c.name).where(
        *in_range(subjects.c.context, subjects.c.name, contexts, prefix), *_matching(which)
    )
    if len(contexts) == 1:
        found = found.order_by(subjects.c.name)
    else:
        found = found.order_by(qualified_name(subjects.c.context, subjects.c.name))
    return [(row.context, row.name) for row in connection.execute(page(found, offset=offset, limit=limit))]


def in_range(
    context: ColumnElement[str], name: ColumnElement[str], contexts: Sequence[str], prefix: str
) -> list[ColumnElement[bool]]:
    """Conditions that an index can answer: the columns name a subject in some contexts that begins with `prefix`."""
    # An equality instead of IN for a single context: the index then returns the rows in order.
    conditions = [context == contexts[0] if len(contexts) == 1 else context.in_(contexts)]
    if prefix:
        conditions.append(name >= prefix)
        end = _end_of_prefix(prefix)
        conditions += [name < end] if end else []
    return conditions


def qualified_name(context: ColumnElement[str], name: ColumnElement[str]) -> ColumnElement[str]:
    """SQL for a subject's qualified name, to sort by."""
    colon = literal(":")
    return case((context == DEFAULT, name), else_=colon + context + colon + name)


def _matching(which: DeletionFilter) -> list[ColumnElement[bool]]:
    match which:
        case DeletionFilter.ALL:
            return []
        case DeletionFilter.ALIVE:
            return [subjects.c.latest_version.is_not(None)]
        case DeletionFilter.DELETED:
            return [subjects.c.latest_version.is_(None)]
        case _:
            assert_never(which)


def refresh(connection: Connection, context: str, name: str) -> bool:
    """Update the latest version of a subject; removes the subject and returns False if it has no versions left."""
    of_subject = and_(versions.c.context == context, versions.c.subject == name)
    alive = select(versions.c.version).where(of_subject, ~versions.c.is_deleted).order_by(versions.c.version.desc())
    latest: int | None = connection.execute(alive.limit(1)).scalar()
    here = and_(subjects.c.context == context, subjects.c.name == name)
    if latest is None and connection.execute(select(versions.c.version).where(of_subject).limit(1)).first() is None:
        connection.execute(delete(subjects).where(here))
        return False
    connection.execute(update(subjects).where(here).values(latest_version=latest))
    return True


def _end_of_prefix(prefix: str) -> str | None:
    """The smallest text, by bytes, that is greater than every text that begins with `prefix`."""
    for position in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[position]) + 1
        if point == 0xD800:
            point = 0xE000  # surrogates are not allowed in texts
        if point <= 0x10FFFF:
            return prefix[:position] + chr(point)
    return None


_LOCK = (
    select(subjects.c.name)
    .where(subjects.c.context == bindparam("context"), subjects.c.name == bindparam("name"))
    .with_for_update()
)
_CREATE_POSTGRESQL = postgresql.insert(subjects).on_conflict_do_nothing()
_CREATE_SQLITE = sqlite.insert(subjects).on_conflict_do_nothing()
