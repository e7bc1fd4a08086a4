"""The watchdog: a small process that waits for the engine to end, in whatever way, and ends what it left running.

Java notices when its parent has gone, and Python workers when Java has; but not those that are busy or hang.
"""

import contextlib
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


def start_watchdog(lock: int) -> None:
    """Start the watchdog of this process; called before any thread is started.

    `lock` is the file whose lock gives this process its folder: the watchdog holds it too, until all processes are
    gone, so that no other engine starts while parts of this one still work.
    """
    mark = secrets.token_hex(16)
    reading, writing = os.pipe()
    if os.fork() == 0:
        _watch(mark, reading, writing, lock=lock)
    os.close(reading)
    # Child processes do not inherit Python's pipes, so the other end closes when this process ends.
    os.environ[MARK] = mark
    _kept.append(writing)


_kept: list[int] = []


def _watch(mark: str, reading: int, writing: int, *, lock: int) -> None:
    """What the watchdog does: wait until the engine has ended, give its children some time, and kill those left."""
    try:
        os.close(writing)
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _close_files(keep={reading, lock})
        os.read(reading, 1)
        deadline = time.monotonic() + _GRACE_S
        while (left := _marked(f"{MARK}={mark}".encode())) and time.monotonic() < deadline + _GRACE_S:
            for pid in left if time.monotonic() >= deadline else ():
                with contextlib.suppress(OSError):  # it has just ended
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_PAUSE_S)
    finally:
        os._exit(0)


def _close_files(*, keep: set[int]) -> None:
    """Close the engine's files: readers of its output must see it end although the watchdog lives a little longer."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for number in set(range(3, 256)) - keep:
        os.closerange(number, number + 1)  # which ignores files that are not open
    os.chdir("/")


def family_memory() -> tuple[int, int]:
    """The memory of this process and all that it has started (0 where unknown), and how many processes they are."""
    mark = os.environ.get(MARK, "")
    sizes = [_memory(pid) for pid in {os.getpid(), *_marked(f"{MARK}={mark}".encode())}]
    return sum(sizes), len(sizes)


def _memory(pid: int) -> int:
    """The proportional set size of a process: shared pages count once among those that share them."""
    try:
        lines = (_PROCESSES / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _marked(mark: bytes) -> list[int]:
    """The processes of this user that have the mark in their environment (on Linux; elsewhere none are found)."""
    found = []
    for entry in _PROCESSES.glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass  # another user's, or gone
    return found
