"""Databases of the registry for unit tests: migrated once per process, then copied."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from schema_registry.store.database import Database


def new_database(directory: Path) -> Database:
    """An empty database with all tables, in a file of its own; the caller closes it."""
    file = directory / "registry.db"
    file.write_bytes(_migrated())
    return Database(f"sqlite:///{file}")


def new_database_of(kind: str, request: pytest.FixtureRequest, directory: Path) -> Database:
    """The same on `sqlite` or on `postgresql`."""
    if kind == "sqlite":
        return new_database(directory)
    database = Database(request.getfixturevalue("postgres").create_database())
    database.migrate()
    return database


@cache
def _migrated() -> bytes:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "registry.db"
        database = Database(f"sqlite:///{file}")
        database.migrate()
        database.close()
        return file.read_bytes()
