"""A private Redis from Debian's package: started on a free port, stopped, killed, frozen, and started again."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

_START_SECONDS = 30


class RedisServer:
    """A server that listens on 127.0.0.1 and keeps nothing on disk, unless it is told to."""

    def __init__(self, program: str, folder: Path, *, is_durable: bool = False) -> None:
        self._program = program
        self._folder = folder
        self._is_durable = is_durable
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def url(self) -> str:
        """Where it answers, its first database."""
        return self.url_of(0)

    def url_of(self, database: int) -> str:
        """Where one of its databases answers, so that tests need not share one."""
        return f"redis://127.0.0.1:{self.port}/{database}"

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def client(self, database: int = 0) -> "redis.Redis":
        """A client of it; close it."""
        return redis.Redis(port=self.port, db=database, socket_timeout=10)

    def start(self) -> None:
        """Start the server, on the same port each time, and wait until it answers."""
        assert not self.is_running, "Redis is already running"
        durable = ["--appendonly", "yes", "--appendfsync", "always"] if self._is_durable else ["--appendonly", "no"]
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *durable, "--dir", str(self._folder)]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen([self._program, *options], stdout=log, stderr=log)
        self._wait_until_ready()

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once; what it did not keep on disk is forgotten."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let it stand still: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "Redis is not running"
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)
            self._process.wait(_START_SECONDS)
            self._process = None

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        with self.client() as client:
            while time.monotonic() < deadline and self.is_running:
                try:
                    client.ping()
                except redis.RedisError:
                    time.sleep(0.01)
                else:
                    return
        raise RuntimeError(f"Redis does not answer: {(self._folder / 'server.log').read_text()}")


def redis_program() -> str:
    """Where Redis is; skips the test where it is not installed."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis is not installed (redis-server is not in PATH)")
    return program


@contextmanager
def running_redis(*, is_durable: bool = False) -> Iterator[RedisServer]:
    """A server for as long as the block lasts; skips the test where Redis is not installed."""
    program = redis_program()
    folder = Path(tempfile.mkdtemp(prefix="redis-"))
    server = RedisServer(program, folder, is_durable=is_durable)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
