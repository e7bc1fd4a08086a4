"""The segment that compaction writes: Kafka's four files with the suffix `.cleaned` until they are complete and synced.

The steps, each of them safe: `.cleaned` files are written and synced to disk; they are renamed to `.swap`, the log
first, because from then on recovery finishes the swap, and an index without its log could be mistaken for that of the
original; the originals are renamed to `.deleted`; `.swap` files get their final names. Recovery deletes `.cleaned`,
finishes `.swap` and deletes `.deleted`; an index lost in between is rebuilt.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from core_broker.log.checkpoints import sync_directory
from core_broker.log.offset_index import OffsetIndex
from core_broker.log.segment import CLEANED_SUFFIX, SWAP_SUFFIX, Segment, segment_name
from core_broker.log.time_index import TimeIndex
from core_broker.log.transaction_index import AbortedTransaction, write_transaction_index
from core_broker.protocol.records import BatchHeader, Buffer
from core_broker.settings import TopicSettings

_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
_WRITE_BYTES = 1 << 20


class CleanedSegment:
    """Receives batches in offset order; `finish` completes the files, `discard` removes them."""

    def __init__(self, directory: Path, base_offset: int, settings: TopicSettings) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = 0
        self._index_interval_bytes = settings.index_interval_bytes
        self._bytes_since_index = 0
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self.discard()
        self._index = OffsetIndex(self._path(".index"), base_offset, settings.segment_index_bytes)
        self._time_index = TimeIndex(self._path(".timeindex"), base_offset, settings.segment_index_bytes)
        self._file = self._path(".log").open("wb", buffering=_WRITE_BYTES)

    def _path(self, suffix: str) -> Path:
        return self.directory / f"{segment_name(self.base_offset)}{suffix}{CLEANED_SUFFIX}"

    def append(self, header: BatchHeader, batch: Buffer) -> None:
        """Write one batch and, at intervals, its index entries."""
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._bytes_since_index > self._index_interval_bytes:
            self._index.append(header.last_offset, self.size_bytes)
            self._time_index.append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_index = 0
        self._file.write(batch)
        self.size_bytes += len(batch)
        self._bytes_since_index += len(batch)

    def finish(self, aborted: Iterable[AbortedTransaction], *, modified_ns: int) -> None:
        """Complete the files and sync them to disk.

        They get the modification time of the newest segment they replace: retention uses it if no record has a
        timestamp.
        """
        if self._max_timestamp >= 0:
            self._time_index.append(self._max_timestamp, self._max_timestamp_offset)
        write_transaction_index(self._path(".txnindex"), list(aborted))
        self._file.close()
        for index in (self._index, self._time_index):
            index.path.touch()  # a segment without its indexes would look damaged, to Kafka as well
            index.trim()
            index.release()
        os.utime(self._path(".log"), ns=(modified_ns, modified_ns))
        for suffix in _SUFFIXES:
            _sync_file(self._path(suffix))
        sync_directory(self.directory)

    def close(self) -> None:
        """Close the files without finishing them."""
        self._file.close()
        self._index.release()
        self._time_index.release()

    def discard(self) -> None:
        """Remove the `.cleaned` files, including those of an interrupted earlier run."""
        for suffix in _SUFFIXES:
            self._path(suffix).unlink(missing_ok=True)

    def swap(self, settings: TopicSettings) -> Segment:
        """The point of no return: rename to `.swap`, which recovery completes; returns the renamed segment."""
        for suffix in _SUFFIXES:
            path = self._path(suffix)
            if path.exists():
                path.replace(path.with_name(path.name.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX))
        return Segment(
            self.directory,
            self.base_offset,
            settings,
            size=self.size_bytes,
            index_size=self._index.size_bytes,
            time_index_size=self._time_index.size_bytes,
            suffix=SWAP_SUFFIX,
        )


def _sync_file(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)
