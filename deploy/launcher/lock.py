"""The lock of a platform's folder, which one launcher holds as long as it runs."""

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Final, Self

LOCK_NAME: Final = "lock"
_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 1.0
"""Other processes test the lock by holding it for a moment."""


class PlatformLock:
    """The lock of a folder; the system releases it when its holder dies."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @classmethod
    def try_acquire(cls, data: Path, *, patience_s: float = _PATIENCE_S) -> Self | None:
        """The lock, with our process id in it; None if another launcher holds it."""
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
        """Release the lock."""
        self._file.close()


def lock_holder(data: Path) -> int | None:
    """The process that runs the platform of a folder; None if there is none, 0 if it has not written its id yet."""
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
