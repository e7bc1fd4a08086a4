"""The base of the offset index and the time index: a file of sorted, fixed-size entries, mapped into memory.

The file is created with its first entry, grows by doubling and is trimmed when the segment is sealed, so an idle
partition costs neither disk nor memory. Blocks are allocated before a page is touched: writing to a mapped hole on a
full disk would kill the process.

An index is never the source of truth: any inconsistency raises CorruptIndexError, and it is rebuilt from the log.
"""

import logging
import mmap
import os
import struct
from array import array
from operator import lt
from pathlib import Path
from sys import byteorder
from typing import ClassVar, Final

from core_broker.log.transaction_index import CorruptIndexError

log = logging.getLogger(__name__)

FIRST_BYTES: Final = 4096


class MappedIndex:
    """Sorted entries of `ENTRY.size` bytes; subclasses know what they mean."""

    __slots__ = ("_is_checked", "_map", "_name", "base_offset", "count", "count_max")

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, path: Path | str, base_offset: int, max_bytes: int, *, size: int = 0) -> None:
        # A string rather than a Path, because a start creates thousands of these and few are ever used.
        self._name = os.fspath(path)
        self.base_offset = base_offset
        self.count_max = max_bytes // self.ENTRY.size
        """With this many entries the segment must be rolled."""
        self.count = size // self.ENTRY.size
        self._map: mmap.mmap | None = None
        self._is_checked = size == 0

    def configure(self, max_bytes: int) -> None:
        """Set a new size limit; existing entries are kept."""
        self.count_max = max_bytes // self.ENTRY.size

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._name)

    @property
    def size_bytes(self) -> int:
        """Size of all entries."""
        return self.count * self.ENTRY.size

    # -- the file ------------------------------------------------------------------------------------------------------

    def mapping(self) -> mmap.mmap:
        """The mapped file, checked the first time; must only be called if there are entries."""
        mapped = self._map  # a flush in another thread may unmap it at any time
        if mapped is None:
            mapped = self._map = self._open_map()
        if not self._is_checked:
            self._check_entries(mapped[: self.size_bytes])
            self._is_checked = True
        return mapped

    def _open_map(self) -> mmap.mmap:
        try:
            fd = os.open(self._name, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise CorruptIndexError(f"{self._name} is missing") from error
        try:
            size = os.fstat(fd).st_size
            if size < self.size_bytes:
                raise CorruptIndexError(f"{self._name} has {size} bytes, expected {self.size_bytes}")
            return mmap.mmap(fd, size)
        finally:
            os.close(fd)

    def read_last(self) -> bytes:
        """The bytes of the last entry, without mapping the file; must only be called if there are entries."""
        fd = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, self.ENTRY.size, self.size_bytes - self.ENTRY.size)
        finally:
            os.close(fd)

    def room_for_one(self) -> mmap.mmap | None:
        """The mapped file with room for another entry; None if the disk is full, and then the entry is left out."""
        mapped = self._map
        try:
            if mapped is None and self.count:
                mapped = self.mapping()
            if mapped is None or len(mapped) < self.size_bytes + self.ENTRY.size:
                mapped = self._grow()
        except OSError as error:
            log.warning("index cannot grow", extra={"path": self._name, "reason": str(error)})
            return None
        return mapped

    def _grow(self) -> mmap.mmap:
        size = max(FIRST_BYTES, 2 * self.size_bytes)
        size = min(size // self.ENTRY.size, max(self.count_max, self.count + 1)) * self.ENTRY.size
        self.release()
        fd = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(fd, 0, size)
            mapped = self._map = mmap.mmap(fd, size)
        finally:
            os.close(fd)
        return mapped

    def release(self) -> None:
        """Unmap the file; it is mapped again on use."""
        self._map = None

    def trim(self) -> None:
        """Release the unused end of the file."""
        if self.count:
            self.release()
            os.truncate(self._name, self.size_bytes)

    def reset(self) -> None:
        """Delete all entries and the file, before it is rebuilt."""
        self.release()
        self.path.unlink(missing_ok=True)
        self.count = 0
        self._is_checked = True

    def keep(self, count: int) -> None:
        """Drop all but the first `count` entries."""
        if count < self.count:
            self.release()
            self.count = count
            os.truncate(self._name, self.size_bytes)

    def flush(self) -> None:
        """Sync the file to disk, if there is one."""
        if self.count:
            fd = os.open(self._name, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)

    def set_path(self, path: Path) -> None:
        """Follow a rename of the file."""
        self._name = os.fspath(path)

    # -- checking ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise CorruptIndexError unless the entries are sorted; reads them all, so the result is cached."""
        self._is_checked = False
        if self.count:
            self.mapping()
        self._is_checked = True

    def _check_entries(self, data: bytes) -> None:
        raise NotImplementedError


def big_endian(data: bytes, typecode: str) -> "array[int]":
    """Big-endian integers as an array."""
    numbers = array(typecode)
    numbers.frombytes(data)
    if byteorder == "little":
        numbers.byteswap()
    return numbers


def is_increasing(numbers: list[int]) -> bool:
    """Whether each number is greater than the previous one."""
    return all(map(lt, numbers, numbers[1:]))
