"""Contexts: their names and id counters."""

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from schema_registry.store.tables import configs, contexts, modes

DEFAULT = "."


def names(connection: Connection) -> list[str]:
    """All contexts, the default one first."""
    found = connection.execute(select(contexts.c.name).order_by(contexts.c.name)).scalars()
    return [DEFAULT, *(name for name in found if name != DEFAULT)]


def others(connection: Connection) -> list[str]:
    """All contexts but the default one."""
    return names(connection)[1:]


def exists(connection: Connection, context: str) -> bool:
    """Whether the context exists."""
    return connection.execute(select(contexts.c.name).where(contexts.c.name == context)).first() is not None


def ensure(connection: Connection, context: str) -> None:
    """Create the context if it does not exist."""
    if context == DEFAULT or exists(connection, context):
        return
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(insert(contexts).values(name=context, last_id=0).on_conflict_do_nothing())


def take_id(connection: Connection, context: str) -> int:
    """Take the next id. The counter's row stays locked until the commit, so take it last."""
    taken: int = connection.execute(_TAKE_ID, {"context": context}).scalar_one()
    return taken


def raise_last_id(connection: Connection, context: str, schema_id: int) -> None:
    """Raise the counter to an id that was not taken from it."""
    statement = update(contexts).where(contexts.c.name == context, contexts.c.last_id < schema_id)
    connection.execute(statement.values(last_id=schema_id))


def last_id(connection: Connection, context: str) -> int:
    """The highest id taken so far; 0 if there is none."""
    found = connection.execute(select(contexts.c.last_id).where(contexts.c.name == context)).scalar()
    return found or 0


def remove(connection: Connection, context: str) -> None:
    """Remove an empty context with all its configs and modes."""
    connection.execute(delete(configs).where(configs.c.context == context))
    connection.execute(delete(modes).where(modes.c.context == context))
    connection.execute(delete(contexts).where(contexts.c.name == context))


_TAKE_ID = (
    update(contexts)
    .where(contexts.c.name == bindparam("context"))
    .values(last_id=contexts.c.last_id + 1)
    .returning(contexts.c.last_id)
)
