"""What tests of the registry's rules share: a registry on SQLite, and one on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schema_registry.store.database import Database
from tests.support.registry_world import RegistryWorld


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty database in a file."""
    database = Database(f"sqlite:///{tmp_path}/registry.db")
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def world(database: Database) -> RegistryWorld:
    """A registry on SQLite."""
    return RegistryWorld(database)


@pytest.fixture(params=["sqlite", "postgresql"])
def world_on_each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RegistryWorld]:
    """A registry, once on each kind of database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/registry.db"
    else:
        url = request.getfixturevalue("postgres").create_database()
    database = Database(url)
    database.migrate()
    yield RegistryWorld(database)
    database.close()
