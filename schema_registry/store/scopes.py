"""Configs and modes by scope: a subject in a context, or the context itself if the subject is empty."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, literal, select, update

from schema_registry.store.subjects import SubjectKey
from schema_registry.store.tables import configs, modes

CONFIG_KEYS = tuple(column.name for column in configs.c if column.name not in ("context", "subject"))


def read_configs(connection: Connection, scope: SubjectKey, *, above: str) -> dict[SubjectKey, dict[str, Any]]:
    """The configs of a scope, of its context and of the context `above`; scopes without a config are left out."""
    rows = connection.execute(_CONFIGS, {"context": scope[0], "subject": scope[1], "above": above})
    return {(row.context, row.subject): {key: getattr(row, key) for key in CONFIG_KEYS} for row in rows}


def write_config(connection: Connection, scope: SubjectKey, values: Mapping[str, Any]) -> None:
    """Change some keys of a scope's config; None clears one. Of two concurrent first writers one is retried."""
    here = and_(configs.c.context == scope[0], configs.c.subject == scope[1])
    if connection.execute(select(configs.c.context).where(here).with_for_update()).first() is None:
        connection.execute(insert(configs).values(context=scope[0], subject=scope[1], **values))
    elif values:
        connection.execute(update(configs).where(here).values(**values))


def remove_config(connection: Connection, scope: SubjectKey) -> None:
    """Remove the scope's config, so that it inherits one."""
    connection.execute(delete(configs).where(configs.c.context == scope[0], configs.c.subject == scope[1]))


def aliases(connection: Connection) -> list[tuple[SubjectKey, str]]:
    """All subjects with an alias, and the alias, sorted by subject."""
    found = select(configs.c.context, configs.c.subject, configs.c.alias).where(configs.c.alias.is_not(None))
    rows = connection.execute(found.order_by(configs.c.context, configs.c.subject))
    return [((row.context, row.subject), row.alias) for row in rows]


def read_modes(connection: Connection, scope: SubjectKey, *, above: str) -> dict[SubjectKey, str]:
    """The modes of a scope, of its context and of the context `above`; scopes without a mode are left out."""
    values = {"context": scope[0], "subject": scope[1], "above": above}
    return {(row.context, row.subject): row.mode for row in connection.execute(_MODES, values)}


def write_mode(connection: Connection, scope: SubjectKey, mode: str) -> None:
    """Set the mode of a scope."""
    here = and_(modes.c.context == scope[0], modes.c.subject == scope[1])
    if connection.execute(update(modes).where(here).values(mode=mode)).rowcount == 0:
        connection.execute(insert(modes).values(context=scope[0], subject=scope[1], mode=mode))


def remove_mode(connection: Connection, scope: SubjectKey, *, with_subjects: bool = False) -> None:
    """Remove the scope's mode, with `with_subjects` also those of all subjects in the context."""
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
