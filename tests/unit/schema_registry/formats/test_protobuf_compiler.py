"""The protoc process: it is replaced when it dies, and never outlives its parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schema_registry.formats.protobuf_compiler import Compiler
from schema_registry.formats.schema import InvalidSchema

pytestmark = pytest.mark.processes

TEXT = 'syntax = "proto3"; message A {}'
NOTHING = FileDescriptorSet()


@pytest.fixture
def compiler() -> Iterator[Compiler]:
    compiler = Compiler()
    yield compiler
    compiler.close()


def compiled(compiler: Compiler, text: str = TEXT) -> list[str]:
    files = compiler.compile(text, name="default", dependencies=NOTHING)
    return [message.name for message in files.file[-1].message_type]


def process(compiler: Compiler) -> int:
    assert compiler.process_id is not None
    return compiler.process_id


def test_one_process_serves_all_requests(compiler: Compiler) -> None:
    compiled(compiler)
    first = process(compiler)
    compiled(compiler, 'syntax = "proto3"; message B {}')
    assert process(compiler) == first


def test_an_error_does_not_cost_the_process(compiler: Compiler) -> None:
    compiled(compiler)
    first = process(compiler)
    with pytest.raises(InvalidSchema, match="1:1: "):
        compiled(compiler, "nonsense {")
    assert process(compiler) == first


def test_a_process_that_was_killed_is_replaced(compiler: Compiler) -> None:
    compiled(compiler)
    first = process(compiler)
    os.kill(first, signal.SIGKILL)
    assert compiled(compiler) == ["A"]
    assert process(compiler) != first


def test_a_process_that_is_killed_in_the_middle_is_replaced(compiler: Compiler) -> None:
    compiled(compiler)
    first = process(compiler)
    # Stopped, it has the request but cannot answer: the kill then hits in the middle for certain.
    os.kill(first, signal.SIGSTOP)
    _wait_until_stopped(first)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(compiled, compiler)
        _wait_until_asked(first)
        os.kill(first, signal.SIGKILL)
        assert answer.result(timeout=60) == ["A"]


def test_a_process_that_does_not_answer_is_given_up(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(compiler)
    monkeypatch.setattr("schema_registry.formats.protobuf_compiler.REPLY_TIMEOUT_SECONDS", 0.2)
    first = process(compiler)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(InvalidSchema, match="too long"):
        compiled(compiler)
    assert not psutil.pid_exists(first)
    monkeypatch.undo()
    assert compiled(compiler) == ["A"]


def test_a_stopped_process_does_not_hold_up_a_large_request(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(compiler)
    monkeypatch.setattr("schema_registry.formats.protobuf_compiler.REPLY_TIMEOUT_SECONDS", 0.2)
    os.kill(process(compiler), signal.SIGSTOP)
    with pytest.raises(InvalidSchema, match="too long"):
        compiled(compiler, TEXT + " " * 1_000_000)


def test_a_large_request_arrives_whole(compiler: Compiler) -> None:
    assert compiled(compiler, " " * 1_000_000 + TEXT) == ["A"]


def test_the_memory_of_the_process_is_bounded(compiler: Compiler) -> None:
    compiled(compiler)
    assert psutil.Process(process(compiler)).rlimit(psutil.RLIMIT_AS) == (1 << 30, 1 << 30)


def test_a_compiler_that_cannot_be_started_is_not_blamed_on_the_schema(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="cannot be started"):
        compiled(compiler)


def test_a_schema_that_crashes_protoc_is_refused_and_the_next_one_compiles(compiler: Compiler) -> None:
    # Ten times as deep as protoc can take, and no deeper: the crash must come before the limit of processor time.
    crashing = (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; message M { M m = 1; }'
        f"extend google.protobuf.FileOptions {{ M m = 5000; }} option (m){'.m' * 1_000} = {{}};"
    )
    with pytest.raises(InvalidSchema, match="gave up"):
        compiled(compiler, crashing)
    assert compiled(compiler) == ["A"]


def test_threads_share_the_process(compiler: Compiler) -> None:
    with ThreadPoolExecutor(8) as pool:
        texts = [f'syntax = "proto3"; message M{number} {{}}' for number in range(100)]
        names = list(pool.map(lambda text: compiled(compiler, text)[0], texts))
    assert names == [f"M{number}" for number in range(100)]


def test_nothing_is_left_after_close(compiler: Compiler) -> None:
    compiled(compiler)
    first = process(compiler)
    compiler.close()
    assert not psutil.pid_exists(first)


FORKING = """
import os, sys
from schema_registry.formats.protobuf import parse
from schema_registry.formats import protobuf_compiler
parse('syntax = "proto3"; message A {}')
parents = protobuf_compiler._shared.process_id
child = os.fork()
if child == 0:
    assert protobuf_compiler._shared.process_id is None
    parse('syntax = "proto3"; message B {}')
    assert protobuf_compiler._shared.process_id not in (None, parents)
    protobuf_compiler._shared.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
parse('syntax = "proto3"; message C {}')
assert protobuf_compiler._shared.process_id == parents
print(parents)
"""
ENDING = """
import os, signal, sys
from schema_registry.formats.protobuf import parse
from schema_registry.formats import protobuf_compiler
parse('syntax = "proto3"; message A {}')
print(protobuf_compiler._shared.process_id, flush=True)
"""


def test_a_forked_child_starts_its_own_process_and_leaves_the_parents_alone() -> None:
    worker = int(_run(FORKING))
    _wait_until_gone(worker)


@pytest.mark.parametrize("ending", ["", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)", "raise SystemExit"])
def test_the_process_ends_with_its_parent(ending: str) -> None:
    worker = int(_run(ENDING + ending))
    _wait_until_gone(worker)


def test_errors_of_protoc_do_not_reach_the_log_of_the_parent(capfd: pytest.CaptureFixture[str]) -> None:
    compiler = Compiler()
    with pytest.raises(InvalidSchema):
        compiled(compiler, "nonsense {")
    compiler.close()
    assert capfd.readouterr() == ("", "")


def _run(program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, timeout=30, check=False
    ).stdout


def _wait_until_stopped(pid: int) -> None:
    """A signal takes effect when the process is next scheduled: until then it could still read a request."""
    for _ in _attempts():
        if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
            return


def _wait_until_asked(pid: int) -> None:
    """Until a stopped process has something to read."""
    import fcntl
    import struct
    import termios

    with open(f"/proc/{pid}/fd/0", "rb", buffering=0) as pipe:  # noqa: PTH123 # a pipe
        for _ in _attempts():
            (waiting,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))
            if waiting:
                return


def _wait_until_gone(pid: int) -> None:
    for _ in _attempts():
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return


def _attempts() -> Iterator[None]:
    deadline = time.monotonic() + 60
    pause = threading.Event()
    while time.monotonic() < deadline:
        yield
        pause.wait(0.005)
    pytest.fail("waited in vain")
