"""The database: transactions that are run again when they should be, and failures with a name."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, text

from schema_registry.errors import RegistryError
from schema_registry.store import contexts
from schema_registry.store.database import Database
from schema_registry.store.tables import contexts as table
from tests.support.postgres import PostgresServer, running_server


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return contexts.names(connection)


def add(name: str, connection: Connection) -> None:
    connection.execute(insert(table).values(name=name, last_id=0))


def test_a_write_is_there_when_it_returns(database: Database) -> None:
    database.write(lambda connection: add(".x", connection))
    assert names(database) == [".", ".x"]


def test_a_failed_write_leaves_nothing_behind(database: Database) -> None:
    def fail(connection: Connection) -> None:
        add(".x", connection)
        raise RegistryError(42201, "no")

    with pytest.raises(RegistryError, match="no"):
        database.write(fail)
    assert names(database) == ["."]


def test_a_lost_race_is_run_again(database: Database) -> None:
    attempts: list[int] = []

    def lose_once(connection: Connection) -> None:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            add(".", connection)  # is there already: as if another registry had been faster
        add(".x", connection)

    database.write(lose_once)
    assert attempts == [0, 1]
    assert names(database) == [".", ".x"]


def test_races_that_are_lost_for_ever_end(database: Database) -> None:
    with pytest.raises(RegistryError) as failed:
        database.write(lambda connection: add(".", connection))
    assert failed.value.code == 50001


def test_a_broken_statement_is_a_failure_of_the_store(database: Database) -> None:
    with pytest.raises(RegistryError) as failed, database.read() as connection:
        connection.execute(text("SELECT something FROM nowhere"))
    assert failed.value.code == 50001
    assert "nowhere" in failed.value.message


def test_many_writers_lose_no_update(database: Database) -> None:
    with ThreadPoolExecutor(16) as pool:
        taken = list(pool.map(lambda _: database.write(lambda c: contexts.take_id(c, ".")), range(100)))
    assert sorted(taken) == list(range(1, 101))


def test_a_wait_for_a_lock_ends_with_a_timeout(url: str) -> None:
    _migrate(url)
    database = Database(url, timeout_seconds=1)
    is_held, may_end = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        contexts.take_id(connection, ".")
        is_held.set()
        may_end.wait(30)

    holder = threading.Thread(target=lambda: database.write(hold))
    holder.start()
    try:
        assert is_held.wait(60)
        with pytest.raises(RegistryError) as failed:
            database.write(lambda connection: contexts.take_id(connection, "."))
        assert failed.value.code == 50002
    finally:
        may_end.set()
        holder.join()
        database.close()


def test_readers_do_not_wait_for_a_writer(database: Database) -> None:
    def read_meanwhile(connection: Connection) -> list[str]:
        add(".x", connection)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(names, database).result(timeout=60)

    assert database.write(read_meanwhile) == ["."]


def test_more_readers_than_connections_wait_for_one(url: str) -> None:
    _migrate(url)
    database = Database(url, pool_size=1, timeout_seconds=1)
    with database.read(), pytest.raises(RegistryError) as failed, database.read():
        pass
    assert failed.value.code == 50002
    database.close()


def test_the_folder_of_an_sqlite_file_is_made(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/not/there/registry.db")
    database.migrate()
    assert names(database) == ["."]
    database.close()


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="database.url: cannot create the folder .*/file/below: Not a directory"):
        Database(f"sqlite:///{tmp_path}/file/below/registry.db")


def test_sqlite_survives_a_power_loss(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/registry.db")
    with database.read() as connection:
        asked = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")]
        assert asked == ["wal", 2]
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
    database.close()


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://host/name", "sqlite://", "sqlite:///:memory:", "postgresql+psycopg2://host/name"]
)
def test_databases_that_are_not_supported_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"database\.url"):
        Database(url)


def test_a_server_that_is_not_there_is_a_failure_of_the_store() -> None:
    database = Database("postgresql://nobody@127.0.0.1:1/nothing", timeout_seconds=1)
    with pytest.raises(RegistryError) as failed:
        database.ping()
    assert failed.value.code == 50001
    with pytest.raises(RegistryError) as failed:
        database.write(lambda connection: connection.execute(select(1)))
    assert failed.value.code == 50001


@pytest.mark.processes
def test_a_restarted_server_is_found_again() -> None:
    with running_server(fsync=True) as server:
        database = Database(server.create_database(), timeout_seconds=10)
        database.migrate()
        database.write(lambda connection: add(".x", connection))
        server.stop(immediately=True)
        with pytest.raises(RegistryError) as failed:
            database.ping()
        assert failed.value.code == 50001
        server.start()
        assert names(database) == [".", ".x"]
        database.write(lambda connection: add(".y", connection))
        assert names(database) == [".", ".x", ".y"]
        database.close()


@pytest.mark.processes
def test_a_connection_that_is_cut_in_a_transaction_is_replaced(postgres: PostgresServer) -> None:
    database = Database(postgres.create_database())
    database.migrate()
    attempts: list[int] = []

    def cut_once(connection: Connection) -> None:
        attempts.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        if len(attempts) == 1:
            with database.read() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": attempts[0]})
        add(".x", connection)

    database.write(cut_once)
    assert len(attempts) == 2
    assert names(database) == [".", ".x"]
    database.close()


@pytest.mark.processes
@pytest.mark.parametrize(("seconds", "expected"), [(10, "10s"), (0.1, "100ms")])
def test_postgresql_gets_the_time_out(postgres: PostgresServer, seconds: float, expected: str) -> None:
    database = Database(postgres.create_database(), timeout_seconds=seconds)
    with database.read() as connection:
        for name in ("statement_timeout", "lock_timeout"):
            assert connection.execute(text(f"SHOW {name}")).scalar() == expected
    database.close()


@pytest.mark.processes
def test_a_postgresql_database_without_an_encoding_serves_as_well(postgres: PostgresServer) -> None:
    database = Database(postgres.create_database(encoding="SQL_ASCII"))
    database.migrate()
    database.write(lambda connection: add(".caudal-é", connection))
    assert names(database) == [".", ".caudal-é"]
    database.close()


def _migrate(url: str) -> None:
    """Make all tables, with more time than the test's own database has for anything."""
    database = Database(url)
    database.migrate()
    database.close()
