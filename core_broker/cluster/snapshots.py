"""Snapshots of the metadata log: files `<end offset>-<epoch>.checkpoint` in Kafka's format (KIP-630).

A snapshot replaces every record below its end offset. It is a sequence of batches: a header, the records that rebuild
the image, and a footer. A snapshot without a footer is incomplete and not used.
"""

import logging
import re
import struct
from pathlib import Path
from typing import Final, NamedTuple

from core_broker.cluster.features import metadata_version
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.metadata_records import UnsupportedRecordError, decode_record, encode_record, records_of
from core_broker.cluster.quorum_state import write_durably
from core_broker.protocol.fields import Message, decode, encode
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
from core_broker.protocol.stored.control import (
    Endpoint as StoredEndpoint,
)
from core_broker.protocol.stored.control import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from core_broker.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

log = logging.getLogger(__name__)

CONTROL_LEADER_CHANGE: Final = 2
CONTROL_SNAPSHOT_HEADER: Final = 3
CONTROL_SNAPSHOT_FOOTER: Final = 4
CONTROL_KRAFT_VERSION: Final = 5
CONTROL_VOTERS: Final = 6

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


class LoadedSnapshot(NamedTuple):
    """What a snapshot holds: the state, and the voters, unless they are those of the settings."""

    snapshot: SnapshotId | None
    image: MetadataImage
    voters: VoterSet | None = None


def list_snapshots(directory: Path) -> list[SnapshotId]:
    """The snapshots in a directory, oldest first."""
    matches = (_FILE_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in matches if match)


def write_snapshot(directory: Path, image: MetadataImage, *, voters: VoterSet | None, timestamp_ms: int) -> SnapshotId:
    """Write an image and the voters to disk; on return the snapshot is complete and durable."""
    snapshot = SnapshotId(image.offset + 1, image.epoch)
    name = snapshot.file_name
    write_durably(directory / name, _encode(image, voters, timestamp_ms), temporary=directory / f"{name}.part")
    return snapshot


def load_newest(directory: Path, cluster_id: str) -> LoadedSnapshot:
    """The newest intact snapshot; an empty image if there is none."""
    for snapshot in reversed(list_snapshots(directory)):
        path = directory / snapshot.file_name
        try:
            return decode_snapshot(path.read_bytes(), snapshot, cluster_id)
        except (CorruptBatch, DecodeError, OSError) as error:
            log.error("metadata snapshot cannot be used", extra={"path": str(path), "reason": str(error)})
    return LoadedSnapshot(None, MetadataImage(cluster_id=cluster_id))


def delete_old_snapshots(directory: Path) -> int:
    """Delete all but the newest two, and files left half-written by a crash; returns the oldest end offset kept."""
    for path in directory.glob("*.checkpoint.part"):
        path.unlink(missing_ok=True)
    snapshots = list_snapshots(directory)
    for snapshot in snapshots[:-_SNAPSHOTS_KEPT]:
        (directory / snapshot.file_name).unlink(missing_ok=True)
    kept = snapshots[-_SNAPSHOTS_KEPT:]
    return kept[0].end_offset if len(kept) == _SNAPSHOTS_KEPT else 0


def control_record(kind: int, body: Message, *, timestamp_ms: int) -> Record:
    """A control record of the quorum."""
    return Record(timestamp=timestamp_ms, key=struct.pack(">hh", 0, kind), value=bytes(encode(body, 0)))


def voters_record(voters: VoterSet) -> VotersRecord:
    """The body of a Voters control record."""
    return VotersRecord(
        voters=[
            VotersRecordVoter(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory,
                endpoints=[StoredEndpoint(name, *address) for name, address in voter.endpoints],
                k_raft_version_feature=KRaftVersionFeature(*voter.kraft_versions),
            )
            for voter in voters
        ]
    )


def voters_in(record: Record) -> VoterSet | None:
    """The voters that a control record names; None if it is of another kind. Raises DecodeError."""
    kind = control_type(record)
    if kind == CONTROL_KRAFT_VERSION and decode(KRaftVersionRecord, 0, record.value or b"").k_raft_version > 1:
        raise UnsupportedRecordError("the quorum uses a kraft.version above 1")
    if kind != CONTROL_VOTERS:
        return None
    body = decode(VotersRecord, 0, record.value or b"")
    return VoterSet(
        Voter(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            tuple((item.name, Endpoint(item.host, item.port)) for item in voter.endpoints),
            (voter.k_raft_version_feature.min_supported_version, voter.k_raft_version_feature.max_supported_version),
        )
        for voter in body.voters
    )


def _encode(image: MetadataImage, voters: VoterSet | None, timestamp_ms: int) -> bytearray:
    bodies: list[tuple[int, Message]] = [
        (CONTROL_SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms))
    ]
    if voters is not None:
        bodies += [
            (CONTROL_KRAFT_VERSION, KRaftVersionRecord(k_raft_version=1)),
            (CONTROL_VOTERS, voters_record(voters)),
        ]
    first = [control_record(kind, body, timestamp_ms=timestamp_ms) for kind, body in bodies]
    data = build_batch(first, leader_epoch=image.epoch, is_control=True)
    offset = len(first)
    level = metadata_version(image.features)
    records = [Record(timestamp=timestamp_ms, value=encode_record(record, level)) for record in records_of(image)]
    for start in range(0, len(records), _RECORDS_PER_BATCH):
        chunk = records[start : start + _RECORDS_PER_BATCH]
        data += build_batch(chunk, base_offset=offset, leader_epoch=image.epoch)
        offset += len(chunk)
    last = [control_record(CONTROL_SNAPSHOT_FOOTER, SnapshotFooterRecord(), timestamp_ms=timestamp_ms)]
    data += build_batch(last, base_offset=offset, leader_epoch=image.epoch, is_control=True)
    return data


def decode_snapshot(data: bytes, snapshot: SnapshotId, cluster_id: str) -> LoadedSnapshot:
    """Read a snapshot's bytes. Raises CorruptBatch or DecodeError."""
    draft = MetadataDraft(MetadataImage(cluster_id=cluster_id))
    voters: VoterSet | None = None
    is_complete = False
    for header in parse_batches(data):
        if not check_crc(data, header):
            raise CorruptBatch(f"the batch at byte {header.position} has a wrong checksum")
        records = read_records(data, header)
        if header.is_control:
            is_complete = any(control_type(record) == CONTROL_SNAPSHOT_FOOTER for record in records)
            voters = next((found for record in records if (found := voters_in(record)) is not None), voters)
            continue
        draft.replay(decode_record(record.value or b"") for record in records)
    if not is_complete:
        raise CorruptBatch("the snapshot has no footer")
    image = draft.finish(offset=snapshot.end_offset - 1, epoch=snapshot.epoch)
    return LoadedSnapshot(snapshot, image, voters)
