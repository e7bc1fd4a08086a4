"""Subjects: their names, and the lock under which their versions change."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import assert_never

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from schema_registry.store.contexts import DEFAULT
from schema_registry.store.paging import page
from schema_registry.store.tables import subjects, versions

Name = tuple[str, str]
"""A context and a name inside of it."""


class Kind(Enum):
    """Which subjects or versions are meant."""

    ALIVE = auto()
    DELETED = auto()
    ALL = auto()

    @classmethod
    def of(cls, *, deleted: bool, deleted_only: bool = False) -> "Kind":
        """What the query parameters of those names mean together."""
        if deleted_only:
            return cls.DELETED
        return cls.ALL if deleted else cls.ALIVE


def lock(connection: Connection, context: str, name: str) -> bool:
    """Hold the subject for writing until the commit; False when there is none."""
    return connection.execute(_LOCK, {"context": context, "name": name}).first() is not None


def lock_or_create(connection: Connection, context: str, name: str) -> None:
    """Hold the subject for writing until the commit, whether it was there or not."""
    if connection.dialect.name == "sqlite":  # whose one writer holds everything
        connection.execute(_CREATE_SQLITE, {"context": context, "name": name})
        return
    # More than one turn only if the subject is deleted between the two statements.
    while not lock(connection, context, name):
        connection.execute(_CREATE_POSTGRESQL, {"context": context, "name": name})


def hold(connection: Connection, wanted: Iterable[Name]) -> None:
    """Keep subjects from being deleted until the commit; always in one order, so that two holders never deadlock."""
    for context, name in sorted(set(wanted)):
        found = select(subjects.c.name).where(subjects.c.context == context, subjects.c.name == name)
        connection.execute(found.with_for_update(read=True))


def exists(connection: Connection, context: str, name: str, *, deleted: bool) -> bool:
    """Whether the subject has a version, if `deleted` also one that is deleted."""
    found = select(subjects.c.latest_version).where(subjects.c.context == context, subjects.c.name == name)
    row = connection.execute(found).first()
    return row is not None and (deleted or row.latest_version is not None)


def any_in(connection: Connection, context: str | None, *, deleted: bool) -> bool:
    """Whether a context, or with None the whole registry, has a subject."""
    found = select(subjects.c.name).limit(1)
    if context is not None:
        found = found.where(subjects.c.context == context)
    if not deleted:
        found = found.where(subjects.c.latest_version.is_not(None))
    return connection.execute(found).first() is not None


def all_in(connection: Connection, context: str | None) -> list[Name]:
    """All subjects of a context, or with None of the whole registry; those with deleted versions alone too."""
    found = select(subjects.c.context, subjects.c.name).order_by(subjects.c.context, subjects.c.name)
    if context is not None:
        found = found.where(subjects.c.context == context)
    return [(row.context, row.name) for row in connection.execute(found)]


def names(
    connection: Connection, contexts: Sequence[str], prefix: str, *, kind: Kind, offset: int, limit: int
) -> list[Name]:
    """The subjects of some contexts whose names begin with `prefix`, in the order of their qualified names."""
    found = select(subjects.c.context, subjects.c.name).where(
        *in_range(subjects.c.context, subjects.c.name, contexts, prefix), *_of_kind(kind)
    )
    if len(contexts) == 1:
        found = found.order_by(subjects.c.name)
    else:
        found = found.order_by(qualified_name(subjects.c.context, subjects.c.name))
    return [(row.context, row.name) for row in connection.execute(page(found, offset=offset, limit=limit))]


def in_range(
    context: ColumnElement[str], name: ColumnElement[str], contexts: Sequence[str], prefix: str
) -> list[ColumnElement[bool]]:
    """The condition that columns name a subject of some contexts that begins with `prefix`, for an index to answer."""
    # One context is told as such: then the index has the rows in order.
    conditions = [context == contexts[0] if len(contexts) == 1 else context.in_(contexts)]
    if prefix:
        conditions.append(name >= prefix)
        end = _after(prefix)
        conditions += [name < end] if end else []
    return conditions


def qualified_name(context: ColumnElement[str], name: ColumnElement[str]) -> ColumnElement[str]:
    """A subject's name with its context, as SQL, to sort by."""
    colon = literal(":")
    return case((context == DEFAULT, name), else_=colon + context + colon + name)


def _of_kind(kind: Kind) -> list[ColumnElement[bool]]:
    match kind:
        case Kind.ALL:
            return []
        case Kind.ALIVE:
            return [subjects.c.latest_version.is_not(None)]
        case Kind.DELETED:
            return [subjects.c.latest_version.is_(None)]
        case _:
            assert_never(kind)


def refresh(connection: Connection, context: str, name: str) -> bool:
    """Note which version is the latest now; False when the subject has no versions left and is forgotten."""
    of_subject = and_(versions.c.context == context, versions.c.subject == name)
    alive = select(versions.c.version).where(of_subject, ~versions.c.is_deleted).order_by(versions.c.version.desc())
    latest: int | None = connection.execute(alive.limit(1)).scalar()
    here = and_(subjects.c.context == context, subjects.c.name == name)
    if latest is None and connection.execute(select(versions.c.version).where(of_subject).limit(1)).first() is None:
        connection.execute(delete(subjects).where(here))
        return False
    connection.execute(update(subjects).where(here).values(latest_version=latest))
    return True


def _after(prefix: str) -> str | None:
    """The smallest text, by bytes, that is greater than everything that begins with `prefix`."""
    for position in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[position]) + 1
        if point == 0xD800:
            point = 0xE000  # code points that no text may hold
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
