"""A private PostgreSQL: one server for all tests of a session (the fixture `postgres`), a database for each."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import make_url

_START_SECONDS = 60
_numbers = count(1)


class PostgresServer:
    """A server that listens on a unix socket in a folder of its own."""

    def __init__(self, programs: Path, folder: Path, *, fsync: bool = False) -> None:
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._fsync = fsync
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make the cluster."""
        user = _server_user()
        if user is not None:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        arguments = ["-D", self._data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        self._run("initdb", *map(str, arguments))

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "on" if self._fsync else "off",
            "max_connections": "200",
        }
        options = [text for key, value in settings.items() for text in ("-c", f"{key}={value}")]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self._data), *options],
                stdout=log,
                stderr=log,
                user=_server_uid(),
                group=_server_gid(),
            )
        self._wait_until_ready()

    def stop(self, *, immediately: bool = True) -> None:
        """Stop the server; `immediately` is what a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
            self._process.wait(_START_SECONDS)
            self._process = None

    def kill(self) -> None:
        """End every process of the server at once, as the kernel does when memory is short."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=_START_SECONDS)
        self._process.wait(_START_SECONDS)
        self._process = None
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def create_database(self, *, copy_of: str | None = None, encoding: str | None = None) -> str:
        """The URL of a new database: an empty one, or a copy of one whose URL is given and that nobody uses."""
        name = f"registry_{next(_numbers)}"
        template = "" if copy_of is None else f" TEMPLATE {make_url(copy_of).database}"
        encoded = "" if encoding is None else f" ENCODING '{encoding}' TEMPLATE template0"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}{template}{encoded}".encode())
        return f"postgresql://tests@/{name}?host={self._folder}"

    def _address(self, database: str) -> str:
        return f"host={self._folder} user=tests dbname={database}"

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        for _ in range(_START_SECONDS * 10):
            try:
                self._run("pg_isready", "-h", str(self._folder), "-t", "1")
            except RuntimeError:
                try:
                    self._process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                raise
            return
        raise RuntimeError(f"PostgreSQL does not answer: {(self._folder / 'server.log').read_text()}")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
            cwd="/",
            user=_server_uid(),
            group=_server_gid(),
        )
        if done.returncode != 0:
            log = self._folder / "server.log"
            raise RuntimeError(f"{program}: {done.stderr}{log.read_text() if log.exists() else ''}")


@contextmanager
def running_server(*, fsync: bool = False) -> Iterator[PostgresServer]:
    """A server for as long as the block lasts; skips the test where PostgreSQL is not installed."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # not below tmp_path: a socket's path must be short
    server = PostgresServer(_programs(), folder, fsync=fsync)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder of the newest PostgreSQL's programs."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    in_path = shutil.which("initdb")
    if in_path:
        folders.append(Path(in_path).resolve().parent)
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.skip("PostgreSQL's server is not installed (initdb is neither in PATH nor in /usr/lib/postgresql)")


def _server_user() -> "pwd.struct_passwd | None":
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PostgreSQL's server does not run as root, and there is no user postgres or nobody")


def _server_uid() -> int | None:
    user = _server_user()
    return None if user is None else user.pw_uid


def _server_gid() -> int | None:
    user = _server_user()
    return None if user is None else user.pw_gid
