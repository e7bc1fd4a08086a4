"""Sees to it that nothing of an engine outlives it: a small process that waits for the engine's end, however it comes.

Java notices that its parent is gone, and Python workers that Java is; but one that is busy, or hangs, would not.
"""

import os
import secrets
import signal
import time
from pathlib import Path
from typing import Final

MARK: Final = "CAUDAL_ENGINE_MARK"
"""A variable in the environment of everything that an engine starts, and of nothing else."""
_GRACE_S: Final = 3.0
_PAUSE_S: Final = 0.1
_PROCESSES: Final = Path("/proc")


def keep_watch() -> None:
    """Start the watchdog of this process; called before any thread is started and anything is opened."""
    mark = secrets.token_hex(16)
    reading, writing = os.pipe()
    if os.fork() == 0:
        _watch(mark, reading, writing)
    os.close(reading)
    # Python's pipes are not inherited by programs that are started: the other end closes when this process ends.
    os.environ[MARK] = mark
    _kept.append(writing)


_kept: list[int] = []


def _watch(mark: str, reading: int, writing: int) -> None:
    """What the watchdog does: wait for the end of the engine, then for that of its children, and end what stays."""
    try:
        os.close(writing)
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _leave_files(reading)
        os.read(reading, 1)
        _end_what_stays(f"{MARK}={mark}".encode())
    finally:
        os._exit(0)


def _leave_files(kept: int) -> None:
    """Whoever reads the engine's output must see its end though the watchdog lives a little longer."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.closerange(3, kept)
    os.closerange(kept + 1, 256)
    os.chdir("/")


def _end_what_stays(mark: bytes) -> None:
    deadline = time.monotonic() + _GRACE_S
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # it ended by itself


def family_memory() -> tuple[int, int]:
    """How much memory this process and all that it has started take, and how many they are (0 where it is unknown)."""
    mark = os.environ.get(MARK, "")
    sizes = [_memory(pid) for pid in {os.getpid(), *_marked(f"{MARK}={mark}".encode())}]
    return sum(sizes), len(sizes)


def _memory(pid: int) -> int:
    """What a process takes; pages that several share are counted once among them."""
    try:
        lines = (_PROCESSES / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _marked(mark: bytes) -> list[int]:
    """The processes of this user that have the mark in their environment (on systems that tell, as Linux does)."""
    found = []
    for entry in _PROCESSES.glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass  # another user's, or gone
    return found
