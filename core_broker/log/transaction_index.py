"""The `.txnindex` of a segment: aborted transactions whose marker is in it.

A read_committed fetch response contains this list, so that the consumer can skip aborted records. Entries have 34 bytes
in Kafka's layout and are sorted by their markers, so `last_offset` is increasing. Most segments have none, so the file
is created with the first entry. All entries are kept in memory once read: they are few, and only for segments in use.
"""

import os
import struct
from pathlib import Path
from typing import NamedTuple

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction: its first record, its marker, and the last stable offset when it was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class CorruptIndexError(ValueError):
    """The file is damaged; recovery rebuilds it from the log."""


class TransactionIndex:
    """The aborted transactions of one segment."""

    __slots__ = ("_entries", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[AbortedTransaction] | None = None

    def append(self, aborted: AbortedTransaction) -> None:
        """Add the newest abort; its marker must be after those of the others."""
        entries = self.entries()
        if entries and aborted.last_offset <= entries[-1].last_offset:
            raise ValueError(f"the marker at {aborted.last_offset} is not after {entries[-1].last_offset}")
        with self.path.open("ab") as file:
            file.write(_ENTRY.pack(_VERSION, *aborted))
        entries.append(aborted)

    def entries(self) -> list[AbortedTransaction]:
        """All entries, by marker offset; raises CorruptIndexError if the file is damaged."""
        if self._entries is None:
            self._entries = read_transaction_index(self.path)
        return self._entries

    def collect(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Aborted transactions that overlap [start, end), and whether the search may stop with this segment.

        It may stop at an entry whose last stable offset is at or above `end`: later aborted transactions began later.
        """
        found = []
        for aborted in self.entries():
            if aborted.last_offset >= start and aborted.first_offset < end:
                found.append(aborted)
            if aborted.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker is at or above `offset`."""
        kept = [aborted for aborted in self.entries() if aborted.last_offset < offset]
        if len(kept) != len(self.entries()):
            os.truncate(self.path, len(kept) * _ENTRY.size)
            self._entries = kept

    def reset(self) -> None:
        """Remove the file, before it is rebuilt."""
        self.path.unlink(missing_ok=True)
        self._entries = []

    def check(self, base_offset: int = 0) -> None:
        """Re-read the file; raises CorruptIndexError if it is damaged or has markers below `base_offset`."""
        self._entries = None
        entries = self.entries()
        if entries and entries[0].last_offset < base_offset:
            raise CorruptIndexError(
                f"{self.path}: the marker at {entries[0].last_offset} is before the segment ({base_offset})"
            )

    def set_path(self, path: Path) -> None:
        """Follow a rename of the segment's files."""
        self.path = path

    def flush(self) -> None:
        """Sync the file to disk, if there is one."""
        try:
            fd = os.open(self.path, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)


def write_transaction_index(path: Path, entries: list[AbortedTransaction]) -> None:
    """Write a complete index, for a segment rewritten by compaction; no file if there are no entries."""
    if entries:
        path.write_bytes(b"".join(_ENTRY.pack(_VERSION, *aborted) for aborted in entries))


def read_transaction_index(path: Path) -> list[AbortedTransaction]:
    """The entries of a file, none if there is no file; raises CorruptIndexError if it is damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) % _ENTRY.size:
        raise CorruptIndexError(f"{path}: {len(data)} bytes are not a multiple of {_ENTRY.size}")
    entries = []
    previous = -1
    for version, *fields in _ENTRY.iter_unpack(data):
        aborted = AbortedTransaction._make(fields)
        if version != _VERSION:
            raise CorruptIndexError(f"{path}: entry version {version} is not {_VERSION}")
        is_plausible = aborted.producer_id >= 0 and 0 <= aborted.first_offset <= aborted.last_offset
        if not is_plausible or aborted.last_offset <= previous:
            raise CorruptIndexError(f"{path}: impossible entry {aborted}")
        previous = aborted.last_offset
        entries.append(aborted)
    return entries
