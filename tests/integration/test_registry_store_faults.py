"""The database fails in every way that databases do: clients get errors, nothing is half done, and work resumes."""

import json
import random
import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy import Connection, create_engine, make_url, text

from tests.support.postgres import PostgresServer, running_server
from tests.support.registry import RegistryProcess

CLIENTS = 6
DATABASE_ERRORS = {50001, 50002}

_ORPHANS = """SELECT v.subject, v.version FROM versions v
    LEFT JOIN schemas s ON s.context = v.context AND s.id = v.schema_id WHERE s.id IS NULL"""
_GAPS = """SELECT s.name, s.latest_version, max(v.version), count(v.version) FROM subjects s
    LEFT JOIN versions v ON v.context = s.context AND v.subject = s.name GROUP BY s.name, s.latest_version
    HAVING s.latest_version <> coalesce(max(v.version), 0) OR count(v.version) <> coalesce(max(v.version), 0)"""
_LOW_COUNTERS = """SELECT c.name, c.last_id, max(s.id) FROM contexts c JOIN schemas s ON s.context = c.name
    GROUP BY c.name, c.last_id HAVING max(s.id) > c.last_id"""
_UNUSED = """SELECT s.id FROM schemas s
    LEFT JOIN versions v ON v.context = s.context AND v.schema_id = s.id WHERE v.version IS NULL"""


def schema(number: int) -> str:
    return f'{{"type":"record","name":"R","fields":[{{"name":"f","type":"int","default":{number}}}]}}'


def nothing_is_half_registered(url: str) -> None:
    """Every version has its schema, versions have no gaps, and the counter of ids is beyond all ids."""
    parsed = make_url(url)
    engine = create_engine(parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed)
    with engine.connect() as connection:
        for question in (_ORPHANS, _GAPS, _LOW_COUNTERS, _UNUSED):
            assert _rows(connection, question) == [], question
    engine.dispose()


def _rows(connection: Connection, question: str) -> list[Any]:
    return list(connection.execute(text(question)).all())


class Storm:
    """Clients that register schemas until the block ends; notes the responses."""

    def __init__(self, registry: RegistryProcess) -> None:
        self._registry = registry
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self.acknowledged: dict[int, int] = {}
        self.refused: list[dict[str, Any]] = []

    @contextmanager
    def blowing(self) -> Iterator[None]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self._register, seed) for seed in range(CLIENTS)]
            try:
                self.wait_for(20)
                yield
                self.wait_for(20)
            finally:
                self._is_over.set()
            for client in clients:
                client.result()

    def wait_for(self, more: int) -> None:
        """Until so many more schemas were registered."""
        wanted, deadline = len(self.acknowledged) + more, time.monotonic() + 30
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, self.refused[-3:]
            time.sleep(0.02)

    def wait_for_a_refusal(self) -> None:
        """Wait until a client got an error because of the fault."""
        seen, deadline = len(self.refused), time.monotonic() + 30
        while len(self.refused) == seen:
            assert time.monotonic() < deadline, "no request failed"
            time.sleep(0.02)

    def _register(self, seed: int) -> None:
        chooser = random.Random(seed)
        with httpx2.Client(base_url=self._registry.url, timeout=30) as client:
            while not self._is_over.is_set():
                number = chooser.randrange(10**9)
                answer = client.post(f"/subjects/s{number % 5}/versions", json={"schema": schema(number)})
                with self._lock:
                    if answer.status_code == 200:
                        self.acknowledged[number] = answer.json()["id"]
                    else:
                        self.refused.append(answer.json())

    def everything_holds(self, url: str) -> None:
        """Nothing acknowledged was lost, and all errors came in the envelope."""
        assert {error["error_code"] for error in self.refused} <= DATABASE_ERRORS
        with httpx2.Client(base_url=self._registry.url, timeout=30) as client:
            assert client.get("/health").status_code == 200
            for number, schema_id in list(self.acknowledged.items())[:: max(1, len(self.acknowledged) // 100)]:
                assert client.get(f"/schemas/ids/{schema_id}").json()["schema"] == schema(number)
        nothing_is_half_registered(url)


def health(registry: RegistryProcess) -> int:
    return httpx2.get(f"{registry.url}/health", timeout=30).status_code


def allow_everything(registry: RegistryProcess) -> None:
    httpx2.put(f"{registry.url}/config", json={"compatibility": "NONE"}, timeout=30).raise_for_status()


# --- PostgreSQL ---


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A server that these tests may stop."""
    with running_server() as server:
        yield server


@pytest.fixture
def url(own_postgres: PostgresServer) -> str:
    return own_postgres.create_database()


@pytest.fixture
def on_postgres(tmp_path: Path, url: str) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path, settings={"database.url": url, "database.timeout.ms": "1000"}) as registry:
        allow_everything(registry)
        yield registry


def as_operator(url: str) -> "psycopg.Connection[Any]":
    parsed = make_url(url)
    return psycopg.connect(
        host=str(parsed.query["host"]), user=parsed.username, dbname=parsed.database, autocommit=True
    )


def end_all_sessions(operator: "psycopg.Connection[Any]") -> None:
    operator.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


@pytest.mark.timeout(120)
def test_a_server_that_crashes_and_comes_back_is_used_again(
    on_postgres: RegistryProcess, own_postgres: PostgresServer, url: str
) -> None:
    storm = Storm(on_postgres)
    with storm.blowing():
        own_postgres.stop()
        storm.wait_for_a_refusal()
        assert health(on_postgres) == 503
        own_postgres.start()
    storm.everything_holds(url)


@pytest.mark.timeout(120)
def test_sessions_that_the_server_ends_are_replaced(on_postgres: RegistryProcess, url: str) -> None:
    storm = Storm(on_postgres)
    with storm.blowing(), as_operator(url) as operator:
        for _ in range(10):
            end_all_sessions(operator)
            storm.wait_for(10)
    storm.everything_holds(url)


@pytest.mark.timeout(120)
def test_a_lock_held_by_another_session_is_waited_for_a_bounded_time(on_postgres: RegistryProcess, url: str) -> None:
    storm = Storm(on_postgres)
    with storm.blowing(), as_operator(url) as operator, operator.transaction():
        operator.execute("LOCK TABLE contexts IN ACCESS EXCLUSIVE MODE")
        storm.wait_for_a_refusal()
        assert health(on_postgres) == 200
    storm.everything_holds(url)
    assert 50002 in {error["error_code"] for error in storm.refused}


@pytest.mark.timeout(120)
def test_a_database_that_became_read_only_is_reported_and_still_read(on_postgres: RegistryProcess, url: str) -> None:
    storm = Storm(on_postgres)
    name = make_url(url).database
    with storm.blowing(), as_operator(url) as operator:
        operator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        end_all_sessions(operator)
        storm.wait_for_a_refusal()
        assert httpx2.get(f"{on_postgres.url}/subjects", timeout=30).status_code == 200
        operator.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
        end_all_sessions(operator)
    storm.everything_holds(url)


@pytest.mark.timeout(120)
def test_a_server_without_a_free_connection_is_reported(on_postgres: RegistryProcess, url: str) -> None:
    others = []
    with as_operator(url) as operator:
        end_all_sessions(operator)
        try:
            while True:
                others.append(as_operator(url))
        except psycopg.OperationalError:
            pass
        answer = httpx2.get(f"{on_postgres.url}/subjects", timeout=30)
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50001)
        assert health(on_postgres) == 503
    for other in others:
        other.close()
    on_postgres.register("s")
    nothing_is_half_registered(url)


# --- SQLite ---


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path, settings={"database.timeout.ms": "500"}) as registry:
        allow_everything(registry)
        yield registry


def file_of(registry: RegistryProcess) -> Path:
    return registry.directory / "registry.db"


@pytest.mark.timeout(120)
def test_a_full_disk_is_reported_until_there_is_room_again(on_sqlite: RegistryProcess) -> None:
    storm = Storm(on_sqlite)
    _, hard = resource.prlimit(on_sqlite.pid, resource.RLIMIT_FSIZE)
    with storm.blowing():
        resource.prlimit(on_sqlite.pid, resource.RLIMIT_FSIZE, (8192, hard))
        storm.wait_for_a_refusal()
        assert httpx2.get(f"{on_sqlite.url}/subjects", timeout=30).status_code == 200
        resource.prlimit(on_sqlite.pid, resource.RLIMIT_FSIZE, (hard, hard))
    storm.everything_holds(f"sqlite:///{file_of(on_sqlite)}")


@pytest.mark.timeout(120)
def test_a_file_that_another_process_has_locked_is_waited_for_a_bounded_time(on_sqlite: RegistryProcess) -> None:
    storm = Storm(on_sqlite)
    with storm.blowing(), closing(sqlite3.connect(file_of(on_sqlite), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        storm.wait_for_a_refusal()
        assert health(on_sqlite) == 200
        other.execute("ROLLBACK")
    storm.everything_holds(f"sqlite:///{file_of(on_sqlite)}")
    assert {error["error_code"] for error in storm.refused} == {50002}


def test_a_file_of_garbage_is_reported(on_sqlite: RegistryProcess) -> None:
    on_sqlite.register("s")
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file_of(on_sqlite)}{suffix}").write_bytes(b"garbage!" * 10_000)
    answers = [
        httpx2.post(f"{on_sqlite.url}/subjects/s/versions", json={"schema": schema(n)}, timeout=30) for n in range(3)
    ]
    errors = [(answer.status_code, answer.json()["error_code"]) for answer in answers]
    assert errors == [(500, 50001)] * 3
    assert health(on_sqlite) == 503
    assert on_sqlite.is_running


# --- migrations ---


def kill_while_it_starts(registry: RegistryProcess, after_s: float) -> None:
    registry.launch()
    time.sleep(after_s)  # any moment will do: what is tested is that none is wrong
    registry.kill()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_migration_that_was_killed_is_done_by_the_next_start(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    make: dict[str, Callable[[], str]] = {
        "sqlite": lambda: f"sqlite:///{tmp_path}/registry.db",
        "postgresql": lambda: str(request.getfixturevalue("own_postgres").create_database()),
    }
    url = make[kind]()
    registry = RegistryProcess(tmp_path / "registry", settings={"database.url": url})
    for hundredths in range(70, 170, 30):
        kill_while_it_starts(registry, hundredths / 100)
    with registry:
        assert registry.register("s", json.dumps("int")).id == 1
    nothing_is_half_registered(url)
