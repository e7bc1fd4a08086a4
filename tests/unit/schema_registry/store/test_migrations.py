"""Migrations: all tables, once, whichever registry starts first."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from schema_registry.errors import RegistryError
from schema_registry.store import migrations
from schema_registry.store.database import Database
from schema_registry.store.tables import metadata


def differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), metadata))


def test_the_migrations_lead_to_the_tables(database: Database) -> None:
    assert database.write(differences) == []


def test_registries_that_start_together_on_an_empty_database_all_succeed(url: str) -> None:
    databases = [Database(url, timeout_seconds=30) for _ in range(8)]
    with ThreadPoolExecutor(len(databases)) as pool:
        list(pool.map(Database.migrate, databases))
    for database in databases:
        with database.read() as connection:
            assert migrations.is_newest(connection)
        database.close()


def test_a_database_of_a_newer_registry_is_refused(database: Database) -> None:
    database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(RegistryError, match="9999.*newer registry"):
        database.migrate()


def test_a_failed_migration_leaves_nothing_behind(url: str) -> None:
    database = Database(url)

    def fail(connection: Connection) -> None:
        migrations.upgrade(connection)
        raise KeyError

    with pytest.raises(KeyError):
        database.write(fail)
    with database.read() as connection:
        assert migrations.stored_revision(connection) is None
    database.migrate()
    database.close()


@pytest.mark.processes
def test_a_registry_that_has_its_tables_starts_without_alembic(database: Database, url: str) -> None:
    program = (
        "import sys\n"
        "from schema_registry.store.database import Database\n"
        f"database = Database({url!r})\n"
        "database.migrate()\n"
        "sys.exit('alembic' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
