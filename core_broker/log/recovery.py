"""Opens a partition's log: trusts it after a clean stop, recovers it after any other.

After a clean stop only the end of the last segment is read. Otherwise every segment from the recovery point is read
completely, and checksums and offsets are checked; the log is truncated at the first invalid batch, later segments are
deleted, indexes are rebuilt, and leader epochs and producer state are derived from the batches. Auxiliary files
(indexes, snapshots, checkpoints) are checked, and rebuilt if damaged, which is logged.
"""

import logging
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core_broker.log.checkpoints import CorruptCheckpoint
from core_broker.log.leader_epochs import FILE_NAME as EPOCHS_FILE
from core_broker.log.leader_epochs import LeaderEpochs
from core_broker.log.leftovers import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    survey,
)
from core_broker.log.offset_index import RELATIVE_OFFSET_MAX
from core_broker.log.producer_snapshot import delete_snapshots_above, encode_snapshot
from core_broker.log.producer_state import ProducerStates
from core_broker.log.producer_updates import apply_batch
from core_broker.log.scan import BrokenBatch, scan_verified
from core_broker.log.segment import Segment, segment_name
from core_broker.log.transaction_index import CorruptIndexError
from core_broker.protocol.records import LENGTH_BYTES, BatchHeader
from core_broker.service.clock import Clock
from core_broker.settings.topic import TopicSettings

log = logging.getLogger(__name__)

SNAPSHOT_SUFFIX: Final = ".snapshot"
EMPTY_SNAPSHOT_BYTES: Final = len(encode_snapshot([]))
"""Size of a snapshot without producers, which need not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What is known about a log before it is opened."""

    directory: Path
    settings: TopicSettings
    clock: Clock
    recovery_point: int
    start_offset: int
    clean: bool
    producer_expiration_ms: int


@dataclass(slots=True, kw_only=True)
class LoadedLog:
    """A loaded log: at least one segment, the last one ready for appends."""

    segments: list[Segment]
    start_offset: int
    end_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerStates
    files: Container[str] = ()
    """Names of the files that were found."""


def load_log(request: LoadRequest) -> LoadedLog:
    """Open the log in a directory, which is created if it is missing."""
    files = survey(request.directory)
    loaded = _load(request, files)
    loaded.files = files
    return loaded


def _load(request: LoadRequest, files: dict[str, int]) -> LoadedLog:
    names = sorted(name[:20] for name in files if name.endswith(LOG_SUFFIX) and name[:20].isdecimal())
    segments = [
        Segment(
            request.directory,
            int(name),
            request.settings,
            size=files[name + LOG_SUFFIX],
            index_size=files.get(name + INDEX_SUFFIX, 0),
            time_index_size=files.get(name + TIME_INDEX_SUFFIX, 0),
        )
        for name in names
    ]
    epochs, epochs_are_known = _load_epochs(request, files)
    if not segments:
        return _empty_log(request, epochs)
    first_bad = _first_to_recover(request, segments, files)
    if first_bad < len(segments):
        loaded = _recover(request, segments, first_bad, epochs)
    else:
        loaded = _trust(request, segments, epochs, files)
    if loaded.end_offset < request.start_offset:
        # Appends must continue at the start offset, so a log that ends before it is emptied.
        log.error(
            "log ends before its start offset and was emptied",
            extra={
                "path": str(request.directory),
                "end_offset": loaded.end_offset,
                "start_offset": request.start_offset,
            },
        )
        for segment in loaded.segments:
            segment.delete()
        delete_snapshots_above(request.directory, -1)
        return _empty_log(request, loaded.epochs)
    if not epochs_are_known:
        _rebuild_epochs(loaded)
    epochs.truncate_from_end(loaded.end_offset)
    epochs.truncate_from_start(loaded.start_offset)
    return loaded


# -- inspection -------------------------------------------------------------------------------------------------------


def _load_epochs(request: LoadRequest, files: dict[str, int]) -> tuple[LeaderEpochs, bool]:
    """The epochs of the checkpoint, and whether they are reliable."""
    path = request.directory / EPOCHS_FILE
    if EPOCHS_FILE not in files:
        return LeaderEpochs(path), not any(name.endswith(LOG_SUFFIX) and size for name, size in files.items())
    try:
        return LeaderEpochs.load(request.directory), True
    except CorruptCheckpoint as error:
        log.error("corrupt leader epoch checkpoint rebuilt", extra={"path": str(path), "reason": str(error)})
        return LeaderEpochs(path), False


def _first_to_recover(request: LoadRequest, segments: list[Segment], files: dict[str, int]) -> int:
    """Index of the first segment that must be read completely; the number of segments if there is none."""
    first = len(segments)
    if not request.clean:
        first = max(0, sum(segment.base_offset <= request.recovery_point for segment in segments) - 1)
    for number, segment in enumerate(segments[:first]):
        if not _has_valid_transaction_index(segment, files):
            return number
        _check_indexes(segment, files, thoroughly=not request.clean)
    return first


def _has_valid_transaction_index(segment: Segment, files: dict[str, int]) -> bool:
    if segment_name(segment.base_offset) + TRANSACTION_INDEX_SUFFIX not in files:
        return True
    try:
        segment.transactions.check(segment.base_offset)
    except CorruptIndexError as error:
        log.error("corrupt transaction index rebuilt", extra={"reason": str(error)})
        return False
    return True


def _check_indexes(segment: Segment, files: dict[str, int], *, thoroughly: bool) -> None:
    """Rebuild the indexes of a segment if they are damaged."""
    try:
        name = segment_name(segment.base_offset)
        if files.get(name + INDEX_SUFFIX, 0) % segment.offsets.ENTRY.size:
            raise CorruptIndexError(
                f"{segment.offsets.path}: the size is not a multiple of {segment.offsets.ENTRY.size}"
            )
        if files.get(name + TIME_INDEX_SUFFIX, 0) % segment.times.ENTRY.size:
            raise CorruptIndexError(f"{segment.times.path}: the size is not a multiple of {segment.times.ENTRY.size}")
        # Sealing a segment creates at least an empty file.
        if segment.size and name + TIME_INDEX_SUFFIX not in files:
            raise CorruptIndexError(f"{segment.times.path} is missing")
        if segment.offsets.count:
            segment.check_index_is_within_the_log()
        if thoroughly:
            segment.offsets.check()
            segment.times.check()
        if thoroughly or (segment.size > segment.index_interval_bytes and not segment.offsets.count):
            segment.check_indexes_reach_the_end()
            segment.release_files()
    except (CorruptIndexError, BrokenBatch) as error:
        log.error("corrupt index rebuilt", extra={"path": str(segment.path), "reason": str(error)})
        segment.rebuild_indexes()
        segment.seal()
        segment.release_files()


# -- after a clean stop -----------------------------------------------------------------------------------------------


def _trust(request: LoadRequest, segments: list[Segment], epochs: LeaderEpochs, files: dict[str, int]) -> LoadedLog:
    active = segments[-1]
    try:
        end_offset = active.load_tail() if active.size else active.base_offset
    except (CorruptIndexError, BrokenBatch) as error:
        log.error("end of the log is damaged", extra={"path": str(active.path), "reason": str(error)})
        return _recover(request, segments, len(segments) - 1, epochs)
    if segment_name(active.base_offset) + INDEX_SUFFIX not in files:
        active.create_missing_indexes()
    active.release_files()
    producers, replay_from = _restore_producers(request, end_offset, files)
    loaded = _make_loaded(request, segments, end_offset, epochs, producers)
    loaded.recovery_point = end_offset
    if replay_from < end_offset:
        replay_segments(loaded.segments, loaded.producers, replay_from, loaded.end_offset)
    return loaded


def _restore_producers(
    request: LoadRequest, end_offset: int, files: dict[str, int] | None = None
) -> tuple[ProducerStates, int]:
    if files is not None:
        if files.get(f"{end_offset:020d}{SNAPSHOT_SUFFIX}") == EMPTY_SNAPSHOT_BYTES:
            return ProducerStates(request.clock, request.producer_expiration_ms), end_offset
        if not any(name.endswith(SNAPSHOT_SUFFIX) for name in files):
            return ProducerStates(request.clock, request.producer_expiration_ms), 0
    return ProducerStates.restore(
        request.directory, end_offset, clock=request.clock, expiration_ms=request.producer_expiration_ms
    )


def replay_segments(segments: Sequence[Segment], producers: ProducerStates, start: int, end: int) -> None:
    """Apply the batches of [start, end) to the producer state."""
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else end
        if next_base <= start or segment.base_offset >= end or not segment.size:
            continue
        place = segment.locate(start)
        for _, fields, batch in segment.scan(place.position) if place is not None else ():
            if fields[9] >= 0 and start <= fields[0] < end:
                apply_batch(producers, BatchHeader(0, *fields), batch, None)


# -- after any other stop ---------------------------------------------------------------------------------------------


def _recover(request: LoadRequest, segments: list[Segment], first: int, epochs: LeaderEpochs) -> LoadedLog:
    """Read the segments from `first`, and truncate the log at the first invalid batch."""
    base_offset = segments[first].base_offset
    epochs.truncate_from_end(base_offset)
    producers, replay_from = _restore_producers(request, base_offset)
    replay_segments(segments[:first], producers, replay_from, base_offset)
    end_offset = base_offset
    for number in range(first, len(segments)):
        if number > first:
            producers.snapshot(request.directory, segments[number].base_offset)
        end_offset, is_intact = _recover_segment(segments[number], producers, epochs)
        if not is_intact:
            # The segments after the truncated one would follow a gap.
            for segment in segments[number + 1 :]:
                extra = {"path": str(segment.path), "bytes_dropped": segment.size}
                log.error("segment after the damage deleted", extra=extra)
                segment.delete()
            del segments[number + 1 :]
            break
        segments[number].release_files()
    epochs.save()
    return _make_loaded(request, segments, end_offset, epochs, producers)


def _recover_segment(segment: Segment, producers: ProducerStates, epochs: LeaderEpochs) -> tuple[int, bool]:
    """Check every batch and rebuild the indexes; returns the offset after the last valid batch, and if all were."""
    segment.begin_rebuild()
    segment.transactions.reset()
    next_offset, valid_bytes = segment.base_offset, 0
    offset_limit = segment.base_offset + RELATIVE_OFFSET_MAX
    damage = None
    try:
        for position, fields, piece, at in scan_verified(segment.file, 0, segment.size):
            last_offset = fields[0] + fields[6]
            if not next_offset <= fields[0] <= last_offset <= offset_limit:
                reason = f"batch of offsets {fields[0]} to {last_offset} after {next_offset - 1}"
                raise BrokenBatch(segment.path, position, reason)
            segment.note_batch(position, last_offset, fields[8])
            if fields[2] > epochs.latest_epoch:
                epochs.assign(fields[2], fields[0], save=False)
            if fields[9] >= 0:
                apply_batch(producers, BatchHeader(at, *fields), piece, segment.transactions)
            next_offset = last_offset + 1
            valid_bytes = position + fields[1] + LENGTH_BYTES
    except BrokenBatch as error:
        damage = error
        log.error(
            "log truncated at the first invalid batch",
            extra={
                "path": str(segment.path),
                "offset": next_offset,
                "bytes_dropped": segment.size - valid_bytes,
                "reason": str(error),
            },
        )
    segment.cut(valid_bytes)  # also releases space reserved ahead
    if segment.size:
        segment.load_tail()
    segment.seal()
    return next_offset, damage is None


def _rebuild_epochs(loaded: LoadedLog) -> None:
    """Derive the leader epochs from the batches, each of which contains its own."""
    epochs = loaded.epochs
    epochs.clear()
    for segment in loaded.segments:
        try:
            for _, fields, _ in segment.scan():
                if fields[2] > epochs.latest_epoch:
                    epochs.assign(fields[2], fields[0], save=False)
        except BrokenBatch as error:
            log.error("log file is damaged", extra={"path": str(segment.path), "reason": str(error)})
        segment.release_files()
    epochs.save()


# -- results ----------------------------------------------------------------------------------------------------------


def _make_loaded(
    request: LoadRequest, segments: list[Segment], end_offset: int, epochs: LeaderEpochs, producers: ProducerStates
) -> LoadedLog:
    return LoadedLog(
        segments=segments,
        start_offset=max(request.start_offset, segments[0].base_offset),
        end_offset=end_offset,
        recovery_point=min(request.recovery_point, end_offset),
        epochs=epochs,
        producers=producers,
    )


def _empty_log(request: LoadRequest, epochs: LeaderEpochs) -> LoadedLog:
    segment = Segment(request.directory, request.start_offset, request.settings)
    segment.create()
    if epochs.entries:
        epochs.clear()
    producers = ProducerStates(request.clock, request.producer_expiration_ms)
    loaded = _make_loaded(request, [segment], request.start_offset, epochs, producers)
    loaded.recovery_point = request.start_offset
    return loaded
