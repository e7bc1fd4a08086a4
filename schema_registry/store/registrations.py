"""Store a new content and its version: the step at which all registrations in a context wait for each other.

The row with the context's id counter is locked from the first of these statements until the commit. On PostgreSQL,
where other processes may wait for it, everything is one statement.
"""

from msgspec.structs import replace
from sqlalchemy import Connection, bindparam, insert, literal, select, update

from schema_registry.store import contexts, schemas, versions
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.tables import contexts as contexts_table
from schema_registry.store.tables import schemas as schemas_table
from schema_registry.store.tables import versions as versions_table


def add(connection: Connection, schema: StoredSchema, *, subject: str, version: int, created_ms: int) -> StoredSchema:
    """Store a content, whose id is still 0, under the next id of its context, and as a version of the subject."""
    context = schema.context
    if connection.dialect.name == "postgresql":
        values = schemas.values_of(schema) | {"subject": subject, "version": version, "created_ms": created_ms}
        schema = replace(schema, id=connection.execute(_ADD_ALL, values).scalar_one())
        schemas.add_references(connection, schema)
        return schema
    schema = replace(schema, id=contexts.take_id(connection, context))
    schemas.add(connection, schema)
    versions.add(connection, context, subject, version=version, schema_id=schema.id, created_ms=created_ms)
    return schema


_TAKEN = (
    update(contexts_table)
    .where(contexts_table.c.name == bindparam("context"))
    .values(last_id=contexts_table.c.last_id + 1)
    .returning(contexts_table.c.last_id)
    .cte("taken")
)
_CONTENT_COLUMNS = [column for column in schemas_table.c if column.name != "id"]
_STORED = (
    insert(schemas_table)
    .from_select(
        ["id", *(column.name for column in _CONTENT_COLUMNS)],
        select(_TAKEN.c.last_id, *(bindparam(column.name, type_=column.type) for column in _CONTENT_COLUMNS)),
    )
    .returning(schemas_table.c.id)
    .cte("stored")
)
_VERSION_COLUMNS = ("context", "subject", "version", "created_ms")
_ADD_ALL = (
    insert(versions_table)
    .from_select(
        ["schema_id", "is_deleted", *_VERSION_COLUMNS],
        select(
            _STORED.c.id,
            literal(False),
            *(bindparam(name, type_=versions_table.c[name].type) for name in _VERSION_COLUMNS),
        ),
    )
    .returning(versions_table.c.schema_id)
)
