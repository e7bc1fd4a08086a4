"""Starts an engine on first need: whoever comes first starts it, all others wait for the same one."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
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
    return Channel(peer)


def started_channel(settings: SparkSettings, told: Callable[[str], None]) -> Channel:
    """A connection to the engine of the settings' folder, which is started when there is none."""
    folder = _created(settings)
    waiting = _Waiting(settings, folder, told)
    deadline = time.monotonic() + settings.spark_caudal_start_timeout_ms / 1000
    while (channel := open_channel(folder)) is None:
        if time.monotonic() > deadline:
            raise EngineUnavailable(waiting.gave_up())
        waiting.look()
        time.sleep(_PAUSE_S)
    return channel


class _Waiting:
    """One client that waits for the engine: starts it when nobody else does, and passes on what it says."""

    def __init__(self, settings: SparkSettings, folder: EngineFolder, told: Callable[[str], None]) -> None:
        self._settings = settings
        self._folder = folder
        self._told = told
        self._child: subprocess.Popen[bytes] | None = None
        self._has_told = False
        self._news = _News(folder.log)

    def look(self) -> None:
        """See to it that somebody starts the engine; raises when the one that this client started has ended."""
        for line in self._news.lines():
            self._told(line)
        code = self._child.poll() if self._child else None
        if self._child is not None and code is None:
            return
        if code not in (None, 0, _EXIT_TAKEN):
            raise EngineUnavailable(f"The engine of {self._folder.path} did not start{self._news.reason()}")
        self._child = None
        if self._settings.spark_caudal_start == "never":
            self._wait_for_others()
        elif not self._folder.is_locked():
            self._start()

    def gave_up(self) -> str:
        """Why waiting has come to its end."""
        seconds = self._settings.spark_caudal_start_timeout_ms / 1000
        if self._settings.spark_caudal_start == "never" and not self._folder.is_locked():
            return (
                f"Nobody has started the engine of {self._folder.path} within {seconds:.0f} s "
                "(spark.caudal.start.timeout.ms), and spark.caudal.start is never: run it with  caudal spark engine"
            )
        return (
            f"The engine of {self._folder.path} does not answer within {seconds:.0f} s "
            f"(spark.caudal.start.timeout.ms).\n{self._news.tail()}"
        )

    def _wait_for_others(self) -> None:
        if not self._has_told:
            self._told(f"waiting for the engine of {self._folder.path}, which others start (spark.caudal.start=never)")
            self._has_told = True

    def _start(self) -> None:
        find_java(os.environ)  # told at once, and not after a process has started and failed
        memory, master = self._settings.spark_driver_memory, self._settings.spark_master
        self._told(f"starting Spark ({master}, {memory} of memory) in {self._folder.path}")
        self._child = _spawn(self._settings, self._folder)


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
        # Not as arguments, which everybody on the machine can read.
        child.stdin.write(properties_text(settings.as_text()).encode())
        child.stdin.close()
    except BrokenPipeError:
        pass  # it has ended; `poll` tells how
    threading.Thread(target=child.wait, name="engine", daemon=True).start()
    return child


def _environment() -> dict[str, str]:
    """Ours without the settings, which are handed over; paths to Python code no longer depend on this folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(VARIABLES)}
    own = [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    root = str(Path(streams.__file__).parents[1])
    return {**kept, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*own, root]))}


def _created(settings: SparkSettings) -> EngineFolder:
    try:
        return EngineFolder(settings.data_dir).create()
    except OSError as error:
        reason = f"The engine's folder {settings.data_dir} cannot be made: {error}; set spark.caudal.data.dir"
        raise EngineUnavailable(reason) from error


class _News:
    """What the engine has logged since this client began to wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = self._position = path.stat().st_size if path.exists() else 0

    def lines(self) -> Iterator[str]:
        """New lines, as people read them."""
        for line in self._new():
            yield _shown(line)

    def tail(self) -> str:
        """The last lines of the log."""
        shown = "\n".join(f"  {_shown(line)}" for line in self._last_lines())
        return f"Its log ({self._path}) ends with:\n{shown}"

    def reason(self) -> str:
        """Why it has ended, in its own words, or else the last lines of the log."""
        entries = (_entry(line) for line in reversed(self._last_lines()))
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

    def _new(self) -> list[str]:
        try:
            if self._path.stat().st_size < self._position:
                self._position = 0  # a new file has been begun
            with self._path.open("rb") as file:
                file.seek(self._position)
                text = file.read(_TAIL_BYTES)
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return whole.decode(errors="replace").splitlines()


def _shown(line: str) -> str:
    """A line of JSON as a sentence; any other as it is."""
    entry = _entry(line)
    reason = entry.get("reason") or entry.get("why")
    return f"{entry['message']}: {reason}" if reason else str(entry.get("message", line))


def _entry(line: str) -> dict[str, Any]:
    """A line of the log; empty when it is none of ours."""
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) and "message" in entry else {}
