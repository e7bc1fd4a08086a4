"""An independent reader of a broker's files: every index must agree with its log, every transaction with its markers.

It shares no code with the broker: the formats are read here a second time, from Kafka's description of them.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crc32c import crc32c

_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_INDEX_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_ABORTED_ENTRY: Final = struct.Struct(">hqqqq")
_CONTROL_KEY: Final = struct.Struct(">hh")
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_CODEC: Final = 0x07


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The header of a batch as it stands in the file."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    is_crc_right: bool
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    is_abort: bool
    is_commit: bool

    @property
    def is_transactional_data(self) -> bool:
        """Whether these are records of a transaction, not its marker."""
        return bool(self.attributes & _TRANSACTIONAL) and not self.attributes & _CONTROL


@dataclass(slots=True, kw_only=True)
class PartitionReport:
    """What was found in one partition folder."""

    directory: Path
    batches: list[Batch] = field(default_factory=list)
    segments: int = 0
    index_entries: int = 0
    time_entries: int = 0
    aborted_entries: int = 0
    problems: list[str] = field(default_factory=list)

    def complain(self, file: Path, problem: str) -> None:
        """Note a disagreement."""
        self.problems.append(f"{self.directory.name}/{file.name}: {problem}")


def check_data_directory(data: Path) -> list[PartitionReport]:
    """Check every partition below a log directory."""
    folders = sorted({path.parent for path in data.rglob("*.log") if path.stem.isdigit()})
    return [check_partition(folder) for folder in folders if not folder.name.endswith("-delete")]


def check_partition(directory: Path) -> PartitionReport:
    """Check one partition: batches, then each index against them."""
    report = PartitionReport(directory=directory)
    for log in sorted(directory.glob("*.log")):
        batches = list(_batches(log, report))
        report.segments += 1
        _check_order(log, batches, report)
        _check_offset_index(log.with_suffix(".index"), batches, report)
        _check_time_index(log.with_suffix(".timeindex"), batches, report)
        _check_aborted(log.with_suffix(".txnindex"), batches, report)
        report.batches += batches
    _check_sequences(directory, report)
    return report


# --- the log ----------------------------------------------------------------------------------------------------------


def _batches(log: Path, report: PartitionReport) -> Iterator[Batch]:
    data = log.read_bytes()
    position = 0
    while position < len(data):
        if len(data) - position < _BATCH.size:
            report.complain(log, f"{len(data) - position} bytes at {position} are no batch")
            return
        header = _BATCH.unpack_from(data, position)
        size = header[1] + 12
        if header[3] != 2 or size < _BATCH.size or position + size > len(data):
            report.complain(log, f"no sound batch at {position}: magic {header[3]}, size {size}")
            return
        batch = _batch(header, data[position : position + size], position)
        if not batch.is_crc_right:
            report.complain(log, f"wrong checksum at {position}")
        yield batch
        position += size


def _batch(header: tuple[int, ...], raw: bytes, position: int) -> Batch:
    base, _, epoch, _, crc, attributes, delta, _, max_timestamp, producer_id, producer_epoch, sequence, count = header
    kind = _control_kind(raw) if attributes & _CONTROL else None
    return Batch(
        position=position,
        size=len(raw),
        base_offset=base,
        last_offset=base + delta,
        leader_epoch=epoch,
        is_crc_right=crc32c(raw[21:]) == crc,
        attributes=attributes,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        record_count=count,
        is_abort=kind == 0,
        is_commit=kind == 1,
    )


def _control_kind(raw: bytes) -> int | None:
    """The type in the key of the first record: after its length, attributes, deltas and the length of the key."""
    if len(raw) <= _BATCH.size:
        return None
    position = _skip_varint(raw, _BATCH.size) + 1
    for _ in range(3):
        position = _skip_varint(raw, position)
    kind: int = _CONTROL_KEY.unpack_from(raw, position)[1]
    return kind


def _skip_varint(data: bytes, position: int) -> int:
    while data[position] & 0x80:
        position += 1
    return position + 1


def _check_order(log: Path, batches: list[Batch], report: PartitionReport) -> None:
    expected = int(log.stem)
    previous_epoch = -1
    for batch in batches:
        if batch.base_offset < expected:
            report.complain(log, f"offset {batch.base_offset} at {batch.position} comes after {expected - 1}")
        if batch.leader_epoch < previous_epoch:
            report.complain(log, f"leader epoch {batch.leader_epoch} comes after {previous_epoch}")
        expected = batch.last_offset + 1
        previous_epoch = batch.leader_epoch


def _check_sequences(directory: Path, report: PartitionReport) -> None:
    """Sequences of a producer's epoch follow each other without gap or repetition, compaction aside."""
    expected: dict[tuple[int, int], int] = {}
    for batch in report.batches:
        if batch.producer_id < 0 or batch.attributes & _CONTROL or batch.base_sequence < 0:
            continue
        key = (batch.producer_id, batch.producer_epoch)
        wanted = expected.get(key)
        if wanted is not None and batch.base_sequence < wanted:
            report.complain(
                directory, f"producer {key} repeats sequence {batch.base_sequence} at offset {batch.base_offset}"
            )
        expected[key] = batch.base_sequence + (batch.last_offset - batch.base_offset) + 1


# --- its indexes ------------------------------------------------------------------------------------------------------


def _entries(file: Path, layout: struct.Struct, report: PartitionReport) -> list[tuple[int, ...]]:
    """Entries of an index; zeros at the end are room that was reserved."""
    if not file.exists():
        return []
    data = file.read_bytes()
    if len(data) % layout.size:
        report.complain(file, f"{len(data)} bytes are not a whole number of entries")
        data = data[: len(data) - len(data) % layout.size]
    entries = list(layout.iter_unpack(data))
    while entries and not any(entries[-1]):
        entries.pop()
    return entries


def _check_offset_index(file: Path, batches: list[Batch], report: PartitionReport) -> None:
    base = int(file.stem)
    starts = {batch.position: batch for batch in batches}
    last = batches[-1].last_offset if batches else base - 1
    previous = (-1, -1)
    for relative, position in _entries(file, _INDEX_ENTRY, report):
        report.index_entries += 1
        batch = starts.get(position)
        if batch is None:
            report.complain(file, f"entry {relative} points to {position}, where no batch begins")
        elif not batch.base_offset <= base + relative <= last:
            report.complain(file, f"entry {relative} points to the batch of {batch.base_offset} at {position}")
        if (relative, position) <= previous or relative < previous[0] or position < previous[1]:
            report.complain(file, f"entry ({relative}, {position}) comes after {previous}")
        previous = (relative, position)


def _check_time_index(file: Path, batches: list[Batch], report: PartitionReport) -> None:
    base = int(file.stem)
    last = batches[-1].last_offset if batches else base - 1
    previous = (-1, -1)
    for timestamp, relative in _entries(file, _TIME_ENTRY, report):
        report.time_entries += 1
        offset = base + relative
        before = [batch.max_timestamp for batch in batches if batch.last_offset <= offset]
        if before and max(before) > timestamp:
            report.complain(file, f"{max(before)} stands at or before offset {offset}, whose entry says {timestamp}")
        if offset > last:
            report.complain(file, f"entry for offset {offset}, but the segment ends at {last}")
        if timestamp < previous[0] or relative < previous[1]:
            report.complain(file, f"entry ({timestamp}, {relative}) comes after {previous}")
        previous = (timestamp, relative)


def _check_aborted(file: Path, batches: list[Batch], report: PartitionReport) -> None:
    """Each entry has its abort marker in this segment; each marker that ended records has its entry."""
    markers = {(batch.producer_id, batch.base_offset) for batch in batches if batch.is_abort}
    found = set()
    for version, producer_id, first, last, _stable in _entries(file, _ABORTED_ENTRY, report):
        report.aborted_entries += 1
        found.add((producer_id, last))
        if version != 0 or first >= last:
            report.complain(file, f"entry of version {version} from {first} to {last}")
        if (producer_id, last) not in markers:
            report.complain(file, f"no abort marker of producer {producer_id} at {last}")
    opened = _first_offsets(report.batches + batches)
    for producer_id, offset in markers - found:
        if (producer_id, offset) in opened:
            report.complain(file, f"the abort marker of producer {producer_id} at {offset} has no entry")


def _first_offsets(batches: list[Batch]) -> dict[tuple[int, int], int]:
    """(producer, offset of its marker) to the first record of the transaction it ends."""
    open_since: dict[int, int] = {}
    ended: dict[tuple[int, int], int] = {}
    for batch in batches:
        if batch.is_transactional_data:
            open_since.setdefault(batch.producer_id, batch.base_offset)
        elif (batch.is_abort or batch.is_commit) and batch.producer_id in open_since:
            ended[batch.producer_id, batch.base_offset] = open_since.pop(batch.producer_id)
    return ended
