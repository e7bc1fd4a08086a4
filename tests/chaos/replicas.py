"""The replicas' files, read by a parser of our own: they must be byte-equal up to the high watermark.

It knows the format of record batches from Kafka's description and shares no code with the broker.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from crc32c import crc32c

_HEADER: Final = struct.Struct(">qiibIhi")
"""Base offset, length of the rest, leader epoch, magic, CRC, attributes, delta of the last offset."""
_PRODUCER: Final = struct.Struct(">qhi")
"""Producer id, producer epoch, base sequence."""
_PRODUCER_FROM: Final = 43
_CONTROL: Final = 0x20
_LENGTH_FROM: Final = 12
_CRC_FROM: Final = 21
METADATA: Final = "__cluster_metadata-0"


class Batch(NamedTuple):
    """A batch and the offsets that it covers."""

    base_offset: int
    last_offset: int
    raw: bytes


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What was compared, and every difference."""

    partitions: int = 0
    batches: int = 0
    differences: list[str] = field(default_factory=list)


def compare_replicas(
    directories: Mapping[int, Path],
    high_watermarks: Mapping[tuple[str, int], int],
    replicas: Mapping[tuple[str, int], Sequence[int]],
) -> Comparison:
    """Compare the logs of every partition on the nodes that have it, up to what is committed."""
    result = Comparison()
    for (topic, partition), high_watermark in high_watermarks.items():
        name = f"{topic}-{partition}"
        result.partitions += 1
        logs = {node: _log(directories[node], name, result) for node in replicas[topic, partition]}
        _compare(name, logs, high_watermark, result)
    _compare_metadata(directories, result)
    return result


def _log(directory: Path, name: str, result: Comparison) -> list[Batch]:
    batches: list[Batch] = []
    for file in sorted((directory / name).glob("*.log")):
        batches += read_batches(file.read_bytes(), f"{directory.parent.name}/{name}/{file.name}", result.differences)
    for before, after in pairwise(batches):
        if after.base_offset != before.last_offset + 1:
            result.differences.append(f"{directory.parent.name}/{name}: {after.base_offset} after {before.last_offset}")
    return batches


def read_batches(data: bytes, name: str, problems: list[str]) -> Iterator[Batch]:
    """The batches of a segment; a batch that is cut off or has the wrong checksum is a problem."""
    position = 0
    while position + _HEADER.size <= len(data):
        base, length, _, magic, crc, _, delta = _HEADER.unpack_from(data, position)
        raw = data[position : position + _LENGTH_FROM + length]
        if magic != 2 or len(raw) != _LENGTH_FROM + length or crc32c(raw[_CRC_FROM:]) != crc:
            problems.append(f"{name}: no sound batch at byte {position}")
            return
        yield Batch(base, base + delta, raw)
        position += len(raw)
    if any(data[position:]):
        problems.append(f"{name}: {len(data) - position} bytes too many at the end")


def _compare(name: str, logs: Mapping[int, Sequence[Batch]], high_watermark: int, result: Comparison) -> None:
    committed = {node: [batch for batch in log if batch.base_offset < high_watermark] for node, log in logs.items()}
    for node, log in committed.items():
        end = log[-1].last_offset + 1 if log else 0
        if end < high_watermark:
            result.differences.append(f"{name}: node {node} ends at {end}, below the high watermark {high_watermark}")
    (first_node, first), *others = committed.items()
    if not name.startswith("__"):  # Kafka's coordinators give all offsets of a transaction the sequence 0
        _check_sequences(name, first, result)
    result.batches += len(first)
    for node, log in others:
        for ours, theirs in zip(first, log, strict=False):
            if ours != theirs:
                result.differences.append(f"{name}: nodes {first_node} and {node} differ at offset {ours.base_offset}")
                break


def _check_sequences(name: str, log: Sequence[Batch], result: Comparison) -> None:
    """S4 by the files: the sequences of a producer's epoch follow each other without gap or repetition."""
    expected: dict[tuple[int, int], int] = {}
    for batch in log:
        producer_id, epoch, sequence = _PRODUCER.unpack_from(batch.raw, _PRODUCER_FROM)
        if producer_id < 0 or sequence < 0 or batch.raw[_CRC_FROM + 1] & _CONTROL:
            continue
        wanted = expected.get((producer_id, epoch), sequence)
        if sequence != wanted:
            where = f"{name} offset {batch.base_offset}"
            result.differences.append(f"{where}: sequence {sequence} of {producer_id}/{epoch}, expected {wanted}")
        expected[producer_id, epoch] = (sequence + batch.last_offset - batch.base_offset + 1) % (1 << 31)


def producer_epoch(directory: Path, name: str, offset: int) -> tuple[int, int]:
    """The producer id and epoch with which a record was written."""
    for file in sorted((directory / name).glob("*.log"), reverse=True):
        if int(file.stem) <= offset:
            for batch in read_batches(file.read_bytes(), name, []):
                if batch.base_offset <= offset <= batch.last_offset:
                    producer_id, epoch, _ = _PRODUCER.unpack_from(batch.raw, _PRODUCER_FROM)
                    return producer_id, epoch
    raise ValueError(f"{name} has no offset {offset}")


def _compare_metadata(directories: Mapping[int, Path], result: Comparison) -> None:
    """The metadata logs agree wherever nodes have the same offset: one leader per epoch decided about it.

    Each node may lack the end, and the beginning that its snapshot replaces.
    """
    problems: list[str] = []
    found = []
    for node, directory in directories.items():
        files = sorted((directory / METADATA).glob("*.log"))
        batches = [batch for file in files for batch in read_batches(file.read_bytes(), f"node {node}", problems)]
        found.append({batch.base_offset: batch.raw for batch in batches})
    end = min((max(log, default=-1) for log in found), default=-1)
    for offset in sorted({offset for log in found for offset in log if offset < end}):
        result.batches += 1
        if len({log[offset] for log in found if offset in log}) > 1:
            result.differences.append(f"{METADATA}: offset {offset} differs")
    result.differences += [f"{METADATA}: {problem}" for problem in problems]
