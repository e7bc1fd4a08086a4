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


def keep_watch(lock: int) -> None:
    """Start the watchdog of this process; called before any thread is started.

    `lock` is the file by which this process has its folder: the watchdog holds it as well, until all is gone, so that
    no other engine begins while a remainder of this one still works.
    """
    mark = secrets.token_hex(16)
    reading, writing = os.pipe()
    if os.fork() == 0:
        _watch(mark, reading, writing, lock=lock)
    os.close(reading)
    # Python's pipes are not inherited by programs that are started: the other end closes when this process ends.
    os.environ[MARK] = mark
    _kept.append(writing)


_kept: list[int] = []


def _watch(mark: str, reading: int, writing: int, *, lock: int) -> None:
    """What the watchdog does: wait for the end of the engine, then for that of its children, and end what stays."""
    try:
        os.close(writing)
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _leave_files({reading, lock})
        os.read(reading, 1)
        _end_what_stays(f"{MARK}={mark}".encode())
    finally:
        os._exit(0)


def _leave_files(kept: set[int]) -> None:
    """Whoever reads the engine's output must see its end though the watchdog lives a little longer."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for number in set(range(3, 256)) - kept:
        os.closerange(number, number + 1)  # which does not mind what is not open
    os.chdir("/")


def _end_what_stays(mark: bytes) -> None:
    deadline = time.monotonic() + _GRACE_S
    while (left := _marked(mark)) and time.monotonic() < deadline + _GRACE_S:
        if time.monotonic() >= deadline:
            _kill(left)
        time.sleep(_PAUSE_S)


def _kill(pids: list[int]) -> None:
    for pid in pids:
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
