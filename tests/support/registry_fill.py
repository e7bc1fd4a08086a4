"""Puts many schemas into a registry's database at once: what takes minutes over HTTP takes seconds here."""

import itertools
import json
from collections.abc import Iterator

from sqlalchemy import Connection, insert, update

from core_broker.service.clock import SystemClock
from schema_registry.formats.schema import SchemaType
from schema_registry.registry.guid import Content
from schema_registry.store.database import Database
from schema_registry.store.tables import contexts, schemas, subjects, versions

_CHUNK = 5_000


def subject_name(number: int) -> str:
    """The name of a subject."""
    return f"orders-{number}-value"


def schema_text(subject: int, version: int) -> str:
    """A record of eight fields, as the registry would write it; each version can read the one before it."""
    fields: list[dict[str, object]] = [{"name": f"field_{n}", "type": "string"} for n in range(7)]
    fields.append({"name": f"added_{version}", "type": "long", "default": 0})
    record = {"type": "record", "name": f"Order{subject}", "namespace": "shop.orders", "fields": fields}
    return json.dumps(record, separators=(",", ":"))


def fill(url: str, *, subject_count: int, versions_each: int) -> None:
    """Store `subject_count` subjects with `versions_each` versions each; ids count up from 1 in that order."""
    database = Database(url)
    try:
        database.migrate()
        database.write(lambda connection: _fill(connection, subject_count, versions_each))
    finally:
        database.close()


def _fill(connection: Connection, subject_count: int, versions_each: int) -> None:
    total = subject_count * versions_each
    if not connection.execute(contexts.select()).first():
        connection.execute(insert(contexts), {"name": ".", "last_id": 0})
    connection.execute(update(contexts).values(last_id=total))
    named = [{"context": ".", "name": subject_name(n), "latest_version": versions_each} for n in range(subject_count)]
    connection.execute(insert(subjects), named)
    rows = _rows(subject_count, versions_each)
    while chunk := list(itertools.islice(rows, _CHUNK)):
        connection.execute(insert(schemas), [content for content, _ in chunk])
        connection.execute(insert(versions), [version for _, version in chunk])


def _rows(subject_count: int, versions_each: int) -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    created_ms = SystemClock().now_ms()
    for subject in range(subject_count):
        for version in range(1, versions_each + 1):
            schema_id = subject * versions_each + version
            yield (
                _content(schema_id, schema_text(subject, version)),
                {
                    "context": ".",
                    "subject": subject_name(subject),
                    "version": version,
                    "schema_id": schema_id,
                    "is_deleted": False,
                    "created_ms": created_ms,
                },
            )


def _content(schema_id: int, text: str) -> dict[str, object]:
    content = Content(schema_type=SchemaType.AVRO, text=text, references=(), metadata=None, rule_set=None)
    return {
        "context": ".",
        "id": schema_id,
        "guid": content.guid,
        "content_hash": content.content_hash,
        "imported_copy": 0,
        "meaning_hash": content.meaning_hash(text),
        "schema_type": content.schema_type,
        "schema_text": text,
        "metadata": None,
        "rule_set": None,
        "has_references": False,
    }
