"""Configs and modes by scope: a subject of a context, or with an empty subject the context itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, insert, select, tuple_, update

from schema_registry.store.subjects import Name
from schema_registry.store.tables import configs, modes

CONFIG_KEYS = tuple(column.name for column in configs.c if column.name not in ("context", "subject"))


def read_configs(connection: Connection, scopes: Sequence[Name]) -> dict[Name, dict[str, Any]]:
    """What is set in each of some scopes; a scope without a config is left out."""
    found = select(configs).where(tuple_(configs.c.context, configs.c.subject).in_(scopes))
    return {
        (row.context, row.subject): {key: getattr(row, key) for key in CONFIG_KEYS} for row in connection.execute(found)
    }


def write_config(connection: Connection, scope: Name, values: Mapping[str, Any]) -> None:
    """Change some keys of a scope's config, None clears one; two first writers at once race and one runs again."""
    here = and_(configs.c.context == scope[0], configs.c.subject == scope[1])
    if connection.execute(select(configs.c.context).where(here).with_for_update()).first() is None:
        connection.execute(insert(configs).values(context=scope[0], subject=scope[1], **values))
    elif values:
        connection.execute(update(configs).where(here).values(**values))


def remove_config(connection: Connection, scope: Name) -> None:
    """Let the scope inherit its config."""
    connection.execute(delete(configs).where(configs.c.context == scope[0], configs.c.subject == scope[1]))


def aliases(connection: Connection) -> list[tuple[Name, str]]:
    """All subjects that stand for another one, and for which, by name."""
    found = select(configs.c.context, configs.c.subject, configs.c.alias).where(configs.c.alias.is_not(None))
    rows = connection.execute(found.order_by(configs.c.context, configs.c.subject))
    return [((row.context, row.subject), row.alias) for row in rows]


def read_modes(connection: Connection, scopes: Sequence[Name]) -> dict[Name, str]:
    """The mode that is set in each of some scopes; a scope without one is left out."""
    found = select(modes).where(tuple_(modes.c.context, modes.c.subject).in_(scopes))
    return {(row.context, row.subject): row.mode for row in connection.execute(found)}


def write_mode(connection: Connection, scope: Name, mode: str) -> None:
    """Set a scope's mode."""
    here = and_(modes.c.context == scope[0], modes.c.subject == scope[1])
    if connection.execute(update(modes).where(here).values(mode=mode)).rowcount == 0:
        connection.execute(insert(modes).values(context=scope[0], subject=scope[1], mode=mode))


def remove_mode(connection: Connection, scope: Name, *, with_subjects: bool = False) -> None:
    """Let the scope inherit its mode, and if asked all subjects of the context too."""
    statement = delete(modes).where(modes.c.context == scope[0])
    connection.execute(statement if with_subjects else statement.where(modes.c.subject == scope[1]))
