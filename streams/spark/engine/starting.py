"""Starts an engine on first use: the first client starts it, the others wait for the same one."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import streams
from streams.errors import EngineUnavailable
from streams.settings import VARIABLES, SparkSettings
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.properties_text import properties_text
from streams.spark.engine.wire import Channel
from streams.spark.java import find_java

_EXIT_TAKEN: Final = 3
_PAUSE_S: Final = 0.1
_CONNECT_TIMEOUT_S: Final = 10.0
_TAIL_BYTES: Final = 8_000
_TAIL_LINES: Final = 8
_OLD_LOG_BYTES: Final = 2_000_000


def open_channel(folder: EngineFolder) -> Channel | None:
    """A connection to the engine of a folder; None when none answers."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(_CONNECT_TIMEOUT_S)
    try:
        peer.connect(str(folder.socket))
    except (OSError, ValueError):
        peer.close()
        return None
    if not _is_ours(peer):
        peer.close()
        reason = f"{folder.socket} belongs to another user: set spark.caudal.data.dir to a folder of your own"
        raise EngineUnavailable(reason)
    return Channel(peer)


def _is_ours(peer: socket.socket) -> bool:
    """Whether the engine runs as this user: it is sent the passwords of connectors. Not known on every system."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return os.getuid() in (user, 0)


def connect_or_start(settings: SparkSettings, on_progress: Callable[[str], None]) -> Channel:
    """A connection to the engine of the settings' folder, which is started if none runs."""
    try:
        folder = EngineFolder(settings.data_dir).create()
    except OSError as error:
        reason = f"The engine's folder {settings.data_dir} cannot be created: {error}; set spark.caudal.data.dir"
        raise EngineUnavailable(reason) from error
    start = _Start(settings, folder, on_progress)
    deadline = time.monotonic() + settings.spark_caudal_start_timeout_ms / 1000
    while (channel := open_channel(folder)) is None:
        if time.monotonic() > deadline:
            raise EngineUnavailable(start.timeout_reason())
        start.advance()
        time.sleep(_PAUSE_S)
    return channel


class _Start:
    """A client that waits for the engine: starts it unless another client does, and shows what its log says."""

    def __init__(self, settings: SparkSettings, folder: EngineFolder, on_progress: Callable[[str], None]) -> None:
        self._settings = settings
        self._folder = folder
        self._on_progress = on_progress
        self._child: subprocess.Popen[bytes] | None = None
        self._is_wait_shown = False
        self._log = _EngineLog(folder.log)

    def advance(self) -> None:
        """Make sure that an engine is starting; raises if the one that this client started has failed."""
        for line in self._log.new_lines():
            self._on_progress(line)
        code = self._child.poll() if self._child else None
        if self._child is not None and code is None:
            return
        if code not in (None, 0, _EXIT_TAKEN):
            raise EngineUnavailable(f"The engine of {self._folder.path} did not start{self._log.reason()}")
        self._child = None
        if self._settings.spark_caudal_start == "never":
            if not self._is_wait_shown:
                self._on_progress(f"waiting for the engine of {self._folder.path} (spark.caudal.start=never)")
                self._is_wait_shown = True
        elif not self._folder.is_locked():
            find_java(os.environ)  # fails here at once, rather than in a process that starts for nothing
            memory, master = self._settings.spark_driver_memory, self._settings.spark_master
            self._on_progress(f"starting Spark ({master}, {memory} of memory) in {self._folder.path}")
            self._child = _spawn(self._settings, self._folder)

    def timeout_reason(self) -> str:
        """Why no engine answered in time."""
        seconds = self._settings.spark_caudal_start_timeout_ms / 1000
        if self._settings.spark_caudal_start == "never" and not self._folder.is_locked():
            return (
                f"No engine was started in {self._folder.path} within {seconds:.0f} s (spark.caudal.start.timeout.ms), "
                "and spark.caudal.start is never: run it with  caudal spark engine"
            )
        return (
            f"The engine of {self._folder.path} did not answer within {seconds:.0f} s "
            f"(spark.caudal.start.timeout.ms).\n{self._log.tail()}"
        )


def _spawn(settings: SparkSettings, folder: EngineFolder) -> "subprocess.Popen[bytes]":
    """Start an engine that outlives this process: in a session of its own, so that Ctrl-C here does not end it."""
    if folder.log.exists() and folder.log.stat().st_size > _OLD_LOG_BYTES:
        folder.log.replace(folder.log.with_suffix(".log.1"))
    with folder.log.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "streams.spark.engine", "--background", "--config", "/dev/stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=folder.path,
            env=_environment(),
            start_new_session=True,
        )
    assert child.stdin is not None
    try:
        # Not as arguments, which every user of the machine can read.
        child.stdin.write(properties_text(settings.as_text()).encode())
        child.stdin.close()
    except BrokenPipeError:
        pass  # it has ended; `poll` says how
    threading.Thread(target=child.wait, name="engine", daemon=True).start()
    return child


def _environment() -> dict[str, str]:
    """Ours without the settings, which go through the pipe, and with absolute paths to Python code."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(VARIABLES)}
    own = [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    root = str(Path(streams.__file__).parents[1])
    return {**kept, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*own, root]))}


class _EngineLog:
    """What the engine has logged since this client began to wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = self._position = path.stat().st_size if path.exists() else 0

    def new_lines(self) -> list[str]:
        """Lines since the last call, as people read them."""
        try:
            if self._path.stat().st_size < self._position:
                self._position = 0  # the file was rolled
            with self._path.open("rb") as file:
                file.seek(self._position)
                text = file.read(_TAIL_BYTES)
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return [_format(line) for line in whole.decode(errors="replace").splitlines()]

    def tail(self) -> str:
        """The last lines of the log."""
        shown = "\n".join(f"  {_format(line)}" for line in self._last_lines())
        return f"Its log ({self._path}) ends with:\n{shown}"

    def reason(self) -> str:
        """The reason in the last error of the log, or else its last lines."""
        entries = (_parse(line) for line in reversed(self._last_lines()))
        reasons = (entry.get("reason") for entry in entries if entry.get("level") == "ERROR")
        found = next(reasons, None)
        return f": {found}\nIts log: {self._path}" if found else f".\n{self.tail()}"

    def _last_lines(self) -> list[str]:
        if not self._path.exists():
            return []
        size = self._path.stat().st_size
        began = self._began if self._began <= size else 0
        with self._path.open("rb") as file:
            file.seek(max(began, size - _TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]


def _format(line: str) -> str:
    """A line of JSON as a sentence; any other unchanged."""
    entry = _parse(line)
    reason = entry.get("reason") or entry.get("why")
    return f"{entry['message']}: {reason}" if reason else str(entry.get("message", line))


def _parse(line: str) -> dict[str, Any]:
    """The entry in a line of the log; empty if the line is not one of ours."""
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) and "message" in entry else {}
