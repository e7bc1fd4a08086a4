"""Configs and modes by scope: a subject of a context, or with an empty subject the context itself."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, literal, select, update

from schema_registry.store.subjects import Name
from schema_registry.store.tables import configs, modes

CONFIG_KEYS = tuple(column.name for column in configs.c if column.name not in ("context", "subject"))


def read_configs(connection: Connection, scope: Name, *, above: str) -> dict[Name, dict[str, Any]]:
    """What is set in a scope, in its context and in the context `above`; a scope without a config is left out."""
    rows = connection.execute(_CONFIGS, {"context": scope[0], "subject": scope[1], "above": above})
    return {(row.context, row.subject): {key: getattr(row, key) for key in CONFIG_KEYS} for row in rows}


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


def read_modes(connection: Connection, scope: Name, *, above: str) -> dict[Name, str]:
    """The modes of a scope, of its context and of the context `above`; a scope without a mode is left out."""
    values = {"context": scope[0], "subject": scope[1], "above": above}
    return {(row.context, row.subject): row.mode for row in connection.execute(_MODES, values)}


def write_mode(connection: Connection, scope: Name, mode: str) -> None:
    """Set a scope's mode."""
    here = and_(modes.c.context == scope[0], modes.c.subject == scope[1])
    if connection.execute(update(modes).where(here).values(mode=mode)).rowcount == 0:
        connection.execute(insert(modes).values(context=scope[0], subject=scope[1], mode=mode))


def remove_mode(connection: Connection, scope: Name, *, with_subjects: bool = False) -> None:
    """Let the scope inherit its mode, and if asked all subjects of the context too."""
    statement = delete(modes).where(modes.c.context == scope[0])
    connection.execute(statement if with_subjects else statement.where(modes.c.subject == scope[1]))


_CONFIGS = select(configs).where(
    configs.c.context.in_([bindparam("context"), bindparam("above")]),
    configs.c.subject.in_([bindparam("subject"), literal("")]),
)
_MODES = select(modes).where(
    modes.c.context.in_([bindparam("context"), bindparam("above")]),
    modes.c.subject.in_([bindparam("subject"), literal("")]),
)
