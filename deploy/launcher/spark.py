"""The embedded Spark, for the launcher: whether it can start, and ending it after the services that use it."""

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
    """Why Spark cannot start on this machine, and what to do; empty if it can."""
    try:
        find_java(os.environ)
    except JavaMissing as error:
        return str(error)
    return ""


def end_engine(data: Path, *, timeout_s: float) -> bool | None:
    """End the engine of a folder and wait; whether it ended by itself in time, None if there was none."""
    pid = engine_pid(data)
    if pid is None:
        return None
    is_asked = False
    with suppress(StreamsError):
        engine = Engine.running(SparkSettings.parse({"spark.caudal.data.dir": str(data)}))
        if engine is not None:
            with engine:
                engine.quit()
            is_asked = True
    if not is_asked:  # one that is still starting has no socket yet
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while engine_pid(data) == pid:
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)
            return False
        time.sleep(_PAUSE_S)
    return True


def kill_engine(data: Path) -> None:
    """Kill the engine of a folder; its children end with it."""
    pid = engine_pid(data)
    if pid is not None:
        _signal(pid, signal.SIGKILL)


def engine_pid(data: Path) -> int | None:
    """The process of the engine of a folder; None if there is none."""
    folder = EngineFolder(data)
    if not folder.lock.exists() or not folder.is_locked():
        return None
    text = folder.lock.read_text(encoding="utf-8").strip()
    return int(text) if text.isdecimal() else None


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
