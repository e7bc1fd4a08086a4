"""The `<offset>.snapshot` files: producer state as of an offset, in Kafka's format.

version i16 = 1, CRC-32C u32 of the rest, count i32, then 46 bytes per producer. A snapshot is written without fsync (it
happens on the append path, at a roll); the checksum detects a torn one, and the next older one is used.
"""

import logging
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

log = logging.getLogger(__name__)

SUFFIX = ".snapshot"
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1

_VERSION = 1
_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_TEMPORARY_SUFFIX = ".tmp"


class SnapshotEntry(NamedTuple):
    """One stored producer."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


class CorruptSnapshotError(ValueError):
    """A damaged snapshot file."""


def snapshot_path(directory: Path, offset: int) -> Path:
    """The file of the snapshot taken at `offset`."""
    return directory / f"{offset:020d}{SUFFIX}"


def encode_snapshot(entries: Sequence[SnapshotEntry]) -> bytes:
    """The bytes of a snapshot file."""
    body = _COUNT.pack(len(entries)) + b"".join(_ENTRY.pack(*entry) for entry in entries)
    return _PREFIX.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    """The entries of a snapshot file; raises CorruptSnapshotError."""
    if len(data) < _PREFIX.size + _COUNT.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few")
    version, checksum = _PREFIX.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"version {version} is not {_VERSION}")
    body = memoryview(data)[_PREFIX.size :]
    if crc32c(body) != checksum:
        raise CorruptSnapshotError("checksum does not match")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or count * _ENTRY.size != len(body) - _COUNT.size:
        raise CorruptSnapshotError(f"{count} entries do not fit into {len(data)} bytes")
    return [SnapshotEntry._make(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def write_snapshot(directory: Path, offset: int, entries: Sequence[SnapshotEntry], *, sync: bool = False) -> Path:
    """Write a snapshot to a temporary file and rename it, so that no incomplete one is ever found."""
    path = snapshot_path(directory, offset)
    temporary = path.with_name(path.name + _TEMPORARY_SUFFIX)
    with temporary.open("wb") as file:
        file.write(encode_snapshot(entries))
        if sync:
            file.flush()
            os.fdatasync(file.fileno())
    temporary.replace(path)
    return path


def snapshot_offsets(directory: Path) -> list[int]:
    """Offsets of all snapshots in a partition directory, sorted."""
    with os.scandir(directory) as listing:
        stems = [entry.name[: -len(SUFFIX)] for entry in listing if entry.name.endswith(SUFFIX)]
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def newest_valid_snapshot(directory: Path, end_offset: int) -> tuple[int, list[SnapshotEntry]]:
    """Offset and entries of the newest valid snapshot at or below `end_offset`; (0, []) if there is none.

    A cleanly closed log has one at its end: then the directory is not listed, which matters with many partitions.
    """
    entries = _read_if_valid(f"{directory}/{end_offset:020d}{SUFFIX}")
    if entries is not None:
        return end_offset, entries
    for offset in reversed(snapshot_offsets(directory)):
        path = snapshot_path(directory, offset)
        if offset > end_offset:
            # Normal after an unclean stop, when the log is recovered from its recovery point.
            log.debug(
                "producer snapshot beyond the recovery point deleted", extra={"path": str(path), "from": end_offset}
            )
            path.unlink(missing_ok=True)
            continue
        try:
            return offset, decode_snapshot(path.read_bytes())
        except (CorruptSnapshotError, OSError) as error:
            log.warning("corrupt producer snapshot deleted", extra={"path": str(path), "reason": str(error)})
            path.unlink(missing_ok=True)
    return 0, []


def _read_if_valid(path: str) -> list[SnapshotEntry] | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return decode_snapshot(os.read(fd, os.fstat(fd).st_size))
    except (CorruptSnapshotError, OSError):
        return None
    finally:
        os.close(fd)


def delete_snapshots_above(directory: Path, offset: int) -> None:
    """Delete snapshots taken after `offset`, as required by a truncation to it."""
    _delete(directory, (taken for taken in snapshot_offsets(directory) if taken > offset))


def delete_stray_snapshots(directory: Path, segment_bases: Iterable[int]) -> None:
    """Keep the snapshots at segment bases and the newest one; delete the rest, and temporary files of a crash."""
    bases = set(segment_bases)
    offsets = snapshot_offsets(directory)
    _delete(directory, (taken for taken in offsets[:-1] if taken not in bases))
    for leftover in directory.glob(f"*{SUFFIX}{_TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


def _delete(directory: Path, offsets: Iterable[int]) -> None:
    for offset in offsets:
        snapshot_path(directory, offset).unlink(missing_ok=True)
