"""protoc as a function: text in, descriptors out. It runs in a separate process."""

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
"""Time-out for a reply; the process itself stops earlier, unless it is suspended or gets no processor time."""
MAX_ERRORS_SHOWN = 10
MAX_ERROR_CHARACTERS = 2000
_GAVE_UP = "the Protobuf compiler gave up on this schema"
_CRASHES = frozenset({-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS})
"""Exit codes that the schema caused, and would cause again."""
_WARNING = re.compile(r"(\S+:)?\d+:\d+: warning: |WARNING: |W\d{4} ")


class CompileError(InvalidSchema):
    """protoc found errors; `errors` has all of them, the message the first ones."""

    def __init__(self, errors: str) -> None:
        lines = [line for line in errors.splitlines() if line and not _WARNING.match(line)]
        message = "; ".join(lines[:MAX_ERRORS_SHOWN])[:MAX_ERROR_CHARACTERS]
        super().__init__(message or "the Protobuf compiler refused this schema")
        self.errors = errors


class Compiler:
    """One protoc process, started when it is first needed and replaced when it dies. Thread-safe and fork-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process_id(self) -> int | None:
        """The id of the current process."""
        return self._process.pid if self._process else None

    def compile(self, text: str, *, name: str, dependencies: FileDescriptorSet) -> FileDescriptorSet:
        """The file's descriptor after those of all its imports; raises InvalidSchema with protoc's errors."""
        request = msgspec.msgpack.encode(
            CompileRequest(name, text.encode(errors="replace"), dependencies.SerializeToString())
        )
        with self._lock:
            reply = self._ask(request) or self._ask(request)
        if reply is None:
            raise InvalidSchema(_GAVE_UP)
        if reply.errors or not reply.descriptor_set:
            raise CompileError(reply.errors)
        return FileDescriptorSet.FromString(reply.descriptor_set)

    def close(self) -> None:
        """Stop the process; the next call starts another one."""
        with self._lock:
            self._stop()

    def detach(self) -> None:
        """Let go of the process in a forked child: it belongs to the parent."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe:
                # Left open in the child, it would keep the process alive after the parent has ended.
                pipe.close()
        process.returncode = 0

    def _ask(self, request: bytes) -> CompileReply | None:
        """Send a request and wait for the reply; None if the process died, but not because of the schema."""
        process = self._process = self._process or _start()
        try:
            return _exchange(process, request)
        except TimeoutError:
            self._stop()
            raise InvalidSchema("the schema takes too long to compile") from None
        except (OSError, EOFError):
            self._stop()
            if process.returncode == -signal.SIGPROF:
                raise InvalidSchema("the schema takes too long to compile") from None
            if process.returncode in _CRASHES:
                raise InvalidSchema(_GAVE_UP) from None
            if process.returncode >= 0:
                raise RuntimeError("the Protobuf compiler cannot be started") from None
            return None

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # If the process has ended by itself the kill does nothing, and its exit status is kept.
        process.kill()
        with process:
            pass


def _start() -> subprocess.Popen[bytes]:
    # The child must find the same modules as we do, whether they are installed, on the path or shipped by Spark.
    path = os.pathsep.join(entry or str(os.curdir) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "schema_registry.formats.protobuf_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        # Ctrl-C in a terminal must only reach the service, which closes its end of the pipe when it stops.
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
    # A suspended process does not read from the pipe, so a blocking write could wait forever.
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


_shared = Compiler()
os.register_at_fork(after_in_child=_shared.detach)
atexit.register(_shared.close)


def compile_text(text: str, *, name: str, dependencies: FileDescriptorSet) -> FileDescriptorSet:
    """Compile with the shared compiler of this process."""
    return _shared.compile(text, name=name, dependencies=dependencies)
