"""Snapshots of the metadata log: files `<end offset>-<epoch>.checkpoint` in Kafka's format (KIP-630).

A snapshot replaces every record below its end offset. It is a sequence of batches: a header, the records that rebuild
the image, and a footer. A snapshot without a footer is incomplete and not used.
"""

import logging
import re
import struct
from pathlib import Path
from typing import Final, NamedTuple

from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.metadata_records import decode_record, encode_record, records_of
from core_broker.cluster.quorum_state import write_durably
from core_broker.protocol.fields import Message, encode
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import (
    CorruptBatch,
    Record,
    build_batch,
    check_crc,
    control_type,
    parse_batches,
    read_records,
)
from core_broker.protocol.stored.control import SnapshotFooterRecord, SnapshotHeaderRecord

log = logging.getLogger(__name__)

CONTROL_LEADER_CHANGE: Final = 2
CONTROL_SNAPSHOT_HEADER: Final = 3
CONTROL_SNAPSHOT_FOOTER: Final = 4

_FILE_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_RECORDS_PER_BATCH: Final = 1000
_SNAPSHOTS_KEPT: Final = 2
"""The newest, and the previous one in case the newest turns out to be damaged."""


class SnapshotId(NamedTuple):
    """The records a snapshot replaces: all below an offset, the last of which has this epoch."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Its file name in the directory of the metadata log."""
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


def list_snapshots(directory: Path) -> list[SnapshotId]:
    """The snapshots in a directory, oldest first."""
    matches = (_FILE_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in matches if match)


def write_snapshot(directory: Path, image: MetadataImage, *, timestamp_ms: int) -> SnapshotId:
    """Write an image to disk; on return the snapshot is complete and durable."""
    snapshot = SnapshotId(image.offset + 1, image.epoch)
    name = snapshot.file_name
    write_durably(directory / name, _encode(image, timestamp_ms), temporary=directory / f"{name}.part")
    return snapshot


def load_newest(directory: Path, cluster_id: str) -> MetadataImage:
    """The image of the newest intact snapshot; an empty image if there is none."""
    for snapshot in reversed(list_snapshots(directory)):
        path = directory / snapshot.file_name
        try:
            return _decode(path.read_bytes(), snapshot, cluster_id)
        except (CorruptBatch, DecodeError, OSError) as error:
            log.error("metadata snapshot cannot be used", extra={"path": str(path), "reason": str(error)})
    return MetadataImage(cluster_id=cluster_id)


def delete_old_snapshots(directory: Path) -> int:
    """Delete all but the newest two, and files left half-written by a crash; returns the oldest end offset kept."""
    for path in directory.glob("*.checkpoint.part"):
        path.unlink(missing_ok=True)
    snapshots = list_snapshots(directory)
    for snapshot in snapshots[:-_SNAPSHOTS_KEPT]:
        (directory / snapshot.file_name).unlink(missing_ok=True)
    kept = snapshots[-_SNAPSHOTS_KEPT:]
    return kept[0].end_offset if len(kept) == _SNAPSHOTS_KEPT else 0


def control_record(kind: int, body: Message, *, version: int, timestamp_ms: int) -> Record:
    """A control record of the quorum."""
    return Record(timestamp=timestamp_ms, key=struct.pack(">hh", 0, kind), value=bytes(encode(body, version)))


def _encode(image: MetadataImage, timestamp_ms: int) -> bytearray:
    header = SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms)
    first = [control_record(CONTROL_SNAPSHOT_HEADER, header, version=0, timestamp_ms=timestamp_ms)]
    data = build_batch(first, leader_epoch=image.epoch, is_control=True)
    offset = 1
    records = [Record(timestamp=timestamp_ms, value=encode_record(record)) for record in records_of(image)]
    for start in range(0, len(records), _RECORDS_PER_BATCH):
        chunk = records[start : start + _RECORDS_PER_BATCH]
        data += build_batch(chunk, base_offset=offset, leader_epoch=image.epoch)
        offset += len(chunk)
    last = [control_record(CONTROL_SNAPSHOT_FOOTER, SnapshotFooterRecord(), version=0, timestamp_ms=timestamp_ms)]
    data += build_batch(last, base_offset=offset, leader_epoch=image.epoch, is_control=True)
    return data


def _decode(data: bytes, snapshot: SnapshotId, cluster_id: str) -> MetadataImage:
    draft = MetadataDraft(MetadataImage(cluster_id=cluster_id))
    is_complete = False
    for header in parse_batches(data):
        if not check_crc(data, header):
            raise CorruptBatch(f"the batch at byte {header.position} has a wrong checksum")
        records = read_records(data, header)
        if header.is_control:
            is_complete = any(control_type(record) == CONTROL_SNAPSHOT_FOOTER for record in records)
            continue
        draft.replay(message for record in records if (message := decode_record(record.value or b"")) is not None)
    if not is_complete:
        raise CorruptBatch("the snapshot has no footer")
    return draft.finish(offset=snapshot.end_offset - 1, epoch=snapshot.epoch)
