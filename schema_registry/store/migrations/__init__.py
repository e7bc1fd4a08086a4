"""Database migrations: one file per revision, applied at start when the database is behind.

Alembic is imported only then. Revisions are numbered; each file name begins with the number.
"""

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from schema_registry.errors import RegistryError

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
_ADVISORY_LOCK = 0x43617564616C  # a number that no other program is likely to use: the bytes of "Caudal"


def known_revisions() -> list[str]:
    """The revisions that this code has, oldest first."""
    return sorted(file.stem.split("_", 1)[0] for file in (FOLDER / "versions").glob("[0-9]*.py"))


def stored_revision(connection: Connection) -> str | None:
    """The revision of the database; None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def is_newest(connection: Connection) -> bool:
    """Whether the database is up to date; raises if it is newer than this code."""
    known = known_revisions()
    stored = stored_revision(connection)
    if stored is not None and stored not in known:
        raise RegistryError(
            50001,
            f"The database is at revision {stored}, but this registry only supports revisions up to {known[-1]}: "
            "a newer registry has migrated it. Upgrade this one, or restore a backup.",
        )
    return stored == known[-1]


def upgrade(connection: Connection) -> None:
    """Migrate to the newest revision in the caller's transaction; registries that start together do so in turn."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    if is_newest(connection):
        return
    logging.getLogger("alembic").setLevel(logging.WARNING)  # our own line below is enough
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    log.info("database migrated", extra={"revision": known_revisions()[-1]})
