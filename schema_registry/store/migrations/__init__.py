"""How the tables came to be: one revision file per change, applied at start when the database lacks some.

Alembic is imported only then. Revisions are numbered; the number is the beginning of the file's name.
"""

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from schema_registry.errors import RegistryError

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
_ADVISORY_LOCK = 0x43617564616C  # any number that no other program takes: the bytes of "Caudal"


def known_revisions() -> list[str]:
    """All revisions of this code, oldest first."""
    return sorted(file.stem.split("_", 1)[0] for file in (FOLDER / "versions").glob("[0-9]*.py"))


def stored_revision(connection: Connection) -> str | None:
    """The revision that the database is at; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def is_newest(connection: Connection) -> bool:
    """Whether nothing is left to do; refuses a database that newer code has changed."""
    known = known_revisions()
    stored = stored_revision(connection)
    if stored is not None and stored not in known:
        raise RegistryError(
            50001,
            f"The database is at revision {stored}, but this registry knows no newer one than {known[-1]}: "
            "it was changed by a newer registry. Upgrade this one, or restore a backup.",
        )
    return stored == known[-1]


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest revision in the caller's transaction; registries that start together queue."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    if is_newest(connection):
        return
    logging.getLogger("alembic").setLevel(logging.WARNING)  # one line of ours says it all
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    log.info("database migrated", extra={"revision": known_revisions()[-1]})
