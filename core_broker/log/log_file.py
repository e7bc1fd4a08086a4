"""Open `.log` files, which are closed with their last reference, and the limit on how many are open.

A fetch response being sent to a slow consumer refers to its file. Retention or compaction may delete that file in the
meantime: the response stays complete, because the descriptor is closed only when the last reference is gone.
"""

import ctypes
import errno
import os
import resource
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

_KEEP_SIZE: Final = 0x01  # FALLOC_FL_KEEP_SIZE
_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

_DESCRIPTORS_MAX: Final = 65_536
_FILES_PER_HOLDER: Final = 3
"""A segment has its log and two indexes open."""
_SHARE_OF_DESCRIPTORS: Final = 2
"""Half of the process's descriptors are for logs, the other half for connections and everything else."""


class LogFile:
    """An open file and its descriptor."""

    __slots__ = ("__weakref__", "fd", "path")

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self.path = path
        self.fd = -1
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self.fd = os.open(path, flags, 0o644)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # `os` itself may be gone when the process ends.
        if self.fd >= 0:
            close(self.fd)

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        return os.pread(self.fd, length, position)

    def cut(self, size: int) -> None:
        """Truncate the file to `size` bytes, which also releases space reserved beyond it."""
        os.ftruncate(self.fd, size)

    def sync(self) -> None:
        """Sync the data to disk."""
        os.fdatasync(self.fd)


def reserve(file: LogFile, position: int, length: int) -> bool:
    """Reserve disk space without changing the file's size; False if the file system cannot or is full.

    On ext4 this makes large appends several times cheaper and much steadier: blocks are allocated for many at once.
    """
    if _fallocate(file.fd, _KEEP_SIZE, position, length) == 0:
        return True
    if ctypes.get_errno() == errno.EINTR:
        return reserve(file, position, length)
    return False


class FileHolder(Protocol):
    """An object with open files that it can close; it reopens them on use."""

    def release_files(self) -> None:
        """Drop the open files."""
        ...


class OpenFiles:
    """Tracks the holders of open files, and makes the oldest close theirs if there are too many.

    First in, first out: reopening costs microseconds, while tracking the order of use would cost more on every read.
    """

    __slots__ = ("_holders", "_limit")

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._holders: deque[weakref.ref[FileHolder]] = deque()

    def __len__(self) -> int:
        return len(self._holders)

    def note_opened(self, holder: FileHolder) -> None:
        """Note that `holder` has just opened its files."""
        if self._limit is None:  # determined late: the process may raise its own limit at start
            self._limit = _descriptors() // _SHARE_OF_DESCRIPTORS // _FILES_PER_HOLDER
        self._holders.append(weakref.ref(holder))
        while len(self._holders) > self._limit:
            oldest = self._holders.popleft()()
            if oldest is not None:
                oldest.release_files()


def _descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else min(soft, _DESCRIPTORS_MAX)


SHARED_FILES: Final = OpenFiles()
"""Shared by all logs, since the limit applies to the process."""
