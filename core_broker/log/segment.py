"""One segment of a partition's log: a `.log` file of batches with its indexes.

Only the last segment of a log is written to. The files of the others are opened when they are read, and closed when too
many are open, so a log of any length costs only a few objects.
"""

import logging
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

from core_broker.log.log_file import SHARED_FILES, LogFile, reserve
from core_broker.log.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from core_broker.log.scan import BrokenBatch, HeaderFields, scan, walk
from core_broker.log.time_index import NO_TIMESTAMP, TimeIndex, TimeOffset
from core_broker.log.transaction_index import CorruptIndexError, TransactionIndex
from core_broker.protocol.records import LENGTH_BYTES, BatchHeader
from core_broker.settings.topic import TopicSettings

log = logging.getLogger(__name__)

NEVER: Final = 2**63 - 1
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

_RESERVE_FROM_BYTES: Final = 1024 * 1024
_RESERVE_BYTES_MAX: Final = 64 * 1024 * 1024

_Found = TypeVar("_Found")
_Arguments = TypeVarTuple("_Arguments")


class BatchPosition(NamedTuple):
    """The position of a batch and its header."""

    position: int
    fields: HeaderFields


class SliceEnd(NamedTuple):
    """The end position of a slice of complete batches, and the offset after it."""

    position: int
    next_offset: int


class Segment:
    """The batches from `base_offset` on."""

    __slots__ = (
        "__weakref__",
        "_file",
        "_indexed_position",
        "_is_rebuilt",
        "_knows_timestamps",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_preallocates",
        "_reserved",
        "_roll_ms",
        "_segment_bytes",
        "base_offset",
        "directory",
        "index_interval_bytes",
        "offsets",
        "roll_after_timestamp",
        "size",
        "suffix",
        "times",
        "transactions",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        settings: TopicSettings,
        *,
        size: int = 0,
        index_size: int = 0,
        time_index_size: int = 0,
        suffix: str = "",
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.size = size
        stem = f"{directory}/{segment_name(base_offset)}"
        index_bytes = settings.segment_index_bytes
        self.offsets = OffsetIndex(f"{stem}.index{suffix}", base_offset, index_bytes, size=index_size)
        self.times = TimeIndex(f"{stem}.timeindex{suffix}", base_offset, index_bytes, size=time_index_size)
        self.transactions = TransactionIndex(Path(f"{stem}.txnindex{suffix}"))
        self.roll_after_timestamp = NEVER
        self._roll_ms = _roll_age_ms(settings)
        self._file: LogFile | None = None
        self._preallocates = settings.preallocate
        self._reserved = self._reserve_from
        self._segment_bytes = settings.segment_bytes
        self.index_interval_bytes = settings.index_interval_bytes
        self._indexed_position = 0
        self._knows_timestamps = size == 0
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._is_rebuilt = False

    def configure(self, settings: TopicSettings) -> None:
        """Apply new settings to future appends."""
        self.roll_after_timestamp += _roll_age_ms(settings) - self._roll_ms
        self._roll_ms = _roll_age_ms(settings)
        self._preallocates = settings.preallocate
        self._segment_bytes = settings.segment_bytes
        self.index_interval_bytes = settings.index_interval_bytes
        self.offsets.configure(settings.segment_index_bytes)
        self.times.configure(settings.segment_index_bytes)

    # -- files ---------------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The `.log` file."""
        return Path(self._name)

    @property
    def _name(self) -> str:
        return f"{self.directory}/{segment_name(self.base_offset)}.log{self.suffix}"

    @property
    def file(self) -> LogFile:
        """The open `.log` file; opened on first use."""
        if self._file is None:
            self._file = LogFile(self._name, create=self.size == 0)
            SHARED_FILES.note_opened(self)
        return self._file

    def create(self) -> None:
        """Create the empty `.log` file, which makes the segment exist."""
        os.close(os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))

    def release_files(self) -> None:
        """Drop the open files; a reader that still refers to one keeps it open."""
        self._file = None
        self.offsets.release()
        self.times.release()

    def rename(self, suffix: str) -> None:
        """Give all files of the segment another suffix; open files stay valid."""
        old = self.suffix
        paths = (self.path, self.offsets.path, self.times.path, self.transactions.path)
        for path in paths:  # the log first: indexes without a log are removed at the next start
            try:
                path.rename(path.with_name(path.name.removesuffix(old) + suffix))
            except FileNotFoundError:
                pass
        self.suffix = suffix
        for index in (self.offsets, self.times, self.transactions):
            index.set_path(index.path.with_name(index.path.name.removesuffix(old) + suffix))

    def relocate(self, directory: Path) -> None:
        """Follow a rename of the directory; open files stay valid."""
        self.directory = directory
        for index in (self.offsets, self.times, self.transactions):
            index.set_path(directory / index.path.name)

    def delete(self) -> None:
        """Remove the files; readers that have them open can continue."""
        self.release_files()
        for path in (self.path, self.offsets.path, self.times.path, self.transactions.path):
            path.unlink(missing_ok=True)

    def seal(self) -> None:
        """Finish a segment that gets no more batches: write the last time entry, release unused space."""
        if self.size:
            self.times.append(*self.greatest_timestamp)
        self.create_missing_indexes()
        self.offsets.trim()
        self.times.trim()
        if self._reserved > self._reserve_from:
            self.file.cut(self.size)
            self._reserved = self._reserve_from

    def create_missing_indexes(self) -> None:
        """Create the files of empty indexes: to Kafka a missing one looks lost, and it would read the segment again."""
        for index in (self.offsets, self.times):
            if not index.count:
                index.path.touch()

    def flush(self, *, with_indexes: bool) -> None:
        """Sync the batches to disk, and the indexes of a sealed segment. May run in a thread."""
        self.file.sync()
        if with_indexes:
            self.offsets.flush()
            self.times.flush()
            self.transactions.flush()

    # -- appending -----------------------------------------------------------------------------------------------------

    def must_roll(self, length: int, last_offset: int, timestamp: int) -> bool:
        """Whether a batch of `length` bytes needs a new segment."""
        return (
            (self.size + length > self._segment_bytes and self.size > 0)
            or (timestamp > self.roll_after_timestamp and self.size > 0)
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
            or self.offsets.count >= self.offsets.count_max
            or self.times.count >= self.times.count_max
        )

    def append(self, file: LogFile, view: memoryview, last_offset: int, max_timestamp: int) -> None:
        """Write one batch to the segment's open file; raises OSError, and then the file may have a torn end."""
        if not self._knows_timestamps:  # of what is there already, and so before more is
            self._load_timestamps()
        position = self.size
        end = position + len(view)
        if end > self._reserved:
            # Space ahead, as much as there is already, within limits: a small log stays small on disk.
            ahead = min(max(end, _RESERVE_FROM_BYTES), _RESERVE_BYTES_MAX)
            target = max(end, self._segment_bytes if self._preallocates else min(end + ahead, self._segment_bytes))
            # If the file system cannot reserve space, appends do without until the next doubling.
            reserve(file, self.size, target - self.size)
            self._reserved = target
        written = os.pwrite(file.fd, view, position)
        while written < len(view):  # after a short write; a full disk causes an error at the next one
            written += os.pwrite(file.fd, view[written:], position + written)
        self.size = end
        if position == 0:
            self._begin_age(max_timestamp)
        self.note_batch(position, last_offset, max_timestamp)

    def append_batches(self, file: LogFile, view: memoryview, headers: Sequence[BatchHeader]) -> None:
        """Write several batches at once; raises OSError as `append` does."""
        start = self.size
        first = headers[0]
        self.append(file, view, first.last_offset, first.max_timestamp)
        for header in headers[1:]:
            self.note_batch(
                start + header.position, header.base_offset + header.last_offset_delta, header.max_timestamp
            )

    def note_batch(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """Update the indexes for a batch at `position`."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position - self._indexed_position > self.index_interval_bytes:
            try:
                self.offsets.append(last_offset, position)
                self.times.append(self._max_timestamp, self._max_timestamp_offset)
                self._indexed_position = position
            except CorruptIndexError as error:
                # The batch is written, so a damaged index must not fail the append.
                log.warning("index rebuilt", extra={"path": str(self.offsets.path), "reason": str(error)})
                self.rebuild_indexes()

    @property
    def _reserve_from(self) -> int:
        """The size from which on space is reserved ahead."""
        return 0 if self._preallocates else _RESERVE_FROM_BYTES

    def cut(self, size: int) -> None:
        """Truncate the `.log` file to `size` bytes, without touching the indexes."""
        self.file.cut(size)
        self.size = size
        self._reserved = self._reserve_from

    # -- timestamps ----------------------------------------------------------------------------------------------------

    @property
    def greatest_timestamp(self) -> TimeOffset:
        """The greatest timestamp and the last offset of the first batch that has it; (-1, base offset) if none."""
        if not self._knows_timestamps:
            self._load_timestamps()
        return TimeOffset(self._max_timestamp, self._max_timestamp_offset)

    def _load_timestamps(self) -> None:
        last = self.with_valid_indexes(self._last_time)
        if not self._knows_timestamps:  # rebuilding the indexes sets them, too
            self._max_timestamp, self._max_timestamp_offset = last
            self._knows_timestamps = True

    def _last_time(self) -> TimeOffset:
        """The last time entry of a sealed segment; if one of the last batches is later, entries are missing."""
        last = self.times.last()
        for _, fields in walk(self.file, self.offsets.last().position, self.size):
            if fields[8] > last.timestamp:
                raise CorruptIndexError(f"{self.times.path} ends at {last.timestamp}, but offset {fields[0]} is later")
        return last

    def _begin_age(self, first_timestamp: int) -> None:
        """The age of a segment counts from its first batch; without a timestamp it is never rolled by age."""
        self.roll_after_timestamp = NEVER if first_timestamp < 0 else first_timestamp + self._roll_ms

    @property
    def size_bytes(self) -> int:
        """Size of all batches."""
        return self.size

    @property
    def retention_timestamp(self) -> int:
        """The greatest timestamp, or the modification time of the file if no batch has a timestamp."""
        timestamp = self.greatest_timestamp.timestamp
        if timestamp >= 0:
            return timestamp
        return self.path.stat().st_mtime_ns // 1_000_000

    # -- finding -------------------------------------------------------------------------------------------------------

    def locate(self, offset: int) -> BatchPosition | None:
        """The batch that contains `offset`, or the first one after it; None if all are before it."""
        return self.with_valid_indexes(self._locate, offset)

    def _locate(self, offset: int) -> BatchPosition | None:
        start = self.offsets.lookup(offset).position
        for position, fields in walk(self.file, start, self.size):
            if position == start and start and not self.base_offset <= fields[0] <= offset:
                raise CorruptIndexError(f"{self.offsets.path}: byte {start} has offset {fields[0]}, not {offset}")
            if fields[0] + fields[6] >= offset:
                return BatchPosition(position, fields)
        return None

    def find_end(
        self, start: int, limit: int, upper_offset: int, end_offset: int, *, at_least_one: bool = False
    ) -> SliceEnd:
        """The end of the complete batches from `start` that lie before byte `limit` and before `upper_offset`.

        `end_offset` is the offset after the segment's last batch. With `at_least_one` the first may exceed `limit`.
        """
        if limit >= self.size and upper_offset >= end_offset:
            return SliceEnd(self.size, end_offset)
        return self.with_valid_indexes(self._find_end, start, limit, upper_offset, end_offset, at_least_one)

    def _find_end(self, start: int, limit: int, upper_offset: int, end_offset: int, at_least_one: bool) -> SliceEnd:
        entry = self.offsets.lookup_position(limit)
        if upper_offset < end_offset:
            entry = min(entry, self.offsets.lookup(upper_offset))
        begin = max(start, entry.position)
        for position, fields in walk(self.file, begin, self.size):
            if position == begin > start and not self.base_offset <= fields[0] <= entry.offset:
                raise CorruptIndexError(f"{self.offsets.path}: byte {begin} has offset {fields[0]}")
            is_too_large = position + fields[1] + LENGTH_BYTES > limit and not (at_least_one and position == start)
            if is_too_large or fields[0] + fields[6] >= upper_offset:
                return SliceEnd(position, fields[0])
        return SliceEnd(self.size, end_offset)

    def scan(self, start: int = 0) -> Iterator[tuple[int, HeaderFields, memoryview]]:
        """Position, header and bytes of all batches from byte `start`."""
        return scan(self.file, start, self.size)

    # -- truncating and rebuilding -------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that contains `offset` and all after it; returns the next offset to be assigned."""
        place = self.locate(offset)
        if place is None:
            return offset
        self.cut(place.position)
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.transactions.truncate_to(offset)
        self._max_timestamp, self._max_timestamp_offset = self.times.last()
        self._knows_timestamps = True
        self.load_tail(with_timestamps=True)
        return min(offset, place.fields[0])

    def load_tail(self, *, with_timestamps: bool = False) -> int:
        """Read from the first and last batches what an append needs; returns the offset after the last.

        Raises CorruptIndexError or BrokenBatch if index and log do not match. `with_timestamps` also checks the batches
        after the last time entry: a sealed segment has none.
        """
        next_offset = self.base_offset
        last = self.offsets.peek_last()
        if not 0 <= last.position <= self.size:
            raise CorruptIndexError(f"{self.offsets.path}: last entry is beyond the log")
        self._indexed_position = last.position
        self.roll_after_timestamp = NEVER
        for position, fields in walk(self.file, last.position, self.size):
            if position == last.position > 0 and not self.base_offset <= fields[0] <= last.offset:
                raise CorruptIndexError(f"{self.offsets.path}: byte {position} has offset {fields[0]}")
            if fields[0] < next_offset:
                raise BrokenBatch(self.path, position, f"offset {fields[0]}, expected at least {next_offset}")
            next_offset = fields[0] + fields[6] + 1
            if with_timestamps and fields[8] > self.greatest_timestamp.timestamp:
                self._max_timestamp, self._max_timestamp_offset = fields[8], next_offset - 1
            if position == 0:
                self._begin_age(fields[8])
        if last.position:
            for _, fields in walk(self.file, 0, self.size):
                self._begin_age(fields[8])
                break
        return next_offset

    def check_index_is_within_the_log(self) -> None:
        """Raise CorruptIndexError if the last entry lies beyond the log: a cheap check of a sealed segment."""
        last = self.offsets.peek_last()
        if not 0 <= last.position < max(self.size, 1) or last.offset < self.base_offset:
            raise CorruptIndexError(f"{self.offsets.path}: last entry {last} is not within {self.size} bytes of log")

    def check_indexes_reach_the_end(self) -> None:
        """Raise CorruptIndexError if the indexes of a sealed segment end before the log.

        Lost entries at the end leave no other trace; without them lookups are slow and the segment seems older.
        """
        last, greatest = self.offsets.peek_last(), self.times.last().timestamp
        for position, fields in walk(self.file, last.position, self.size):
            if position - last.position > self.index_interval_bytes or fields[8] > greatest:
                raise CorruptIndexError(f"{self.offsets.path} or its time index ends before offset {fields[0]}")

    def begin_rebuild(self) -> None:
        """Clear both indexes; `note_batch` for every batch then rebuilds them."""
        self.offsets.reset()
        self.times.reset()
        self._indexed_position = 0
        self._knows_timestamps = True
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self._is_rebuilt = True

    def rebuild_indexes(self) -> None:
        """Rebuild the offset and time indexes from the headers of the batches."""
        self.begin_rebuild()
        try:
            for position, fields, _ in self.scan():
                self.note_batch(position, fields[0] + fields[6], fields[8])
        except BrokenBatch as error:
            log.error("log file is damaged", extra={"path": str(self.path), "reason": str(error)})
        self.times.append(self._max_timestamp, self._max_timestamp_offset)

    def with_valid_indexes(self, find: Callable[[*_Arguments], _Found], *arguments: *_Arguments) -> _Found:
        """Call `find`; if it finds an index damaged, rebuild the indexes (once) and retry."""
        try:
            return find(*arguments)
        except (CorruptIndexError, BrokenBatch) as error:
            if self._is_rebuilt:
                raise
            log.warning("index rebuilt", extra={"path": str(self.offsets.path), "reason": str(error)})
        self.rebuild_indexes()
        return find(*arguments)


def segment_name(base_offset: int) -> str:
    """The name of a segment's files without the suffix."""
    return f"{base_offset:020d}"


def _roll_age_ms(settings: TopicSettings) -> int:
    """segment.ms minus a random part of segment.jitter.ms, so that not all partitions roll at once.

    A compacted log can be cleaned only after it has rolled, so there max.compaction.lag.ms is a limit, too.
    """
    age_ms = settings.segment_ms
    if "compact" in settings.cleanup_policy:
        age_ms = min(age_ms, settings.max_compaction_lag_ms)
    jitter = min(settings.segment_jitter_ms, age_ms)
    return age_ms - (random.randrange(jitter) if jitter else 0)
