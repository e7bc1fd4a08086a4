"""One partition's log on disk: Kafka's files, appended to by the event loop, read without copying.

All methods run on the event loop, except `flush`, which may run in a thread while the loop appends. Nothing else here
waits for the disk; writes go to the page cache.
"""

import logging
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.checkpoints import PARTITION_METADATA, read_topic_id, sync_directory, write_topic_id
from core_broker.log.leader_epochs import LeaderEpochs
from core_broker.log.producer_snapshot import delete_snapshots_above, delete_stray_snapshots, snapshot_path
from core_broker.log.producer_state import DuplicateBatch, Origin, ProducerStates
from core_broker.log.producer_updates import apply_batch, end_marker
from core_broker.log.recovery import LoadedLog, LoadRequest, load_log, replay_segments
from core_broker.log.retention import expired_segments
from core_broker.log.segment import Segment
from core_broker.log.segment_chain import LogSlice, SegmentChain
from core_broker.log.time_lookup import TimestampOffset, find_greatest, find_timestamp
from core_broker.log.transaction_index import CorruptIndexError
from core_broker.log.validation import AppendRules, parse_complete_headers
from core_broker.protocol.primitives import ZERO_UUID
from core_broker.protocol.records import (
    CONTROL_BIT,
    BatchHeader,
    CorruptBatch,
    Record,
    check_crc,
    stamp,
)
from core_broker.service.clock import Clock
from core_broker.settings.topic import TopicSettings

log = logging.getLogger(__name__)

PRODUCER_EXPIRATION_MS: Final = 86_400_000


class AppendResult(msgspec.Struct, gc=False):
    """The result of an append. `timestamp_ms` is the LogAppendTime, or -1 if the producer's timestamps were kept."""

    first_offset: int
    last_offset: int
    timestamp_ms: int
    log_start_offset: int
    duplicate: bool


class PartitionLog:
    """The log of one partition."""

    __slots__ = (
        "_clock",
        "_failure",
        "_flush_lock",
        "_last_flush",
        "_names_changed",
        "_producer_expiration_ms",
        "_rules",
        "_segments",
        "_topic_id",
        "_truncations",
        "directory",
        "end_offset",
        "epochs",
        "partition",
        "producers",
        "recovery_point",
        "settings",
        "start_offset",
        "topic",
    )

    def __init__(self, loaded: LoadedLog, request: LoadRequest, *, topic: str, partition: int, topic_id: bytes) -> None:
        self.topic = topic
        self.partition = partition
        self.directory = request.directory
        self.settings = request.settings
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.recovery_point = loaded.recovery_point
        self.epochs: LeaderEpochs = loaded.epochs
        self.producers: ProducerStates = loaded.producers
        self._segments = SegmentChain(loaded.segments)
        self._clock = request.clock
        self._rules = AppendRules(request.settings, request.clock)
        self._producer_expiration_ms = request.producer_expiration_ms
        self._topic_id = topic_id
        self._failure: str | None = None
        self._flush_lock = threading.Lock()
        self._last_flush = request.clock.monotonic()
        self._names_changed = True
        self._truncations = 0

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        topic: str,
        partition: int,
        settings: TopicSettings,
        clock: Clock,
        recovery_point: int = 0,
        start_offset: int = 0,
        clean: bool = False,
        topic_id: bytes = ZERO_UUID,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    ) -> "PartitionLog":
        """Open the log in a directory, creating or recovering it; `clean` says that it was closed properly."""
        request = LoadRequest(
            directory=directory,
            settings=settings,
            clock=clock,
            recovery_point=recovery_point,
            start_offset=start_offset,
            clean=clean,
            producer_expiration_ms=producer_expiration_ms,
        )
        try:
            loaded = load_log(request)
            if topic_id != ZERO_UUID and PARTITION_METADATA not in loaded.files:
                write_topic_id(directory, topic_id)
        except OSError as error:
            message = f"the log in {directory} cannot be opened: {error}"
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        return cls(loaded, request, topic=topic, partition=partition, topic_id=topic_id)

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def topic_id(self) -> bytes:
        """The id of the topic, from `partition.metadata`."""
        if self._topic_id == ZERO_UUID:
            self._topic_id = read_topic_id(self.directory)
        return self._topic_id

    @property
    def segments(self) -> Sequence[Segment]:
        """All segments, oldest first; the last one is active."""
        return self._segments.all()

    @property
    def active_segment(self) -> Segment:
        """The segment that is appended to."""
        return self._segments.active

    @property
    def size_bytes(self) -> int:
        """Size of all batches."""
        return sum(segment.size for segment in self._segments.all())

    @property
    def is_empty(self) -> bool:
        """Whether there is no record in the log."""
        return self.start_offset == self.end_offset

    @property
    def failure(self) -> str | None:
        """Why the log rejects appends, if it does."""
        return self._failure

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return self.producers.first_unstable_offset

    def configure(self, settings: TopicSettings) -> None:
        """Apply new settings to future appends."""
        self.settings = settings
        self._rules.configure(settings)
        self._segments.active.configure(settings)

    def expire_producers_after(self, expiration_ms: int) -> None:
        """Take a new producer.id.expiration.ms."""
        self._producer_expiration_ms = self.producers.expiration_ms = expiration_ms

    # -- appending -----------------------------------------------------------------------------------------------------

    def append(
        self,
        buffer: memoryview | bytearray,
        *,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append as leader: check the batches, assign their offsets (in place) and write them.

        A retry of an idempotent producer gets the result of the first attempt. `transaction_version` is that of a
        marker (KIP-890). If it raises BrokerError, nothing was appended.
        """
        if self._failure is not None:
            raise self._storage_error()
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        view, headers, append_time_ms = self._rules.admit(view, origin)
        first_offset = next_offset = self.end_offset
        for header in headers:
            if header.producer_id >= 0:
                duplicate = self._check_producer(view, header, origin, transaction_version)
                if duplicate is not None:
                    is_stamped = self.settings.message_timestamp_type == "LogAppendTime"
                    return AppendResult(
                        duplicate.first_offset,
                        duplicate.last_offset,
                        duplicate.timestamp if is_stamped else -1,
                        self.start_offset,
                        True,
                    )
            stamp(view, header, base_offset=next_offset, leader_epoch=leader_epoch)
            next_offset += header.last_offset_delta + 1
        self._write(view, headers)
        return AppendResult(first_offset, next_offset - 1, append_time_ms, self.start_offset, False)

    def open_records(self, buffer: memoryview) -> Iterator[Record]:
        """The records of a producer's batches; raises the same BrokerError as `append`."""
        return self._rules.open_records(buffer)

    def append_as_follower(
        self,
        buffer: memoryview | bytearray | bytes,
        *,
        leader_epoch: int | None = None,
        may_begin_earlier: bool = False,
    ) -> None:
        """Append batches with the leader's offsets; an incomplete last one is left out.

        Raises BrokerError if they do not continue this log (compaction may have left gaps), or are newer than
        `leader_epoch`. `may_begin_earlier` allows an empty log to begin at the start of the batch that contains its
        end, since DeleteRecords may raise the leader's start to the middle of a batch.
        """
        if self._failure is not None:
            raise self._storage_error()
        view = memoryview(buffer)
        headers = parse_complete_headers(view)
        next_offset = self.end_offset
        first = headers[0]
        if first.base_offset < next_offset <= first.last_offset and may_begin_earlier and self.is_empty:
            next_offset = first.base_offset
        for header in headers:
            if not check_crc(view, header):
                raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "the checksum of the batch does not match")
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise BrokerError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"the batch has offsets {header.base_offset} to {header.last_offset}, expected {next_offset}",
                )
            if leader_epoch is not None and header.leader_epoch > leader_epoch:
                raise BrokerError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"the batch has leader epoch {header.leader_epoch}, but the leader has {leader_epoch}",
                )
            next_offset = header.last_offset + 1
        if first.base_offset < self.end_offset:
            self.truncate_fully_and_start_at(first.base_offset)
        self._write(view[: headers[-1].position + headers[-1].size], headers)

    def _check_producer(
        self, view: memoryview, header: BatchHeader, origin: Origin, transaction_version: int
    ) -> DuplicateBatch | None:
        if header.attributes & CONTROL_BIT:
            try:
                marker = end_marker(header, view)
            except CorruptBatch as error:
                raise BrokerError(ErrorCode.INVALID_RECORD, f"the control batch cannot be read: {error}") from error
            if marker is not None:
                self.producers.check_marker(header, marker, origin=origin, transaction_version=transaction_version)
            return None
        return self.producers.check(header, origin=origin)

    def _write(self, view: memoryview, headers: list[BatchHeader]) -> None:
        """Write batches with their final offsets, and update leader epochs, indexes and producer state."""
        last = headers[-1]
        last_offset = last.base_offset + last.last_offset_delta
        segment = self._segments.active
        try:
            if segment.must_roll(len(view), last_offset, last.max_timestamp):
                segment = self._roll(headers[0].base_offset)
            if last.leader_epoch > self.epochs.saved_epoch:
                self._assign_epochs(headers)
            file = segment.file
        except OSError as error:  # Nothing was written yet: the next append may succeed.
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log cannot be written: {error}") from error
        size = segment.size
        try:
            if len(headers) == 1:
                segment.append(file, view, last_offset, last.max_timestamp)
            else:
                segment.append_batches(file, view, headers)
            for header in headers:
                if header.producer_id >= 0:
                    apply_batch(self.producers, header, view, segment.transactions)
        except OSError as error:
            raise self._fail(error, cut_at=size) from error
        self.end_offset = last_offset + 1

    def _assign_epochs(self, headers: list[BatchHeader]) -> None:
        for header in headers:
            if header.leader_epoch > self.epochs.saved_epoch:
                self.epochs.assign(header.leader_epoch, header.base_offset)

    def _fail(self, error: OSError, *, cut_at: int | None = None) -> BrokerError:
        """Reject appends from now on: the state of the disk is uncertain. Reopening the log recovers it."""
        self._failure = str(error)
        log.error(
            "log cannot be written, rejecting appends",
            extra={"topic": self.topic, "partition": self.partition, "reason": self._failure},
        )
        if cut_at is not None:
            try:
                self._segments.active.cut(cut_at)
            except OSError:
                self._segments.active.size = cut_at  # bytes beyond are never read, and recovery removes them
        return self._storage_error()

    def _storage_error(self) -> BrokerError:
        message = f"the log of {self.topic}-{self.partition} rejects appends: {self._failure}"
        return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, upper_offset: int, at_least_one: bool = True) -> LogSlice | None:
        """Complete batches of one segment, from the one that contains `offset`, below `upper_offset`.

        With `at_least_one` the first batch is returned even if it is larger than `max_bytes` (KIP-74). None if there
        is nothing to send. Raises OFFSET_OUT_OF_RANGE.
        """
        self.check_offset(offset)
        if offset >= upper_offset:
            return None
        try:
            return self._segments.read(
                offset, max_bytes, upper_offset=upper_offset, end_offset=self.end_offset, at_least_one=at_least_one
            )
        except (CorruptBatch, CorruptIndexError) as error:
            log.error(
                "log is damaged",
                extra={"topic": self.topic, "partition": self.partition, "offset": offset, "reason": str(error)},
            )
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"the log is damaged: {error}") from error
        except OSError as error:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log cannot be read: {error}") from error

    def check_offset(self, offset: int) -> None:
        """Raise OFFSET_OUT_OF_RANGE unless the log has the offset, or it is the next one."""
        if not self.start_offset <= offset <= self.end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.start_offset} and {self.end_offset}",
            )

    def read_batches(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """All batches that overlap [start, end), each with its bytes."""
        for fields, batch in self._segments.scan(start, end):
            yield BatchHeader(0, *fields), batch

    def offset_for_timestamp(self, timestamp_ms: int, *, upper_offset: int) -> TimestampOffset | None:
        """The first record with at least this timestamp; None if there is none below `upper_offset`."""
        found = find_timestamp(
            self._segments.all(), timestamp_ms, self.start_offset, max_bytes=self._rules.decompressed_bytes_max
        )
        return found if found is not None and found.offset < upper_offset else None

    def max_timestamp(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp."""
        return find_greatest(self._segments.all(), self.start_offset, max_bytes=self._rules.decompressed_bytes_max)

    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that a read of [start, end) must skip."""
        return self._segments.aborted_transactions(start, end)

    # -- segments ------------------------------------------------------------------------------------------------------

    def roll(self) -> None:
        """Close the active segment and begin a new one, unless it is empty."""
        if self._segments.active.size:
            try:
                self._roll(self.end_offset)
            except OSError as error:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the segment cannot be rolled: {error}") from error

    def _roll(self, base_offset: int) -> Segment:
        """Begin a segment at `base_offset`; an empty active one is replaced. After an error nothing has changed."""
        active = self._segments.active
        if active.size:
            active.seal()
            self.producers.snapshot(self.directory, base_offset)
        segment = Segment(self.directory, base_offset, self.settings)
        segment.create()
        self._segments.add(segment)
        self._names_changed = True
        log.info(
            "segment rolled",
            extra={"topic": self.topic, "partition": self.partition, "base_offset": base_offset},
        )
        return segment

    def delete_records_before(self, offset: int) -> None:
        """Raise the log start; segments before it are deleted by the next `delete_old_segments`."""
        if offset > self.end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is beyond the end of the log, {self.end_offset}"
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_from_start(offset)

    def delete_old_segments(self, *, high_watermark: int) -> int:
        """Delete the segments that have expired or lie below the log start; returns how many."""
        segments = self._segments.all()
        expiry = expired_segments(
            segments,
            self.settings,
            now_ms=self._clock.now_ms(),
            high_watermark=high_watermark,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
        )
        if expiry.segment_count == 0:
            return 0
        if expiry.segment_count == len(segments):
            self.roll()
        deleted = segments[: expiry.segment_count]
        self.replace_segments(deleted, [], reason=expiry.reason)
        self.delete_records_before(max(self.start_offset, self._segments.bases[0]))
        for segment in deleted:
            snapshot_path(self.directory, segment.base_offset).unlink(missing_ok=True)
        return len(deleted)

    def replace_segments(self, old: Sequence[Segment], new: Sequence[Segment], *, reason: str) -> None:
        """Replace some segments (never the active one) by others; the old files are deleted later.

        New files with the suffix `.swap` are renamed to their final names here.
        """
        self._segments.replace(
            old, new, delete_files_at=self._clock.monotonic() + self.settings.file_delete_delay_ms / 1000
        )
        self._names_changed = True
        log.info(
            "segments replaced" if new else "segments deleted",
            extra={
                "topic": self.topic,
                "partition": self.partition,
                "base_offsets": [segment.base_offset for segment in old],
                "reason": reason,
            },
        )

    def remove_deleted_files(self, *, at_once: bool = False) -> int:
        """Remove the files of segments deleted at least file.delete.delay.ms ago; returns how many segments."""
        return self._segments.remove_files(now=math.inf if at_once else self._clock.monotonic())

    def truncate_to(self, offset: int) -> bool:
        """Drop the batch that contains `offset` and everything after it; False if there was nothing to drop.

        For a follower that has diverged. If `offset` lies within a batch, Kafka would leave a gap up to it; here the
        next record gets the first offset of the dropped batch.
        """
        if offset >= self.end_offset:
            return False
        if offset <= max(self._segments.bases[0], self.start_offset):
            self.truncate_fully_and_start_at(offset)
            return True
        next_offset = self._segments.truncate_to(offset)
        self._segments.active.configure(self.settings)
        if next_offset < self.start_offset:
            self.truncate_fully_and_start_at(self.start_offset)
        else:
            self._after_truncation(next_offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        self._segments.reset(Segment(self.directory, offset, self.settings))
        delete_snapshots_above(self.directory, -1)
        self.start_offset = offset
        self._after_truncation(offset)

    def _after_truncation(self, offset: int) -> None:
        self._truncations += 1
        self._names_changed = True
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.truncate_from_end(offset)
        delete_snapshots_above(self.directory, offset)
        self.producers, snapshot_offset = ProducerStates.restore(
            self.directory,
            offset,
            clock=self._clock,
            expiration_ms=self._producer_expiration_ms,
            tracks_replication=self.producers.tracks_replication,
        )
        replay_segments(self._segments.all(), self.producers, snapshot_offset, offset)
        log.info("log truncated", extra={"topic": self.topic, "partition": self.partition, "offset": offset})

    # -- moving to another directory -----------------------------------------------------------------------------------

    @contextmanager
    def without_flushes(self) -> Iterator[bool]:
        """Block flushes while files are renamed; yields False if one is running, since waiting could take too long."""
        is_granted = self._flush_lock.acquire(blocking=False)
        try:
            yield is_granted
        finally:
            if is_granted:
                self._flush_lock.release()

    def complete_from(self, source: "PartitionLog") -> None:
        """As a copy that has all batches of a log, take over everything else from it, and sync it to disk."""
        if self.end_offset < source.end_offset:  # compaction has removed the last batches
            self._roll(source.end_offset)
            self.end_offset = source.end_offset
        self.delete_records_before(source.start_offset)
        self.producers = source.producers
        self.epochs = LeaderEpochs(self.epochs.path, source.epochs.entries)
        self.epochs.save()
        # Producers whose records were deleted are not in the batches: recovery must start from this snapshot.
        self.roll()
        self.producers.snapshot(self.directory, self.end_offset, sync=True)
        self.flush()

    def rename_directory(self, directory: Path) -> None:
        """Rename the directory of a log that is not in use yet."""
        self.directory = self.directory.rename(directory)
        self.epochs.path = directory / self.epochs.path.name
        for segment in self._segments.all():
            segment.relocate(directory)

    def continue_in(self, copy: "PartitionLog") -> Sequence[Segment]:
        """Continue in the files of a complete copy; returns the previous segments, which can still be read."""
        former = self._segments.all()
        self.directory, self.epochs = copy.directory, copy.epochs
        self._segments = SegmentChain(list(copy.segments))
        self.recovery_point = copy.recovery_point
        self._names_changed = True
        return former

    # -- durability ----------------------------------------------------------------------------------------------------

    @property
    def needs_flush(self) -> bool:
        """Whether a flush is due: after a roll, or according to flush.messages and flush.ms."""
        return self.flush_due_offset() is not None

    def flush_due_offset(self) -> int | None:
        """The offset up to which a flush is due; None if none is."""
        unflushed = self.end_offset - self.recovery_point
        if unflushed <= 0:
            return None
        waited_ms = (self._clock.monotonic() - self._last_flush) * 1000
        if unflushed >= self.settings.flush_messages or waited_ms >= self.settings.flush_ms:
            return self.end_offset
        active_base = self._segments.bases[-1]
        return active_base if self.recovery_point < active_base else None

    def flush(self, upto: int | None = None) -> None:
        """Sync the log to disk up to an offset, or completely, and move the recovery point there.

        May run in a thread while the event loop appends. If it raises KAFKA_STORAGE_ERROR, the log rejects appends:
        after a failed fsync the state of the disk is unknown.
        """
        with self._flush_lock:
            upto = self.end_offset if upto is None else min(upto, self.end_offset)
            truncations, started = self._truncations, self._clock.monotonic()
            names_changed, self._names_changed = self._names_changed, False
            try:
                if upto > self.recovery_point:
                    _sync_segments(self._segments.all(), self.recovery_point, upto)
                if names_changed:
                    sync_directory(self.directory)
            except OSError as error:
                raise self._fail(error) from error
            if truncations == self._truncations:
                self.recovery_point = max(self.recovery_point, upto)
                self._last_flush = started
            # The event loop may have truncated between the two lines above.
            self.recovery_point = min(self.recovery_point, self.end_offset)

    def close(self) -> None:
        """Sync everything to disk, so that the next start need not recover the log."""
        if self._failure is None:
            try:
                self._segments.active.seal()
                self.flush()
                if self.end_offset > self._segments.bases[0] or len(self.producers):
                    self.producers.snapshot(self.directory, self.end_offset, sync=True)
                delete_stray_snapshots(self.directory, self._segments.bases)
            except OSError as error:
                raise self._fail(error) from error
            self._failure = "it is closed"
        for segment in self._segments.all():
            segment.release_files()


def _sync_segments(segments: Sequence[Segment], start: int, end: int) -> None:
    """Sync the segments that contain [start, end); the last one is still being written to."""
    for number, segment in enumerate(segments):
        is_active = number + 1 == len(segments)
        if segment.base_offset < end and (is_active or segments[number + 1].base_offset > start):
            try:
                segment.flush(with_indexes=not is_active)
            except FileNotFoundError:
                # Retention or a truncation has deleted it in the meantime.
                log.debug("segment was gone before its flush", extra={"path": str(segment.path)})
