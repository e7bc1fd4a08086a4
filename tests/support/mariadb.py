"""A private MariaDB: one server for all tests of a session (the fixture `mariadb`), a database for each."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pymysql
import pytest

_START_SECONDS = 60
_numbers = count(1)


class MariadbServer:
    """A server that listens on a unix socket in a folder of its own; `root` needs no password."""

    def __init__(self, folder: Path, *, programs: tuple[str, str]) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._installer, self._server = programs
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self._folder / "socket"

    def create(self) -> None:
        """Make the data folder."""
        user = _server_user()
        if user is not None:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        done = subprocess.run(
            [
                self._installer,
                "--no-defaults",
                f"--datadir={self._data}",
                f"--tmpdir={self._folder}",  # a server that starts deletes the temporary tables of others
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *([] if user is None else [f"--user={user.pw_name}"]),
            ],
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
            cwd="/",
        )
        if done.returncode != 0:
            raise RuntimeError(f"mariadb-install-db: {done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        user = _server_user()
        settings = {
            "datadir": self._data,
            "tmpdir": self._folder,
            "socket": self.socket,
            "pid-file": self._folder / "pid",
            "log-error": self._folder / "server.log",
            "innodb-flush-log-at-trx-commit": 2,
            "innodb-buffer-pool-size": "64M",
            "character-set-server": "utf8mb4",
            "max-connections": 200,
            "innodb-lock-wait-timeout": 5,
        }
        arguments = [f"--{key}={value}" for key, value in settings.items()]
        self._process = subprocess.Popen(
            [self._server, "--no-defaults", "--skip-networking", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            cwd="/",
        )
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop the server as an operator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """What a crash does."""
        self._end(signal.SIGKILL)

    def create_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"tests_{next(_numbers)}"
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return f"mysql+pymysql://root@/{name}?unix_socket={self.socket}"

    def _connect(self) -> pymysql.connections.Connection:
        return pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True)

    def _answers(self) -> bool:
        connection = pymysql.connect(unix_socket=str(self.socket), user="root", defer_connect=True)
        try:
            connection.connect()
        except pymysql.err.OperationalError:
            connection._force_close()  # it leaves the socket open when the server hangs up
            return False
        connection.close()
        return True

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)
            self._process = None
            with suppress(FileNotFoundError):
                self.socket.unlink()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        for _ in range(_START_SECONDS * 10):
            if self.socket.exists() and self._answers():
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        log = self._folder / "server.log"
        raise RuntimeError(f"MariaDB does not answer: {log.read_text() if log.exists() else 'there is no log'}")


@contextmanager
def running_mariadb() -> Iterator[MariadbServer]:
    """A server for as long as the block lasts; skips the test where MariaDB is not installed."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="my-"))  # not below tmp_path: a socket's path must be short
    server = MariadbServer(folder, programs=programs)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> tuple[str, str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    installer, server = (shutil.which(name, path=path) for name in ("mariadb-install-db", "mariadbd"))
    if installer is None or server is None:
        pytest.skip("MariaDB's server is not installed (mariadb-install-db and mariadbd are not in PATH)")
    return installer, server


def _server_user() -> "pwd.struct_passwd | None":
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("MariaDB's server does not run as root, and there is no user mysql or nobody")
