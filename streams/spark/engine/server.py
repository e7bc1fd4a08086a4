"""The engine's socket: accepts connections, answers requests, and ends a connection's jobs and calls with it."""

import contextlib
import logging
import os
import socket
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, assert_never

import msgspec

from streams.errors import EngineError
from streams.spark.engine.failures import to_failure
from streams.spark.engine.jobs import RunningJob
from streams.spark.engine.messages import (
    JSON,
    PROTOCOL,
    Action,
    Answer,
    Call,
    EngineInfo,
    Failure,
    Hello,
    Quit,
    Request,
    Run,
    Status,
    Stop,
)
from streams.spark.engine.wire import BrokenMessage, Channel

log = logging.getLogger(__name__)

_CONNECTIONS_MAX: Final = 256
_REQUESTS_MAX: Final = 64
_GREETING_TIMEOUT_S: Final = 30.0


class Calls(Protocol):
    """Carries out the operations of one connection."""

    def carry_out(self, operation: str, arguments: dict[str, JSON]) -> JSON:
        """Return the answer of an operation."""
        ...

    def cancel(self) -> None:
        """The client is gone: end what still runs for it."""
        ...


class Services(Protocol):
    """What the engine does for its clients."""

    @property
    def info(self) -> EngineInfo:
        """Its description, sent to each client that connects."""
        ...

    def calls(self) -> Calls:
        """Carries out the operations of a new connection."""
        ...

    def run(self, name: str, job: str, spec: JSON) -> RunningJob:
        """Start a job."""
        ...

    def quit(self) -> None:
        """End the engine."""
        ...


class Server:
    """Listens, and keeps track of the connections."""

    def __init__(self, path: Path, services: Services) -> None:
        self._services = services
        self._connections: set[_Connection] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._calls = ThreadPoolExecutor(max_workers=16, thread_name_prefix="call")
        self._controls = ThreadPoolExecutor(max_workers=16, thread_name_prefix="control")
        self._socket = _listen(path)
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def connections(self) -> int:
        """How many clients are connected."""
        with self._lock:
            return len(self._connections)

    def close_unless_used(self) -> bool:
        """Accept no more connections if there are none; clients that come later start another engine."""
        with self._lock:
            self._is_closed = not self._connections
            return self._is_closed

    def close(self) -> None:
        """Accept no more connections, and end those that are open."""
        with self._lock:
            self._is_closed = True
            connections = list(self._connections)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that accepts
        self._socket.close()
        for connection in connections:
            connection.hang_up()
        self._calls.shutdown(wait=False, cancel_futures=True)
        self._controls.shutdown(wait=False, cancel_futures=True)

    def forget(self, connection: "_Connection") -> None:
        """A connection has ended."""
        with self._lock:
            self._connections.discard(connection)

    def submit(self, action: Action, work: Callable[[], None]) -> None:
        """Do the work of a request in a thread, so that long ones do not hold up the others."""
        with contextlib.suppress(RuntimeError):  # the engine ends, and closes the connection of the waiting client
            (self._calls if isinstance(action, Call) else self._controls).submit(work)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return  # closed
            with self._lock:
                if self._is_closed or len(self._connections) >= _CONNECTIONS_MAX:
                    log.warning("connection refused", extra={"connections": len(self._connections)})
                    peer.close()
                    continue
                connection = _Connection(self, self._services, Channel(peer))
                self._connections.add(connection)
            threading.Thread(target=connection.serve, name="connection", daemon=True).start()


class _Connection:
    """One client: its requests, and the jobs it owns."""

    def __init__(self, server: Server, services: Services, channel: Channel) -> None:
        self._server = server
        self._services = services
        self._channel = channel
        self._calls = services.calls()
        self._lock = threading.Lock()
        self._jobs: dict[str, RunningJob] = {}
        self._pending = 0
        self._is_over = False

    def serve(self) -> None:
        """Answer requests until the client hangs up, then end what it owns."""
        try:
            self._channel.wait_at_most(_GREETING_TIMEOUT_S)
            if self._greet():
                self._channel.wait_at_most(None)
                while (request := self._channel.receive(Request)) is not None:
                    self._accept(request)
        except (BrokenMessage, OSError) as error:
            log.warning("connection broken", extra={"reason": str(error)})
        finally:
            with self._lock:
                self._is_over = True
                jobs = list(self._jobs.values())
            for job in jobs:
                job.stop_soon()
            self._channel.close()
            self._server.forget(self)
            self._calls.cancel()

    def hang_up(self) -> None:
        """End the connection from this side."""
        self._channel.close()

    def _greet(self) -> bool:
        request = self._channel.receive(Request)
        if request is None:
            return False
        if not isinstance(request.action, Hello) or request.action.protocol != PROTOCOL:
            spoken = getattr(request.action, "protocol", "none")
            reason = f"this engine speaks version {PROTOCOL} of its protocol, the client {spoken}"
            self._send(Answer(number=request.number, failure=Failure(kind="OtherVersion", message=reason)))
            return False
        self._answer(request.number, lambda: self._services.info)
        return True

    def _accept(self, request: Request) -> None:
        action = request.action
        if isinstance(action, Hello | Status | Quit):
            self._answer(request.number, lambda: self._do(action))
            return
        with self._lock:
            is_full = self._pending >= _REQUESTS_MAX
            self._pending += not is_full
        if is_full:
            reason = f"at most {_REQUESTS_MAX} requests may be under way on one connection"
            self._send(Answer(number=request.number, failure=Failure(kind="Busy", message=reason)))
        else:
            self._server.submit(action, lambda: self._do_later(request))

    def _do_later(self, request: Request) -> None:
        try:
            self._answer(request.number, lambda: self._do(request.action))
        finally:
            with self._lock:
                self._pending -= 1

    def _answer(self, number: int, work: Callable[[], JSON]) -> None:
        try:
            answer = Answer(number=number, value=msgspec.Raw(msgspec.json.encode(work())))
        except Exception as error:  # noqa: BLE001 - whatever fails is reported to the client
            answer = Answer(number=number, failure=to_failure(error))
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        with contextlib.suppress(OSError):  # the client is gone; the reader notices
            try:
                self._channel.send(answer)
            except BrokenMessage as error:
                failure = Failure(kind="AnswerTooLarge", message=f"{error}; ask for less")
                self._channel.send(Answer(number=answer.number, failure=failure))

    def _do(self, action: Action) -> JSON:
        match action:
            case Hello():
                return self._services.info
            case Call():
                return self._calls.carry_out(action.operation, action.arguments)
            case Run():
                return self._run(action)
            case Status():
                return self._job(action.name).status
            case Stop():
                job = self._job(action.name)
                job.stop_soon()
                if not job.wait_until_ended(action.timeout_seconds):
                    reason = f"job {action.name} did not end within {action.timeout_seconds:g} s"
                    raise EngineError("TimeoutError", reason)
                return None
            case Quit():
                return self._services.quit()
            case _:
                assert_never(action)

    def _run(self, action: Run) -> None:
        job = self._services.run(action.name, action.job, action.spec)
        with self._lock:
            self._jobs[action.name] = job
            is_over = self._is_over
        if is_over:
            job.stop_soon()

    def _job(self, name: str) -> RunningJob:
        with self._lock:
            job = self._jobs.get(name)
        if job is None:
            raise EngineError("UnknownJob", f"this connection has started no job {name}")
        return job


def _listen(path: Path) -> socket.socket:
    """A socket at a path that only its owner can open; one that a killed engine left behind is replaced."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(64)
    return listening
