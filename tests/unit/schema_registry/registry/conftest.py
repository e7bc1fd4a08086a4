"""What tests of the registry's rules share: a registry on SQLite, and one on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schema_registry.store.database import Database
from tests.support.postgres import PostgresServer
from tests.support.registry_database import new_database
from tests.support.registry_world import RegistryWorld


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty database in a file."""
    database = new_database(tmp_path)
    yield database
    database.close()


@pytest.fixture
def world(database: Database) -> RegistryWorld:
    """A registry on SQLite."""
    return RegistryWorld(database)


@pytest.fixture(scope="session")
def migrated_postgres(postgres: PostgresServer) -> str:
    """The URL of a database with all tables, to be copied."""
    url = postgres.create_database()
    database = Database(url)
    database.migrate()
    database.close()
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)])
def world_on_each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RegistryWorld]:
    """A registry, once on each kind of database."""
    if request.param == "sqlite":
        database = new_database(tmp_path)
    else:
        template = request.getfixturevalue("migrated_postgres")
        database = Database(request.getfixturevalue("postgres").create_database(copy_of=template))
    yield RegistryWorld(database)
    database.close()
