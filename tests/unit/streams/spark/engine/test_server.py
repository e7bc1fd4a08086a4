"""Server and client on a real socket, with services that need no Spark."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from streams.errors import EngineError, EngineUnavailable
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.engine.folder import EngineFolder, FolderLock
from streams.spark.engine.job import Job
from streams.spark.engine.jobs import Jobs, RunningJob
from streams.spark.engine.messages import MESSAGE_BYTES_MAX, PROTOCOL, EngineInfo
from streams.spark.engine.server import Server
from tests.support.admin import eventually


class Stubborn(Job):
    """Runs until it is stopped, and takes its time for that if its spec says so."""

    release = threading.Event()

    @override
    def start(self) -> None:
        if self.spec == "no start":
            raise OSError("cannot start")

    @override
    def check(self) -> None:
        pass

    @override
    def stop(self) -> None:
        if self.spec == "slow":
            self.release.wait(30)
        if self.spec == "no stop":
            raise OSError("cannot stop")


class Answers:
    """Operations by their names."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled

    def carry_out(self, operation: str, arguments: dict[str, Any]) -> Any:
        match operation:
            case "echo":
                return arguments
            case "large":
                return "x" * (MESSAGE_BYTES_MAX + 1)
            case "wait":
                self._cancelled.wait(30)
                return None
            case "unsayable":
                return object()
            case _:
                raise EngineError("UnknownOperation", operation)

    def cancel(self) -> None:
        self._cancelled.set()


class World:
    """The services of an engine without Spark."""

    def __init__(self) -> None:
        self.jobs = Jobs()
        self.has_quit = threading.Event()
        self.cancelled = threading.Event()
        self.info = EngineInfo(
            protocol=PROTOCOL, version="1", pid=1, spark_version="4", master="local", connect_url=None,
            warehouse="/w", log="/l", settings={},
        )  # fmt: skip

    def calls(self) -> Answers:
        return Answers(self.cancelled)

    def run(self, name: str, job: str, spec: Any) -> RunningJob:
        context: Any = None
        return self.jobs.run(name, lambda: Stubborn(context, name, spec))

    def quit(self) -> None:
        self.has_quit.set()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def connect(tmp_path: Path, world: World) -> Iterator[Callable[[], Engine]]:
    settings = SparkSettings(spark_caudal_data_dir=str(tmp_path))
    server = Server(tmp_path / "engine.sock", world)
    engines: list[Engine] = []

    def connected() -> Engine:
        engines.append(Engine.connect(settings))
        return engines[-1]

    yield connected
    for engine in engines:
        engine.close()
    server.close()


Connect = Callable[[], Engine]


def test_calls_are_answered(connect: Connect, world: World) -> None:
    engine = connect()
    assert engine.info == world.info
    assert engine.call("echo", a=[1, {"b": None}]) == {"a": [1, {"b": None}]}


def test_a_call_that_takes_long_does_not_keep_the_others_waiting(connect: Connect, world: World) -> None:
    engine = connect()
    slow = threading.Thread(target=engine.call, args=["wait"], daemon=True)
    slow.start()
    assert engine.call("echo", a=1) == {"a": 1}
    assert slow.is_alive()
    world.cancelled.set()
    slow.join(60)
    assert not slow.is_alive()


def test_too_many_calls_at_once_are_refused(connect: Connect, world: World) -> None:
    engine = connect()

    def wait() -> None:
        with suppress(EngineError):  # more than there is room for
            engine.call("wait")

    slow = [threading.Thread(target=wait, daemon=True) for _ in range(80)]
    for thread in slow:
        thread.start()

    def refused() -> str:
        try:
            engine.run("x", "any", None)
        except EngineError as error:
            return error.kind
        return ""

    eventually(refused, lambda kind: kind == "Busy")
    world.cancelled.set()
    for thread in slow:
        thread.join(60)


def test_calls_are_cancelled_when_their_connection_ends(connect: Connect, world: World) -> None:
    engine = connect()
    ended: list[type] = []

    def ask() -> None:
        try:
            engine.call("wait")
        except EngineUnavailable as error:
            ended.append(type(error))

    asked = threading.Thread(target=ask, daemon=True)
    asked.start()
    engine.close()
    assert world.cancelled.wait(60)
    asked.join(60)
    assert ended == [EngineUnavailable]


@pytest.mark.parametrize(
    ("operation", "kind"), [("large", "AnswerTooLarge"), ("unsayable", "TypeError"), ("x", "UnknownOperation")]
)
def test_an_answer_that_cannot_be_sent_is_an_error(connect: Connect, operation: str, kind: str) -> None:
    engine = connect()
    with pytest.raises(EngineError) as refusal:
        engine.call(operation)
    assert refusal.value.kind == kind
    assert engine.call("echo") == {}


def test_a_request_that_is_too_long_is_not_even_sent(connect: Connect) -> None:
    engine = connect()
    with pytest.raises(EngineError, match="too long"):
        engine.call("echo", a="x" * MESSAGE_BYTES_MAX)
    assert engine.call("echo") == {}


@pytest.mark.parametrize(
    ("spec", "state", "kind"),
    [(None, "ended", None), ("no start", "failed", "OSError"), ("no stop", "failed", "OSError")],
)
def test_how_a_job_ended_is_known_to_its_owner(
    connect: Connect, spec: str | None, state: str, kind: str | None
) -> None:
    engine = connect()
    engine.run("job", "stubborn", spec)
    engine.stop("job", timeout_seconds=60)
    status = engine.status("job")
    assert (status.state, status.error_kind) == (state, kind)


def test_a_job_that_does_not_end_in_time_is_reported(connect: Connect) -> None:
    Stubborn.release.clear()
    engine = connect()
    engine.run("job", "stubborn", "slow")
    eventually(lambda: engine.status("job").state == "running")
    with pytest.raises(EngineError, match="did not end within 0.1 s"):
        engine.stop("job", timeout_seconds=0.1)
    Stubborn.release.set()
    engine.stop("job", timeout_seconds=60)
    assert engine.status("job").state == "ended"


def test_two_jobs_of_one_name_never_run_at_the_same_time(connect: Connect, world: World) -> None:
    Stubborn.release.clear()
    old, new = connect(), connect()
    old.run("job", "stubborn", "slow")
    eventually(lambda: old.status("job").state == "running")
    taking = threading.Thread(target=new.run, args=["job", "stubborn", None], daemon=True)
    taking.start()
    eventually(lambda: old.status("job").error_kind == "Fenced")
    assert taking.is_alive()
    with pytest.raises(EngineError, match="has started no job"):
        new.status("job")
    Stubborn.release.set()
    taking.join(60)
    eventually(lambda: new.status("job").state == "running")
    assert old.status("job").state == "failed"


def test_jobs_end_with_their_connection(connect: Connect, world: World) -> None:
    engine = connect()
    engine.run("job", "stubborn", None)
    assert "job" in world.jobs.statuses()
    engine.close()
    eventually(world.jobs.statuses, lambda left: not left)


def test_an_engine_can_be_asked_to_end(connect: Connect, world: World) -> None:
    connect().quit()
    assert world.has_quit.wait(60)


def test_a_socket_that_a_killed_engine_left_behind_is_replaced(tmp_path: Path, world: World) -> None:
    path = tmp_path / "engine.sock"
    for _ in range(2):  # the second finds the socket of the first
        server = Server(path, world)
        assert path.stat().st_mode & 0o077 == 0
        server.close()
    assert Engine.running(SparkSettings(spark_caudal_data_dir=str(tmp_path))) is None


def test_clients_learn_that_the_engine_has_other_settings(tmp_path: Path, world: World) -> None:
    server = Server(tmp_path / "engine.sock", world)
    lines: list[str] = []
    settings = SparkSettings(spark_caudal_data_dir=str(tmp_path), spark_master="x")
    Engine.connect(settings, on_progress=lines.append).close()
    assert lines == [f"the engine in {tmp_path} runs with a different spark.master; stop it to apply yours"]
    server.close()


def test_an_engine_of_another_version_is_refused_with_how_to_end_it(tmp_path: Path) -> None:
    failure = b'{"number":0,"failure":{"kind":"OtherVersion","message":"this engine speaks version 7"}}'
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(tmp_path / "engine.sock"))
        listening.listen()
        threading.Thread(target=_answer_once, args=[listening, failure], daemon=True).start()
        message = "speaks version 7. It belongs to another version of Caudal: end its"
        with pytest.raises(EngineUnavailable, match=message):
            Engine.connect(SparkSettings(spark_caudal_data_dir=str(tmp_path)))


def _answer_once(listening: socket.socket, body: bytes) -> None:
    peer, _ = listening.accept()
    with peer:
        peer.recv(1000)
        peer.sendall(len(body).to_bytes(4, "big") + body)


def test_a_client_that_comes_while_an_engine_ends_waits_for_the_next_one(tmp_path: Path, world: World) -> None:
    path = tmp_path / "engine.sock"
    ending = Server(path, world)
    assert ending.close_unless_used()
    settings = SparkSettings(spark_caudal_data_dir=str(tmp_path))
    lock = FolderLock.try_acquire(EngineFolder(tmp_path))  # so that the client starts no engine itself
    assert lock is not None
    assert Engine.running(settings) is None
    found: list[Engine] = []
    waiting = threading.Thread(target=lambda: found.append(Engine.connect(settings)), daemon=True)
    waiting.start()
    ending.close()
    following = Server(path, world)
    waiting.join(60)
    assert [engine.info for engine in found] == [world.info]
    assert not following.close_unless_used()
    found[0].close()
    eventually(following.close_unless_used)
    following.close()
    lock.release()
