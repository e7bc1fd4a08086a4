"""What tests of the store share: an empty database of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schema_registry.store.database import Database
from tests.support.postgres import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/registry.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create_database()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """A database with its tables."""
    database = Database(url)
    database.migrate()
    yield database
    database.close()
