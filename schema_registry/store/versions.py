"""Versions of subjects, with their schemas."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql.base import ColumnCollection

from schema_registry.store import schemas as contents
from schema_registry.store.paging import page
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.subjects import DeletionFilter, SubjectKey, in_range, qualified_name
from schema_registry.store.tables import schemas, subjects, versions

BATCH = 100
"""How many versions to read at once where the caller may stop early."""


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a subject."""

    context: str
    subject: str
    version: int
    is_deleted: bool
    created_ms: int
    schema: StoredSchema


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """A version that has a certain schema."""

    subject: str
    version: int
    is_deleted: bool
    created_ms: int


class Search:
    """The result of `search`: it is sorted and paged by keys alone, so that only the texts to return are read."""

    def __init__(
        self,
        connection: Connection,
        keys: Select[Any],
        *,
        is_one_context: bool,
        is_visible: Callable[[str, str], bool] | None = None,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._is_one_context = is_one_context
        self._is_visible = is_visible

    def where(self, condition: Callable[[ColumnElement[str], ColumnElement[str]], ColumnElement[bool]]) -> "Search":
        """Narrow the search to subjects that meet a condition."""
        columns = self._keys.selected_columns
        keys = self._keys.where(condition(columns.context, columns.subject))
        return Search(self._connection, keys, is_one_context=self._is_one_context, is_visible=self._is_visible)

    def only(self, is_visible: Callable[[str, str], bool]) -> "Search":
        """Narrow the search to the contexts and subjects that a function accepts."""
        return Search(self._connection, self._keys, is_one_context=self._is_one_context, is_visible=is_visible)

    def part(self, *, offset: int, limit: int) -> list[StoredVersion]:
        """One page of the versions, sorted by qualified name and version."""
        keys = self._sort(self._keys, self._keys.selected_columns)
        if self._is_visible is None:
            return _fetch(self._connection, self._join(page(keys, offset=offset, limit=limit)))
        rows = self._connection.execute(keys)
        visible = (tuple(row) for row in rows if self._is_visible(row.context, row.subject))
        wanted = list(islice(visible, offset, None if limit < 0 else offset + limit))
        return [
            version
            for batch in (wanted[start : start + BATCH] for start in range(0, len(wanted), BATCH))
            for version in _fetch(self._connection, self._join(keys.where(tuple_(*keys.selected_columns).in_(batch))))
        ]

    def with_rules(self) -> list[StoredVersion]:
        """All versions that have rules."""
        found = _fetch(self._connection, self._join(self._keys).where(schemas.c.rule_set.is_not(None)))
        return [
            version
            for version in found
            if self._is_visible is None or self._is_visible(version.context, version.subject)
        ]

    def _join(self, keys: Select[Any]) -> Select[Any]:
        found = keys.subquery("found")
        same = and_(
            versions.c.context == found.c.context,
            versions.c.subject == found.c.subject,
            versions.c.version == found.c.version,
        )
        joined = select(*_COLUMNS).select_from(found).join(versions, same).join(schemas, _SAME_SCHEMA)
        return self._sort(joined, found.columns)

    def _sort(self, statement: Select[Any], columns: ColumnCollection[str, Any]) -> Select[Any]:
        name = columns.subject if self._is_one_context else qualified_name(columns.context, columns.subject)
        return statement.order_by(name, columns.version)


def get(connection: Connection, context: str, subject: str, version: int) -> StoredVersion | None:
    """A version by number, deleted or not."""
    return _fetch_first(connection, _ONE, {"context": context, "subject": subject, "version": version})


def latest(connection: Connection, context: str, subject: str) -> StoredVersion | None:
    """The newest version that is not deleted."""
    return _fetch_first(connection, _LATEST, {"context": context, "subject": subject})


def newest_number(connection: Connection, context: str, subject: str) -> int:
    """The highest version number, deleted versions included; 0 if there is none."""
    return connection.execute(_NEWEST_NUMBER, {"context": context, "subject": subject}).scalar() or 0


def numbers(
    connection: Connection, context: str, subject: str, *, which: DeletionFilter, offset: int = 0, limit: int = -1
) -> list[tuple[int, bool]]:
    """The version numbers, and whether each is deleted, oldest first."""
    found = select(versions.c.version, versions.c.is_deleted).where(_of(context, subject), *_matching(which))
    rows = connection.execute(page(found.order_by(versions.c.version), offset=offset, limit=limit))
    return [(row.version, row.is_deleted) for row in rows]


def newest_first(
    connection: Connection, context: str, subject: str, *, which: DeletionFilter
) -> Iterator[StoredVersion]:
    """The versions of a subject, newest first, read in batches as the caller goes on."""
    before: int | None = None
    while True:
        found = _select_versions().where(_of(context, subject), *_matching(which))
        if before is not None:
            found = found.where(versions.c.version < before)
        batch = _fetch(connection, found.order_by(versions.c.version.desc()).limit(BATCH))
        yield from batch
        if len(batch) < BATCH:
            return
        before = batch[-1].version


def find_by_meaning(
    connection: Connection, context: str, subject: str, *, meaning_hash: str, content_hash: str, deleted: bool
) -> list[StoredVersion]:
    """The versions with the same meaning, newest first; those with exactly the same content come before the others."""
    statement = _WITH_MEANING if deleted else _ALIVE_WITH_MEANING
    values = {"context": context, "subject": subject, "meaning_hash": meaning_hash, "content_hash": content_hash}
    return _fetch(connection, statement, values)


def alive(connection: Connection, context: str, subject: str) -> list[tuple[int, int]]:
    """The numbers and schema ids of the versions that are not deleted, newest first."""
    found = select(versions.c.version, versions.c.schema_id).where(_of(context, subject), ~versions.c.is_deleted)
    return [(row.version, row.schema_id) for row in connection.execute(found.order_by(versions.c.version.desc()))]


def usages(
    connection: Connection,
    context: str,
    schema_id: int,
    *,
    subject: str | None = None,
    which: DeletionFilter = DeletionFilter.ALL,
) -> list[Usage]:
    """The versions that have a schema, sorted by subject and version."""
    found = select(*_USAGE).where(versions.c.context == context, versions.c.schema_id == schema_id, *_matching(which))
    if subject is not None:
        found = found.where(versions.c.subject == subject)
    rows = connection.execute(found.order_by(versions.c.subject, versions.c.version))
    return [Usage(**row) for row in rows.mappings()]


def find_usage(connection: Connection, context: str, schema_id: int) -> Usage | None:
    """A version that has a schema, preferably one that is not deleted."""
    for statement in (_FIRST_ALIVE_USE, _FIRST_USE):
        row = connection.execute(statement, {"context": context, "schema_id": schema_id}).mappings().first()
        if row is not None:
            return Usage(**row)
    return None


def add(connection: Connection, context: str, subject: str, *, version: int, schema_id: int, created_ms: int) -> None:
    """Add a version; the caller holds the subject's lock and calls `raise_latest`."""
    values = {"schema_id": schema_id, "is_deleted": False, "created_ms": created_ms}
    connection.execute(_ADD, {"context": context, "subject": subject, "version": version, **values})


def raise_latest(connection: Connection, context: str, subject: str, version: int) -> None:
    """Update the subject's latest version if this one is newer."""
    connection.execute(_RAISE_LATEST, {"in_context": context, "of_subject": subject, "latest_version": version})


def add_or_replace(
    connection: Connection, context: str, subject: str, *, version: int, schema_id: int, created_ms: int
) -> None:
    """As `add`, but for any version number: an existing version is replaced."""
    here = and_(_of(context, subject), versions.c.version == version)
    replaced = connection.execute(select(versions.c.schema_id).where(here)).scalar()
    if replaced is None:
        add(connection, context, subject, version=version, schema_id=schema_id, created_ms=created_ms)
        return
    values = {"schema_id": schema_id, "is_deleted": False, "created_ms": created_ms}
    connection.execute(update(versions).where(here).values(**values))
    contents.remove_unused(connection, context, [replaced])


def mark_deleted(connection: Connection, context: str, subject: str, version: int | None) -> None:
    """Soft-delete one version or all (None); the caller holds the subject's lock and calls `subjects.refresh`."""
    statement = update(versions).where(_of(context, subject), *_only(version))
    connection.execute(statement.values(is_deleted=True))


def remove(connection: Connection, context: str, subject: str, version: int | None) -> None:
    """Remove one version or all (None), with schemas that become unused; the caller then calls `subjects.refresh`."""
    statement = delete(versions).where(_of(context, subject), *_only(version)).returning(versions.c.schema_id)
    contents.remove_unused(connection, context, connection.execute(statement).scalars().all())


def search(connection: Connection, contexts: Sequence[str], prefix: str, *, deleted: bool, latest_only: bool) -> Search:
    """Search the versions of the subjects in some contexts whose names begin with `prefix`."""
    if latest_only:
        newest = _highest_version() if deleted else subjects.c.latest_version
        keys = select(subjects.c.context, subjects.c.name.label("subject"), newest.label("version")).where(
            *in_range(subjects.c.context, subjects.c.name, contexts, prefix), newest.is_not(None)
        )
    else:
        keys = select(versions.c.context, versions.c.subject, versions.c.version).where(
            *in_range(versions.c.context, versions.c.subject, contexts, prefix),
            *_matching(DeletionFilter.of(deleted=deleted)),
        )
    return Search(connection, keys, is_one_context=len(contexts) == 1)


def of_subject(connection: Connection, name: SubjectKey, *, deleted: bool, latest_only: bool) -> list[StoredVersion]:
    """All versions of a subject, oldest first, or only the newest."""
    found = _select_versions().where(_of(*name), *_matching(DeletionFilter.of(deleted=deleted)))
    if latest_only:
        return _fetch(connection, found.order_by(versions.c.version.desc()).limit(1))
    return _fetch(connection, found.order_by(versions.c.version))


def _select_versions() -> Select[Any]:
    return select(*_COLUMNS).join_from(versions, schemas, _SAME_SCHEMA)


def _highest_version() -> Any:
    of_same = versions.alias()
    same = and_(of_same.c.context == subjects.c.context, of_same.c.subject == subjects.c.name)
    return select(func.max(of_same.c.version)).where(same).correlate(subjects).scalar_subquery()


def _fetch_first(connection: Connection, statement: Select[Any], values: Mapping[str, Any]) -> StoredVersion | None:
    found = _fetch(connection, statement, values)
    return found[0] if found else None


def _fetch(
    connection: Connection, statement: Select[Any], values: Mapping[str, Any] | None = None
) -> list[StoredVersion]:
    rows: Sequence[Row[Any]] = connection.execute(statement, values).all()
    return [
        StoredVersion(
            context=row.context,
            subject=row.subject,
            version=row.version,
            is_deleted=row.is_deleted,
            created_ms=row.created_ms,
            schema=schema,
        )
        for row, schema in zip(rows, contents.from_rows(connection, rows), strict=True)
    ]


def _of(context: str, subject: str) -> ColumnElement[bool]:
    return and_(versions.c.context == context, versions.c.subject == subject)


def _only(version: int | None) -> list[ColumnElement[bool]]:
    return [] if version is None else [versions.c.version == version]


def _matching(which: DeletionFilter) -> list[ColumnElement[bool]]:
    if which is DeletionFilter.ALL:
        return []
    return [versions.c.is_deleted if which is DeletionFilter.DELETED else ~versions.c.is_deleted]


_SAME_SCHEMA = and_(schemas.c.context == versions.c.context, schemas.c.id == versions.c.schema_id)
_USAGE = (versions.c.subject, versions.c.version, versions.c.is_deleted, versions.c.created_ms)
_FIRST_USE = (
    select(*_USAGE)
    .where(versions.c.context == bindparam("context"), versions.c.schema_id == bindparam("schema_id"))
    .limit(1)
)
_FIRST_ALIVE_USE = _FIRST_USE.where(~versions.c.is_deleted)
_COLUMNS = (
    versions.c.context,
    versions.c.subject,
    versions.c.version,
    versions.c.is_deleted,
    versions.c.created_ms,
    schemas.c.id,
    *contents.COLUMNS,
)

# The statements of every registration and look-up are built once.

_HERE = and_(versions.c.context == bindparam("context"), versions.c.subject == bindparam("subject"))
_LATEST_NUMBER = (
    select(subjects.c.latest_version)
    .where(subjects.c.context == bindparam("context"), subjects.c.name == bindparam("subject"))
    .scalar_subquery()
)
_ONE = _select_versions().where(_HERE, versions.c.version == bindparam("version"))
_LATEST = _select_versions().where(_HERE, versions.c.version == _LATEST_NUMBER)
_NEWEST_NUMBER = select(func.max(versions.c.version)).where(_HERE)
# Starts with the schemas of that meaning, which are few, so that the number of versions does not matter.
_OF_MEANING = select(schemas.c.id).where(
    schemas.c.context == bindparam("context"), schemas.c.meaning_hash == bindparam("meaning_hash")
)
_WITH_MEANING = (
    _select_versions()
    .where(_HERE, versions.c.schema_id.in_(_OF_MEANING))
    .order_by(case((schemas.c.content_hash == bindparam("content_hash"), 0), else_=1), versions.c.version.desc())
    .limit(BATCH)
)
_ALIVE_WITH_MEANING = _WITH_MEANING.where(~versions.c.is_deleted)
_ADD = insert(versions)
_RAISE_LATEST = (
    update(subjects)
    .where(
        subjects.c.context == bindparam("in_context"),
        subjects.c.name == bindparam("of_subject"),
        subjects.c.latest_version.is_(None) | (subjects.c.latest_version < bindparam("latest_version")),
    )
    .values(latest_version=bindparam("latest_version"))
)
