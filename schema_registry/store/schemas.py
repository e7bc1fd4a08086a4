"""Stored schemas by id, hash and guid."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, bindparam, delete, exists, insert, select

from schema_registry.store.tables import schema_references, schemas, versions


class StoredReference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to a version of another subject."""

    name: str
    subject: str
    """As the client wrote it, with or without a context."""
    version: int
    context: str
    """The context of the referenced subject."""
    target: str
    """The subject in that context."""


class StoredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema with an id in a context."""

    context: str
    id: int
    guid: str
    content_hash: str
    meaning_hash: str
    schema_type: str
    text: str
    metadata: str | None
    rule_set: str | None
    references: tuple[StoredReference, ...] = ()


COLUMNS = (
    schemas.c.guid,
    schemas.c.content_hash,
    schemas.c.meaning_hash,
    schemas.c.schema_type,
    schemas.c.schema_text,
    schemas.c.metadata,
    schemas.c.rule_set,
    schemas.c.has_references,
)
"""The columns that `from_rows` needs beside context and id."""


def by_id(connection: Connection, context: str, schema_id: int) -> StoredSchema | None:
    """The schema with this id."""
    rows = connection.execute(_BY_ID, {"context": context, "schema_id": schema_id}).all()
    return next(iter(from_rows(connection, rows)), None)


def by_content(connection: Connection, context: str, content_hash: str) -> list[StoredSchema]:
    """The schemas with exactly this content: at most one, unless imports brought it under several ids."""
    rows = connection.execute(_BY_CONTENT, {"context": context, "content_hash": content_hash}).all()
    return from_rows(connection, rows)


def ids_by_guid(connection: Connection, guid: str) -> list[tuple[str, int]]:
    """The contexts and ids of the schemas with this guid."""
    found = select(schemas.c.context, schemas.c.id).where(schemas.c.guid == guid)
    return [(row.context, row.id) for row in connection.execute(found.order_by(schemas.c.context, schemas.c.id))]


def add(connection: Connection, schema: StoredSchema, *, is_copy: bool = False) -> None:
    """Store a schema with its references; if another writer stores the same content or id, the write is retried."""
    connection.execute(_ADD, values_of(schema, is_copy=is_copy))
    add_references(connection, schema)


def add_references(connection: Connection, schema: StoredSchema) -> None:
    """Store the references of a schema."""
    if not schema.references:
        return
    rows = [
        {
            "context": schema.context,
            "schema_id": schema.id,
            "position": position,
            "name": reference.name,
            "subject_as_given": reference.subject,
            "referenced_context": reference.context,
            "referenced_subject": reference.target,
            "referenced_version": reference.version,
        }
        for position, reference in enumerate(schema.references)
    ]
    connection.execute(insert(schema_references), rows)


def values_of(schema: StoredSchema, *, is_copy: bool = False) -> dict[str, Any]:
    """The row of a schema."""
    return {
        "context": schema.context,
        "id": schema.id,
        "guid": schema.guid,
        "content_hash": schema.content_hash,
        "imported_copy": schema.id if is_copy else 0,
        "meaning_hash": schema.meaning_hash,
        "schema_type": schema.schema_type,
        "schema_text": schema.text,
        "metadata": schema.metadata,
        "rule_set": schema.rule_set,
        "has_references": bool(schema.references),
    }


def remove_unused(connection: Connection, context: str, schema_ids: Iterable[int]) -> None:
    """Remove those schemas that no version has any more."""
    used = exists().where(versions.c.context == schemas.c.context, versions.c.schema_id == schemas.c.id)
    for batch in _in_batches(sorted(set(schema_ids))):
        connection.execute(delete(schemas).where(schemas.c.context == context, schemas.c.id.in_(batch), ~used))


def _in_batches(values: Sequence[int], size: int = 500) -> Iterator[Sequence[int]]:
    """Slices that are small enough for the parameters of one statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def from_rows(connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[StoredSchema]:
    """Schemas from rows with `context`, `id` and COLUMNS; the references of all of them are read together."""
    wanted: dict[str, list[int]] = {}
    for row in rows:
        if row.has_references:
            wanted.setdefault(row.context, []).append(row.id)
    found = {context: _read_references(connection, context, ids) for context, ids in wanted.items()}
    return [
        StoredSchema(
            context=row.context,
            id=row.id,
            guid=row.guid,
            content_hash=row.content_hash,
            meaning_hash=row.meaning_hash,
            schema_type=row.schema_type,
            text=row.schema_text,
            metadata=row.metadata,
            rule_set=row.rule_set,
            references=found.get(row.context, {}).get(row.id, ()),
        )
        for row in rows
    ]


def _read_references(
    connection: Connection, context: str, schema_ids: list[int]
) -> dict[int, tuple[StoredReference, ...]]:
    table = schema_references.c
    found: dict[int, list[StoredReference]] = {}
    for batch in _in_batches(schema_ids):
        rows = connection.execute(
            select(schema_references)
            .where(table.context == context, table.schema_id.in_(batch))
            .order_by(table.schema_id, table.position)
        )
        for row in rows:
            found.setdefault(row.schema_id, []).append(
                StoredReference(
                    name=row.name,
                    subject=row.subject_as_given,
                    version=row.referenced_version,
                    context=row.referenced_context,
                    target=row.referenced_subject,
                )
            )
    return {schema_id: tuple(references) for schema_id, references in found.items()}


_BY_ID = select(schemas.c.context, schemas.c.id, *COLUMNS).where(
    schemas.c.context == bindparam("context"), schemas.c.id == bindparam("schema_id")
)
_BY_CONTENT = (
    select(schemas.c.context, schemas.c.id, *COLUMNS)
    .where(schemas.c.context == bindparam("context"), schemas.c.content_hash == bindparam("content_hash"))
    .order_by(schemas.c.imported_copy)
)
_ADD = insert(schemas)
