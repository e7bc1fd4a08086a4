"""Contents of schemas by id, hash and guid."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, bindparam, delete, exists, insert, select

from schema_registry.store.tables import schema_references, schemas, versions


class StoredReference(msgspec.Struct, frozen=True, kw_only=True):
    """A mention of another schema's version."""

    name: str
    subject: str
    """As the client wrote it, with or without a context."""
    version: int
    context: str
    """The context that the mention leads to."""
    target: str
    """The subject in that context."""


class StoredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """What an id stands for in a context."""

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
"""What a statement selects, beside context and id, for `from_row`."""


def by_id(connection: Connection, context: str, schema_id: int) -> StoredSchema | None:
    """The schema of that id."""
    rows = connection.execute(_BY_ID, {"context": context, "schema_id": schema_id}).all()
    return next(iter(from_rows(connection, rows)), None)


def by_content(connection: Connection, context: str, content_hash: str) -> list[StoredSchema]:
    """The schemas of exactly that content: one, unless imports brought it with several ids."""
    rows = connection.execute(_BY_CONTENT, {"context": context, "content_hash": content_hash}).all()
    return from_rows(connection, rows)


def ids_by_guid(connection: Connection, guid: str) -> list[tuple[str, int]]:
    """Contexts and ids of the content with that guid."""
    found = select(schemas.c.context, schemas.c.id).where(schemas.c.guid == guid)
    return [(row.context, row.id) for row in connection.execute(found.order_by(schemas.c.context, schemas.c.id))]


def add(connection: Connection, schema: StoredSchema, *, is_copy: bool = False) -> None:
    """Store a content with its references; a race for the same content or id fails and is run again."""
    connection.execute(_ADD, values_of(schema, is_copy=is_copy))
    add_references(connection, schema)


def add_references(connection: Connection, schema: StoredSchema) -> None:
    """Store what a content mentions."""
    if schema.references:
        connection.execute(insert(schema_references), [*_reference_rows(schema)])


def values_of(schema: StoredSchema, *, is_copy: bool = False) -> dict[str, Any]:
    """The row of a content."""
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
    """Forget those contents that no version has any more."""
    used = exists().where(versions.c.context == schemas.c.context, versions.c.schema_id == schemas.c.id)
    for some in batched(sorted(set(schema_ids))):
        connection.execute(delete(schemas).where(schemas.c.context == context, schemas.c.id.in_(some), ~used))


def batched(values: Sequence[int], size: int = 500) -> Iterator[Sequence[int]]:
    """Values in pieces that a statement has room for."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def from_rows(connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[StoredSchema]:
    """Schemas from rows that hold `context`, `id` and COLUMNS; references are read for all of them at once."""
    wanted: dict[str, list[int]] = {}
    for row in rows:
        if row.has_references:
            wanted.setdefault(row.context, []).append(row.id)
    found = {context: _references(connection, context, ids) for context, ids in wanted.items()}
    return [_from_row(row, found.get(row.context, {}).get(row.id, ())) for row in rows]


def _from_row(row: Row[*tuple[Any, ...]], references: tuple[StoredReference, ...]) -> StoredSchema:
    return StoredSchema(
        context=row.context,
        id=row.id,
        guid=row.guid,
        content_hash=row.content_hash,
        meaning_hash=row.meaning_hash,
        schema_type=row.schema_type,
        text=row.schema_text,
        metadata=row.metadata,
        rule_set=row.rule_set,
        references=references,
    )


def _references(connection: Connection, context: str, schema_ids: list[int]) -> dict[int, tuple[StoredReference, ...]]:
    table = schema_references.c
    found: dict[int, list[StoredReference]] = {}
    for some in batched(schema_ids):
        rows = connection.execute(
            select(schema_references)
            .where(table.context == context, table.schema_id.in_(some))
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


def _reference_rows(schema: StoredSchema) -> Iterable[dict[str, object]]:
    for position, reference in enumerate(schema.references):
        yield {
            "context": schema.context,
            "schema_id": schema.id,
            "position": position,
            "name": reference.name,
            "subject_as_given": reference.subject,
            "referenced_context": reference.context,
            "referenced_subject": reference.target,
            "referenced_version": reference.version,
        }


_BY_ID = select(schemas.c.context, schemas.c.id, *COLUMNS).where(
    schemas.c.context == bindparam("context"), schemas.c.id == bindparam("schema_id")
)
_BY_CONTENT = (
    select(schemas.c.context, schemas.c.id, *COLUMNS)
    .where(schemas.c.context == bindparam("context"), schemas.c.content_hash == bindparam("content_hash"))
    .order_by(schemas.c.imported_copy)
)
_ADD = insert(schemas)
