"""The embedded Spark, as the launcher sees it: whether it can start, and its end after Connect's."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from streams.errors import JavaMissing, StreamsError
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.engine.folder import EngineFolder
from streams.spark.java import find_java

_PAUSE_S: Final = 0.1


def missing_java() -> str:
    """Why Spark cannot start on this machine, with how to repair it; empty when it can."""
    try:
        find_java(os.environ)
    except JavaMissing as error:
        return str(error)
    return ""


def end_engine(data: Path, *, timeout_s: float) -> bool | None:
    """End the engine of a folder and wait for it; whether it ended by itself in time, None when there was none."""
    pid = engine_pid(data)
    if pid is None:
        return None
    _ask_to_end(data, pid)
    deadline = time.monotonic() + timeout_s
    while engine_pid(data) == pid:
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)
            return False
        time.sleep(_PAUSE_S)
    return True


def kill_engine(data: Path) -> None:
    """End the engine of a folder at once; what it has started ends with it."""
    pid = engine_pid(data)
    if pid is not None:
        _signal(pid, signal.SIGKILL)


def _ask_to_end(data: Path, pid: int) -> None:
    """Over its socket; one that is still starting has none yet, and gets a signal."""
    try:
        engine = Engine.running(SparkSettings.parse({"spark.caudal.data.dir": str(data)}))
        if engine is not None:
            with engine:
                engine.quit()
            return
    except StreamsError:
        pass
    _signal(pid, signal.SIGTERM)


def engine_pid(data: Path) -> int | None:
    """The process of the engine of a folder; None when there is none."""
    folder = EngineFolder(data)
    if not folder.lock.exists() or not folder.is_locked():
        return None
    text = folder.lock.read_text(encoding="utf-8").strip()
    return int(text) if text.isdecimal() else None


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
