"""The right to run the platform of a folder: one launcher has it, for as long as it lives."""

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Final, Self

LOCK_NAME: Final = "lock"
_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 1.0
"""Others look at the lock by taking it for a moment."""


class PlatformLock:
    """The lock of a folder; the system takes it back when its holder dies."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @classmethod
    def try_acquire(cls, data: Path, *, patience_s: float = _PATIENCE_S) -> Self | None:
        """Take the lock and sign it; None when another launcher has it."""
        file = (data / LOCK_NAME).open("a+", encoding="utf-8")
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    file.close()
                    return None
                time.sleep(_LOOK_S)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        return cls(file)

    def release(self) -> None:
        """Give it back."""
        self._file.close()


def lock_holder(data: Path) -> int | None:
    """The process that runs the platform of a folder; None when there is none, 0 when it has not signed yet."""
    try:
        file = (data / LOCK_NAME).open(encoding="utf-8")
    except OSError:
        return None  # no platform was started there, or another user's
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            signed = file.read().strip()
            return int(signed) if signed.isdecimal() else 0
    return None
