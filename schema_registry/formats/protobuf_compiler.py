"""protoc as a function: text in, descriptors out, at arm's length in a process of its own."""

import atexit
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time

import msgspec
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schema_registry.formats.protobuf_worker import LENGTH, CompileReply, CompileRequest
from schema_registry.formats.schema import InvalidSchema

REPLY_TIMEOUT_SECONDS = 5.0
"""How long an answer is waited for; the process limits itself to less, unless it is stopped or starved."""
MAX_ERRORS_TOLD = 10
MAX_ERROR_CHARACTERS = 2000
_GAVE_UP = "the Protobuf compiler gave up on this schema"
_CRASHES = frozenset({-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS})
"""Ends that the schema brought about; it would do so again."""
_WARNING = re.compile(r"(\S+:)?\d+:\d+: warning: |WARNING: |W\d{4} ")


class Refused(InvalidSchema):
    """protoc found errors; all of them are here, the message tells the first ones."""

    def __init__(self, errors: str) -> None:
        super().__init__(_told(errors))
        self.errors = errors


class Compiler:
    """One protoc process, started on first need, replaced when it dies. Safe to share between threads and to fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process_id(self) -> int | None:
        """Which process compiles at present."""
        return self._process.pid if self._process else None

    def compile(self, text: str, *, name: str, dependencies: FileDescriptorSet) -> FileDescriptorSet:
        """The file's descriptor after those of everything it imports; raises InvalidSchema with protoc's errors."""
        request = msgspec.msgpack.encode(
            CompileRequest(name, text.encode(errors="replace"), dependencies.SerializeToString())
        )
        with self._lock:
            reply = self._ask(request) or self._ask(request)
        if reply is None:
            raise InvalidSchema(_GAVE_UP)
        if reply.errors or not reply.descriptor_set:
            raise Refused(reply.errors)
        return FileDescriptorSet.FromString(reply.descriptor_set)

    def close(self) -> None:
        """End the process; the next call starts another."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """In a forked child: the process belongs to the parent."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe:
                # Held open here, it would keep the process alive after the parent's end.
                pipe.close()
        process.returncode = 0

    def _ask(self, request: bytes) -> CompileReply | None:
        """One exchange; None if the process died of something that is worth a second try."""
        process = self._process = self._process or _start()
        try:
            return _exchange(process, request)
        except TimeoutError:
            self._end()
            raise InvalidSchema("the schema takes too long to compile") from None
        except (OSError, EOFError):
            self._end()
            if process.returncode == -signal.SIGPROF:
                raise InvalidSchema("the schema takes too long to compile") from None
            if process.returncode in _CRASHES:
                raise InvalidSchema(_GAVE_UP) from None
            if process.returncode >= 0:
                raise RuntimeError("the Protobuf compiler does not run") from None
            return None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # What has ended by itself keeps its own exit status: the kill then does nothing.
        process.kill()
        with process:
            pass


def _start() -> subprocess.Popen[bytes]:
    # The same modules must be found whatever way they were found here: installed, by path, or shipped by Spark.
    path = os.pathsep.join(entry or str(os.curdir) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "schema_registry.formats.protobuf_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        # A terminal's Ctrl-C is for the service, which closes its end of the pipe when it stops.
        start_new_session=True,
    )


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> CompileReply:
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + REPLY_TIMEOUT_SECONDS
    _write(process.stdin.fileno(), LENGTH.pack(len(request)) + request, deadline)
    (length,) = LENGTH.unpack(_read(process.stdout.fileno(), LENGTH.size, deadline))
    return msgspec.msgpack.decode(_read(process.stdout.fileno(), length, deadline), type=CompileReply)


def _write(descriptor: int, content: bytes, deadline: float) -> None:
    # A process that is stopped does not empty the pipe, so a plain write could wait for ever.
    os.set_blocking(descriptor, False)
    view = memoryview(content)
    while view:
        if not _is_ready(descriptor, select.POLLOUT, deadline):
            raise TimeoutError
        view = view[os.write(descriptor, view) :]


def _read(descriptor: int, size: int, deadline: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if not _is_ready(descriptor, select.POLLIN, deadline):
            raise TimeoutError
        part = os.read(descriptor, size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _is_ready(descriptor: int, event: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _told(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line and not _WARNING.match(line)]
    return "; ".join(lines[:MAX_ERRORS_TOLD])[:MAX_ERROR_CHARACTERS] or "the Protobuf compiler refused this schema"


_shared = Compiler()
os.register_at_fork(after_in_child=_shared.forget)
atexit.register(_shared.close)


def compile_text(text: str, *, name: str, dependencies: FileDescriptorSet) -> FileDescriptorSet:
    """Compile with the one compiler of this process."""
    return _shared.compile(text, name=name, dependencies=dependencies)
