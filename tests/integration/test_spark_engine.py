"""The engine as its clients, notebooks and operators meet it."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from deploy.doctor import data as doctor
from deploy.doctor.finding import Context, Level
from deploy.launcher.state import PlatformState, SparkState
from streams.errors import EngineError, EngineUnavailable, JavaMissing
from streams.settings import SparkSettings
from streams.spark.engine.class_archive import archive_file, make_archive
from streams.spark.engine.client import Engine
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.messages import Answer, JobStatus
from streams.spark.engine.wire import Channel
from tests.support.command import Caudal
from tests.support.service import REPOSITORY
from tests.support.spark_engine import (
    QUICK,
    end_engine,
    engine_settings,
    family_of,
    is_alive,
    java_of,
    patiently,
    plugins_for_tests,
    python_workers,
    running_engine,
    wait_until_gone,
)
from tests.support.spark_java import needs_java

pytestmark = [needs_java, pytest.mark.timeout(900)]

_OWNER: Final = """
import sys
from tests.support.spark_engine import engine_settings
from streams.spark.engine.client import Engine
from pathlib import Path
engine = Engine.connect(engine_settings(Path(sys.argv[1])))
engine.run(sys.argv[2], "ticking", {"file": sys.argv[3]})
print("runs", flush=True)
sys.stdin.read()
"""
_SELECT: Final = """
import sys
from pyspark.sql import SparkSession
print("selected", SparkSession.builder.remote(sys.argv[1]).getOrCreate().sql("SELECT 1").collect())
"""
_FOR_EACH_BATCH: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
folder = sys.argv[2]
def note(rows, number):
    from pathlib import Path
    Path(folder, f"batch-{number}").write_text(str(rows.count()))
stream = spark.readStream.format("rate").option("rowsPerSecond", 100).load().writeStream.foreachBatch(note)
query = stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(processingTime="1 second").start()
import time
from pathlib import Path
deadline = time.monotonic() + 180
while len(list(Path(folder).glob("batch-*"))) < 3 and query.isActive and time.monotonic() < deadline:
    time.sleep(0.2)
if query.exception() is not None:
    raise query.exception()
query.stop()
spark.stop()
"""
_ATTACHED: Final = """
import sys, time
spark.sql("CREATE TABLE notes (a INT) USING parquet").collect()
spark.sql("INSERT INTO notes VALUES (1)").collect()
print(spark.table("notes").count(), flush=True)
sys.stdin.readline()
deadline = time.monotonic() + 120
while (seen := spark.table("notes").count()) < 3 and time.monotonic() < deadline:
    time.sleep(0.1)
print(seen, flush=True)
try:
    spark.read.format("caudal").load().schema
except Exception as error:
    print("DATA_SOURCE_NOT_FOUND" in str(error), flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugins_for_tests(tmp_path_factory.mktemp("plugins")):
        yield


@pytest.fixture(scope="module")
def archive() -> Path:
    """Spark's classes, as `caudal spark prepare` keeps them."""
    file = archive_file(os.environ)
    return file if file.is_file() else make_archive(os.environ)


@pytest.fixture(scope="module")
def settings(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> SparkSettings:
    return engine_settings(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def engines(settings: SparkSettings) -> Iterator[list[Engine]]:
    """Two clients that found no engine at the same moment."""
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(Engine.connect, [settings, settings]))
    yield found
    for engine in found:
        engine.close()
    end_engine(settings)


@pytest.fixture(scope="module")
def engine(engines: list[Engine]) -> Engine:
    return engines[0]


# --- one engine for all ---


def test_clients_that_come_at_the_same_time_share_one_engine(engines: list[Engine], settings: SparkSettings) -> None:
    running = Engine.running(settings)
    assert running is not None
    with running:
        assert {running.info.pid, engines[0].info.pid, engines[1].info.pid} == {engines[0].info.pid}


def test_java_takes_its_classes_from_the_archive(engine: Engine, archive: Path) -> None:
    assert str(archive.resolve()) in {part.path for part in java_of(engine).memory_maps()}


def test_an_engine_is_for_its_owner_alone(engine: Engine, settings: SparkSettings) -> None:
    assert (settings.data_dir / "engine.sock").stat().st_mode & 0o077 == 0
    assert (settings.data_dir / "spark.properties").stat().st_mode & 0o077 == 0


def test_statements_are_answered_with_columns_types_and_rows(engine: Engine) -> None:
    answer = engine.call("sql", statement="SELECT id, DATE'2026-01-02' AS day FROM range(5) ORDER BY id;", limit=2)
    assert answer == {
        "columns": [{"name": "id", "type": "bigint"}, {"name": "day", "type": "date"}],
        "rows": [[0, "2026-01-02"], [1, "2026-01-02"]],
        "truncated": True,
    }


@pytest.mark.parametrize(
    ("statement", "kind", "said"),
    [
        ("SELECT * FROM nowhere", "AnalysisException", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("SELEC 1", "ParseException", "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'"),
        ("SELECT id / (id - id) FROM range(1)", "ArithmeticException", "[DIVIDE_BY_ZERO] Division by zero"),
        ("SELECT nothing FROM range(1)", "AnalysisException", "[UNRESOLVED_COLUMN"),
        ("", "WrongOption", "statement"),
    ],
)
def test_what_is_wrong_with_a_statement_is_reported_without_java(
    engine: Engine, statement: str, kind: str, said: str
) -> None:
    with pytest.raises(EngineError) as refusal:
        engine.call("sql", statement=statement)
    assert refusal.value.kind == kind
    assert said in str(refusal.value)
    assert not [word for word in ("org.apache", "Traceback", "SQLSTATE", "+- ") if word in str(refusal.value)]


def test_an_error_in_a_python_worker_is_reported_by_its_own_last_line(engine: Engine) -> None:
    with pytest.raises(EngineError, match="^ValueError: this row is bad$"):
        engine.call("fail-in-worker")


def test_nothing_but_known_operations_and_jobs_can_be_asked_for(engine: Engine) -> None:
    with pytest.raises(EngineError, match="there is no operation 'os.system'; there are: .*busy-worker.*sql"):
        engine.call("os.system")
    with pytest.raises(EngineError, match="there is no job 'subprocess'; there are: .*ticking"):
        engine.run("x", "subprocess", {})


def test_tables_and_what_is_in_them_are_listed(engine: Engine) -> None:
    engine.call(
        "sql",
        statement="CREATE TABLE sales (amount DECIMAL(9,2), at TIMESTAMP, country STRING) "
        "USING parquet PARTITIONED BY (country)",
    )
    engine.call("sql", statement="INSERT INTO sales VALUES (1.5, NULL, 'de'), (2.5, NULL, 'es'), (3, NULL, 'es')")
    (listed,) = [table for table in engine.call("tables") if table["name"] == "sales"]
    assert {key: listed[key] for key in ("format", "rows", "files", "partitioned_by")} == {
        "format": "parquet",
        "rows": 3,
        "files": 2,
        "partitioned_by": ["country"],
    }
    described = engine.call("describe", table="sales")
    assert described["columns"] == {"amount": "decimal(9,2)", "at": "timestamp", "country": "string"}
    assert described["location"] == listed["location"]


@pytest.mark.parametrize("token", [None, "guessed"])
def test_a_notebook_without_the_token_is_refused(engine: Engine, token: str | None) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _SELECT, engine.info.connect_url or ""]
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_CONNECT_AUTHENTICATE_TOKEN"}
    if token is not None:
        environment["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode != 0
    assert "UNAUTHENTICATED" in done.stderr
    assert "selected" not in done.stdout


def test_a_notebook_runs_its_own_code_on_the_batches_of_a_stream(
    engine: Engine, caudal: Caudal, tmp_path: Path
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _FOR_EACH_BATCH, engine.info.connect_url or "", str(tmp_path)]
    environment = {**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": caudal("spark", "token").stdout.strip()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sum(int(file.read_text()) for file in tmp_path.glob("batch-*")) > 0


def test_the_token_is_on_no_command_line_and_in_no_log(engine: Engine, settings: SparkSettings, caudal: Caudal) -> None:
    token = caudal("spark", "token").stdout.strip()
    family = family_of(psutil.Process(engine.info.pid))
    assert [process for process in family if is_alive(process) and token in " ".join(process.cmdline())] == []
    shown = engine.call("sql", statement="SET -v", limit=10_000)
    assert token not in str(shown)
    holders = {
        file.name for file in settings.data_dir.rglob("*") if file.is_file() and token.encode() in file.read_bytes()
    }
    assert holders == {"connect.token", "spark.properties"}
    assert {(settings.data_dir / name).stat().st_mode & 0o777 for name in holders} == {0o600}


def test_folder_and_socket_are_their_owners_alone(engine: Engine, settings: SparkSettings) -> None:
    folder = EngineFolder(settings.data_dir)
    assert folder.path.stat().st_mode & 0o077 == 0
    assert folder.socket.stat().st_mode & 0o177 == 0


def test_the_two_lines_of_the_readme_attach_a_notebook_that_sees_what_comes_after_its_first_look(
    engine: Engine, caudal: Caudal
) -> None:
    url = engine.info.connect_url
    assert url is not None
    readme = (REPOSITORY / "streams" / "README.md").read_text()
    (lines,) = re.findall(r"```python\n(.*\n\n?.*\.remote\(.*\n)```", readme)
    command = [sys.executable, "-W", "ignore", "-c", lines.replace("sc://localhost:15002", url) + _ATTACHED]
    token = caudal("spark", "token").stdout.strip()
    environment = {**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as notebook:
        assert notebook.stdin is not None
        assert notebook.stdout is not None
        assert notebook.stdout.readline() == "1\n"
        assert engine.call("sql", statement="SELECT * FROM notes")["rows"] == [[1]]
        assert engine.call("info")["notebooks"] == 1
        engine.call("sql", statement="INSERT INTO notes VALUES (2), (3)")
        notebook.stdin.write("\n")
        notebook.stdin.flush()
        assert notebook.stdout.readline() == "3\n"
        assert notebook.stdout.readline() == "False\n"
        assert notebook.wait(240) == 0


def test_what_a_client_sets_in_sql_is_its_own(engines: list[Engine]) -> None:
    first, second = engines
    first.call("sql", statement="CREATE TEMPORARY VIEW mine AS SELECT 1 AS a")
    assert first.call("sql", statement="SELECT a FROM mine")["rows"] == [[1]]
    with pytest.raises(EngineError, match="TABLE_OR_VIEW_NOT_FOUND"):
        second.call("sql", statement="SELECT a FROM mine")


# --- calls and jobs belong to connections ---


def test_a_statement_is_cancelled_when_its_client_goes_away(engine: Engine, settings: SparkSettings) -> None:
    client = Engine.connect(settings)
    asked = threading.Thread(target=_ignore_end, args=[client], daemon=True)
    asked.start()
    patiently(lambda: engine.call("active-jobs"))
    client.close()
    patiently(lambda: engine.call("active-jobs"), lambda jobs: not jobs)
    asked.join(120)
    assert not asked.is_alive()


def _ignore_end(client: Engine) -> None:
    with pytest.raises(EngineUnavailable):
        client.call("sql", statement="SELECT sum(sin(a.id * b.id)) FROM range(1000000) a CROSS JOIN range(1000000) b")


def test_a_job_counts_and_ends_when_it_is_stopped(engine: Engine, tmp_path: Path, name: str) -> None:
    notes = tmp_path / "notes"
    engine.run(name, "ticking", {"file": str(notes)})
    patiently(lambda: engine.status(name).counters.get("ticks", 0) > 1)
    assert engine.status(name).state == "running"
    engine.stop(name, timeout_seconds=60)
    assert engine.status(name).state == "ended"
    assert notes.read_text() == "started\nstopped\n"


def test_a_job_that_is_done_ends_by_itself(engine: Engine, tmp_path: Path, name: str) -> None:
    engine.run(name, "ticking", {"file": str(tmp_path / "notes"), "done_after": 2})
    status = patiently(lambda: engine.status(name), lambda status: status.state == "ended")
    assert status.counters == {"ticks": 2}


def test_a_job_that_fails_keeps_its_error_and_is_stopped(engine: Engine, tmp_path: Path, name: str) -> None:
    notes = tmp_path / "notes"
    engine.run(name, "ticking", {"file": str(notes), "fails_after": 1})
    status = patiently(lambda: engine.status(name), lambda status: status.state == "failed")
    assert status.error_kind == "ArithmeticError"
    assert "it must fail" in (status.error or "")
    patiently(lambda: notes.read_text() == "started\nstopped\n")


def test_a_job_of_another_connection_is_stopped_before_one_of_its_name_starts(
    engines: list[Engine], tmp_path: Path, name: str
) -> None:
    old, new = engines
    notes = tmp_path / "notes"
    old.run(name, "ticking", {"file": str(notes), "who": "old "})
    patiently(lambda: old.status(name).state == "running")
    new.run(name, "ticking", {"file": str(notes), "who": "new "})
    patiently(lambda: new.status(name).state == "running")
    assert notes.read_text() == "old started\nold stopped\nnew started\n"
    assert _fenced(old.status(name))
    old.stop(name, timeout_seconds=60)
    assert new.status(name).state == "running"
    new.stop(name, timeout_seconds=60)


def _fenced(status: JobStatus) -> bool:
    return status.state == "failed" and status.error_kind == "Fenced"


def test_jobs_of_a_killed_client_are_stopped_at_once(
    engine: Engine, settings: SparkSettings, tmp_path: Path, name: str
) -> None:
    notes = tmp_path / "notes"
    command = [sys.executable, "-c", _OWNER, str(settings.data_dir), name, str(notes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "runs\n"
        patiently(lambda: notes.exists() and notes.read_text() == "started\n")
        owner.kill()
    patiently(lambda: notes.read_text() == "started\nstopped\n")


def test_a_job_of_somebody_else_is_unknown(engine: Engine) -> None:
    with pytest.raises(EngineError, match="this connection has started no job elsewhere") as refusal:
        engine.status("elsewhere")
    assert refusal.value.kind == "UnknownJob"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">I", 2**31) + b"x",
        struct.pack(">I", 2) + b"{}",
        b"",
    ],
)
def test_a_peer_that_does_not_keep_to_the_protocol_is_hung_up_on(
    engine: Engine, settings: SparkSettings, said: bytes
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(60)
        peer.connect(str(settings.data_dir / "engine.sock"))
        peer.sendall(said)
        peer.shutdown(socket.SHUT_WR)
        assert _heard(peer) == b""
    assert engine.call("sql", statement="SELECT 1")["rows"] == [[1]]


def _heard(peer: socket.socket) -> bytes:
    try:
        return peer.recv(100)
    except ConnectionResetError:
        return b""  # hung up before all was read


def test_a_client_of_another_version_is_refused(engine: Engine, settings: SparkSettings) -> None:
    body = b'{"number":0,"action":{"type":"hello","protocol":999,"version":"9"}}'
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(60)
        peer.connect(str(settings.data_dir / "engine.sock"))
        peer.sendall(struct.pack(">I", len(body)) + body)
        answer = Channel(peer).receive(Answer)
    assert answer is not None
    assert answer.failure is not None
    assert "speaks version 1 of its protocol, the client 999" in answer.failure.message


# --- the command line ---


@pytest.fixture
def caudal(engine: Engine, settings: SparkSettings, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    """The command, with the settings of the engine in its environment."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("CAUDAL_SPARK_CAUDAL_DATA_DIR", str(settings.data_dir))
    return Caudal(monkeypatch)


def test_people_and_programs_read_the_same_rows(caudal: Caudal) -> None:
    statement = "SELECT id, if(id = 1, NULL, 'x,y') AS name FROM range(5) ORDER BY id"
    assert caudal("spark", "sql", statement, "--limit", "2").stdout.split() == [
        "id", "name", "─" * 9, "0", "x,y", "1", "null",
    ]  # fmt: skip
    printed = caudal("spark", "sql", "-", "--csv", "--limit", "2", stdin=f"{statement};\n")
    assert printed.stdout == 'id,name\n0,"x,y"\n1,\n'
    assert "only the first 2 rows; see more with --limit" in printed.stderr
    assert caudal.json("spark", "sql", statement)[:2] == [{"id": 0, "name": "x,y"}, {"id": 1, "name": None}]


def test_a_table_is_looked_at_and_kept_up(caudal: Caudal, engine: Engine) -> None:
    caudal("spark", "sql", "CREATE TABLE small (id BIGINT, at TIMESTAMP) USING parquet")
    for number in range(3):
        caudal("spark", "sql", f"INSERT INTO small VALUES ({number}, TIMESTAMP'2001-01-01 00:00:00')")
    (listed,) = [table for table in caudal.json("spark", "tables") if table["name"] == "small"]
    assert (listed["rows"], listed["files"]) == (3, 3)
    assert "small" in caudal("spark", "tables").stdout
    assert "timestamp" in caudal("spark", "describe", "small").stdout
    assert "would be 3 files removed" in caudal("spark", "compact", "small", "--dry-run").stderr
    assert caudal.json("spark", "compact", "small")["files_added"] == 1
    assert caudal.json("spark", "sql", "SELECT count(*) AS n FROM small") == [{"n": 3}]
    assert "3 rows removed" in caudal("spark", "expire", "small", "--older-than", "30d", "--column", "at").stderr


def test_what_is_not_there_is_reported_with_where_to_look(caudal: Caudal) -> None:
    said = caudal("spark", "describe", "nothing", code=1).stderr
    assert "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nothing` cannot be found" in said
    assert "caudal spark tables" in said


def test_the_status_tells_where_notebooks_connect(caudal: Caudal, engine: Engine) -> None:
    assert engine.info.connect_url is not None
    assert engine.info.connect_url in caudal("spark", "status").stdout
    found = caudal.json("spark", "status")
    assert found["pid"] == engine.info.pid
    assert found["memory_bytes"] > 100_000_000


def test_tables_are_offered_at_tab(caudal: Caudal, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("offered_one", "offered_two"):
        caudal("spark", "sql", f"CREATE TABLE {table} (id BIGINT) USING parquet")
    monkeypatch.setenv("_CAUDAL_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "caudal spark describe offered_")
    monkeypatch.setenv("CAUDAL_COMPLETION_TIMEOUT", "120")
    assert sorted(caudal().stdout.split()) == ["offered_one", "offered_two"]


def test_the_doctor_finds_the_engine_of_a_platform(engine: Engine, settings: SparkSettings, tmp_path: Path) -> None:
    spark = SparkState(data_dir=str(settings.data_dir), connect_port=0, settings={})
    platform = PlatformState(
        pid=os.getpid(), started_ms=0, data=str(tmp_path), state="running", services={}, spark=spark
    )
    (finding,) = doctor.spark(Context(environment={}, data=tmp_path, platform=platform))
    assert finding.level is Level.OK
    assert f"process {engine.info.pid}" in finding.found


# --- life and death ---


def test_an_engine_ends_with_its_java_and_says_so(tmp_path: Path) -> None:
    with running_engine(tmp_path, QUICK) as engine:
        family = family_of(psutil.Process(engine.info.pid))
        java_of(engine).kill()
        wait_until_gone(family)
        with pytest.raises(EngineUnavailable, match="is gone"):
            engine.call("sql", statement="SELECT 1")
    said = (tmp_path / "engine.log").read_text()
    assert '"message": "Java has ended, so the engine ends too", "reason": "it ended with signal 9"' in said


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """What was seen of two engines in one folder, the first started by a client, the second as a command."""

    printed_while_waiting: list[str]
    connected: int
    """The process that a client was connected to that may start none."""
    first: int
    first_ran_beside_second: bool
    second: int
    found: int
    """The process that clients were connected to once the second engine was ready."""
    third: "subprocess.CompletedProcess[str]"
    """Another one as a command, beside the second."""
    ended_with: int
    notes: str
    complaints: str


@pytest.fixture(scope="module")
def succession(tmp_path_factory: pytest.TempPathFactory) -> Succession:
    """One engine after the other: each start of Spark costs seconds of a processor."""
    folder = tmp_path_factory.mktemp("succession")
    settings = engine_settings(folder / "engine", QUICK)
    waiting = engine_settings(folder / "engine", {**QUICK, "spark.caudal.start": "never"})
    notes = folder / "notes"
    command = [sys.executable, "-m", "streams.spark.engine"]
    for key, value in settings.as_text().items():
        command += ["--set", f"{key}={value}"]
    printed: list[str] = []
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(Engine.connect, waiting, on_progress=printed.append)
        patiently(lambda: printed)
        with running_engine(folder / "engine", QUICK) as passing:
            first = psutil.Process(passing.info.pid)
            with asked.result(240) as engine:
                connected = engine.info.pid
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
            ) as process:
                try:
                    assert process.stdout is not None
                    assert process.stderr is not None
                    line = process.stdout.readline()
                    assert line.startswith("caudal spark engine ready: ")
                    assert f" data={settings.data_dir} " in line
                    first_ran_beside_second = first.is_running()
                    third = subprocess.run(
                        command, capture_output=True, text=True, cwd=REPOSITORY, check=False, timeout=240
                    )
                    with Engine.connect(settings) as engine:
                        found = engine.info.pid
                        family = family_of(psutil.Process(process.pid))
                        engine.run("ticks", "ticking", {"file": str(notes)})
                        patiently(notes.exists)
                        process.send_signal(signal.SIGINT)
                        ended_with = process.wait(240)
                    wait_until_gone(family)
                    return Succession(
                        printed_while_waiting=printed,
                        connected=connected,
                        first=first.pid,
                        first_ran_beside_second=first_ran_beside_second,
                        second=process.pid,
                        found=found,
                        third=third,
                        ended_with=ended_with,
                        notes=notes.read_text(),
                        complaints=process.stderr.read(),
                    )
                finally:
                    process.kill()


def test_an_engine_that_others_run_is_waited_for_and_not_started(succession: Succession) -> None:
    waiting, *later = succession.printed_while_waiting
    assert re.fullmatch(r"waiting for the engine of .* \(spark\.caudal\.start=never\)", waiting)
    assert not [line for line in later if line.startswith("starting Spark") or "runs with a different" in line]
    assert succession.connected == succession.first


def test_an_engine_that_is_run_on_purpose_takes_the_place_of_one_that_was_started_in_passing(
    succession: Succession,
) -> None:
    assert not succession.first_ran_beside_second
    assert succession.found == succession.second


def test_an_engine_that_is_run_on_purpose_does_not_take_the_place_of_another_such_one(succession: Succession) -> None:
    assert succession.third.returncode == 3
    assert re.fullmatch(r"an engine is already running in .*\n", succession.third.stderr)


def test_an_engine_in_the_foreground_stays_until_it_is_stopped(succession: Succession) -> None:
    assert succession.ended_with == 0
    assert succession.notes == "started\nstopped\n"
    assert [line for line in succession.complaints.splitlines() if not line.startswith("{")] == []


def test_an_engine_that_nobody_runs_is_not_waited_for_without_end(tmp_path: Path) -> None:
    settings = engine_settings(tmp_path, {"spark.caudal.start": "never", "spark.caudal.start.timeout.ms": "1000"})
    with pytest.raises(EngineUnavailable, match="No engine was started in .* run it with  caudal spark engine"):
        Engine.connect(settings)


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = engine_settings(tmp_path, {**QUICK, "spark.driver.memory": "1k"})
    with pytest.raises(EngineUnavailable, match="did not start: Java ended while Spark started; see ") as refusal:
        Engine.connect(settings, on_progress=lines.append)
    assert str(tmp_path / "engine.log") in str(refusal.value)
    assert lines[0] == f"starting Spark (local[2], 1k of memory) in {tmp_path}"


def test_a_missing_java_is_reported_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="apt-get install openjdk-17-jre-headless"):
        Engine.connect(engine_settings(tmp_path / "engine"))
    assert not (tmp_path / "engine" / "engine.log").exists()
    assert os.environ["PATH"] == str(tmp_path)


def test_nothing_outlives_a_killed_engine_and_the_next_one_takes_its_place(
    engine: Engine, settings: SparkSettings, tmp_path: Path
) -> None:
    """The last test that needs the engine of this file; afterwards there is another one in its folder."""
    busy = tmp_path / "busy"
    asked = threading.Thread(target=_keep_busy, args=[engine, busy], daemon=True)
    asked.start()
    patiently(busy.exists)
    family = family_of(psutil.Process(engine.info.pid))
    assert sum("java" in process.name() for process in family) == 1
    assert len(python_workers(family)) >= 2
    family[0].kill()
    wait_until_gone(family)
    asked.join(120)
    with pytest.raises(EngineUnavailable, match="is gone"):
        engine.status("any")

    idle = engine_settings(settings.data_dir, {**QUICK, "spark.caudal.idle.timeout.ms": "1000"})
    with Engine.connect(idle) as again:
        assert again.call("sql", statement="SELECT 1")["rows"] == [[1]]
        family = family_of(psutil.Process(again.info.pid))
    wait_until_gone(family)
    assert Engine.running(settings) is None
    assert "engine is no longer used" in (settings.data_dir / "engine.log").read_text()


def _keep_busy(engine: Engine, busy: Path) -> None:
    with pytest.raises(EngineUnavailable):
        engine.call("busy-worker", file=str(busy))
