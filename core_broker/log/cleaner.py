"""The two passes of compaction, run in a worker thread on segments that no longer change.

Pass one reads the dirty part of the log and notes the newest offset of each key; pass two copies segments from the
beginning without what is no longer needed (`batch_filter` decides). The thread shares the interpreter with the broker,
so it pauses regularly to let the event loop run.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core_broker.log.batch_filter import CleaningRound, TransactionTracker, Verdict, filter_batch
from core_broker.log.cleaned_segment import CleanedSegment
from core_broker.log.key_offsets import KeyOffsets
from core_broker.log.log_file import LogFile
from core_broker.log.record_scan import records_section, scan_records
from core_broker.log.scan import scan
from core_broker.log.transaction_index import AbortedTransaction, read_transaction_index
from core_broker.protocol.records import BatchHeader, CorruptBatch, check_crc, parse_header
from core_broker.service.clock import Clock

log = logging.getLogger(__name__)

_STRETCH_RECORDS = 250
_STRETCH_BYTES = 256 * 1024
_PAUSE_SECONDS = 0.0001


class CleaningStoppedError(Exception):
    """The broker is shutting down or the log is being deleted; what was written so far is discarded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSegment:
    """A closed segment as values copied on the event loop, so that the thread shares no state."""

    base_offset: int
    end_offset: int
    """Base offset of the next segment."""
    size_bytes: int
    index_bytes: int
    log_path: Path
    transaction_index_path: Path


class Pacer:
    """Keeps a worker thread from starving the event loop, and within log.cleaner.io.max.bytes.per.second."""

    def __init__(self, clock: Clock, stop: threading.Event, *, bytes_per_second: float = float("inf")) -> None:
        self._clock = clock
        self._stop = stop
        self._bytes_per_second = bytes_per_second
        self._records = 0
        self._bytes = 0
        self._since = clock.monotonic()

    def note_work(self, records: int, size_bytes: int) -> None:
        """Count some work, and pause regularly; raises CleaningStoppedError after a stop."""
        self._records += records
        self._bytes += size_bytes
        if self._records < _STRETCH_RECORDS and self._bytes < _STRETCH_BYTES:
            return
        spent = self._clock.monotonic() - self._since
        due = min(self._bytes / self._bytes_per_second, 60.0)
        if self._stop.wait(max(_PAUSE_SECONDS, due - spent)):
            raise CleaningStoppedError
        self._records = self._bytes = 0
        self._since = self._clock.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysRead:
    """The result of pass one."""

    keys: KeyOffsets
    last_offset: int
    """Last offset of the last batch that was read completely; -1 if there was none."""
    is_complete: bool
    """False if the map was full before the end."""


def read_keys(
    segments: Sequence[SourceSegment],
    keys: KeyOffsets,
    *,
    first_dirty_offset: int,
    aborted: "AbortedLookup",
    pacer: Pacer,
) -> KeysRead:
    """Pass one over the dirty segments: the newest offset of each key from `first_dirty_offset`."""
    transactions = TransactionTracker()
    last_offset = -1
    for segment in segments:
        transactions.add_aborted(aborted.touching(segment))
        for header, batch in iterate_batches(segment):
            if header.last_offset >= first_dirty_offset:
                full_at = _read_batch_keys(header, batch, keys, transactions, first_dirty_offset)
                if full_at is not None:
                    keys.end_offset = full_at
                    return KeysRead(keys=keys, last_offset=last_offset, is_complete=False)
                last_offset = header.last_offset
            pacer.note_work(header.record_count, header.size)
        keys.end_offset = segment.end_offset
    return KeysRead(keys=keys, last_offset=last_offset, is_complete=True)


def _read_batch_keys(
    header: BatchHeader, batch: memoryview, keys: KeyOffsets, transactions: TransactionTracker, first_dirty_offset: int
) -> int | None:
    """Note the keys of a batch; returns the offset at which the map was full, if it was."""
    # Markers have no keys, and the bounds of aborted transactions are known from the transaction indexes.
    if header.is_control or transactions.is_aborted_data(header):
        return None
    try:
        _check_batch(header, batch)
        base_offset = header.base_offset
        for _, _, offset_delta, _, key, _ in scan_records(records_section(batch, header), header):
            offset = base_offset + offset_delta
            if key is not None and offset >= first_dirty_offset and not keys.put(key, offset):
                return offset
    except CorruptBatch:
        # The second pass logs it, and keeps the batch.
        return None
    return None


def clean_group(
    group: Sequence[SourceSegment],
    *,
    cleaning: CleaningRound,
    transactions: TransactionTracker,
    new_segment: Callable[[], CleanedSegment],
    aborted: "AbortedLookup",
    pacer: Pacer,
) -> CleanedSegment | None:
    """Pass two over one group of segments; None if the result would equal the single original."""
    cleaned = new_segment()
    is_changed = len(group) > 1
    try:
        for segment in group:
            transactions.add_aborted(aborted.touching(segment))
            for header, batch in iterate_batches(segment):
                is_changed |= _copy_batch(header, batch, cleaned, cleaning, transactions)
                pacer.note_work(header.record_count, header.size)
        still_aborted = transactions.take_still_aborted()
        if is_changed:
            cleaned.finish(still_aborted, modified_ns=group[-1].log_path.stat().st_mtime_ns)
            return cleaned
    except BaseException:
        cleaned.close()
        cleaned.discard()
        raise
    cleaned.close()
    cleaned.discard()
    return None


def _copy_batch(
    header: BatchHeader,
    batch: memoryview,
    cleaned: CleanedSegment,
    cleaning: CleaningRound,
    transactions: TransactionTracker,
) -> bool:
    """Write what is kept of a batch; True if that is not all of it."""
    try:
        _check_batch(header, batch)
        verdict, rewritten = filter_batch(header, batch, cleaning, transactions)
    except CorruptBatch as error:
        log.error(
            "unreadable batch kept unchanged by compaction",
            extra={"path": str(cleaned.directory), "base_offset": header.base_offset, "reason": str(error)},
        )
        if not header.is_control:
            transactions.is_aborted_data(header)
        cleaned.append(header, batch)
        return False
    if verdict is Verdict.KEEP:
        cleaned.append(header, batch)
    elif rewritten is not None:
        cleaned.append(parse_header(rewritten), rewritten)
    return verdict is not Verdict.KEEP


def _check_batch(header: BatchHeader, batch: memoryview) -> None:
    if not check_crc(batch, header):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not match")


class AbortedLookup:
    """Aborted transactions by segment, read from the files, as the log's own objects belong to the event loop."""

    def __init__(self, segments: Sequence[SourceSegment], later_indexes: Sequence[Path]) -> None:
        self._paths = [segment.transaction_index_path for segment in segments] + list(later_indexes)
        self._numbers = {segment.base_offset: number for number, segment in enumerate(segments)}
        self._read: dict[Path, list[AbortedTransaction]] = {}

    def touching(self, segment: SourceSegment) -> list[AbortedTransaction]:
        """Those with records in the segment; their markers may be in later segments."""
        found: list[AbortedTransaction] = []
        for path in self._paths[self._numbers[segment.base_offset] :]:
            for aborted in self._entries(path):
                if aborted.last_offset >= segment.base_offset and aborted.first_offset < segment.end_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= segment.end_offset:
                    return found
        return found

    def _entries(self, path: Path) -> list[AbortedTransaction]:
        entries = self._read.get(path)
        if entries is None:
            entries = self._read[path] = read_transaction_index(path)
        return entries


def iterate_batches(segment: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of a closed segment, each with its own buffer; raises CorruptBatch at an incomplete one."""
    for _, fields, batch in scan(LogFile(segment.log_path), 0, segment.size_bytes):
        yield BatchHeader(0, *fields), batch
