"""`__cluster_metadata-0` on disk, as the quorum needs it: the log, its snapshots, its voters, the election state."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from core_broker.cluster import snapshots
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.quorum_state import QuorumStateError, read_quorum_state, write_durably, write_quorum_state
from core_broker.cluster.snapshots import SnapshotId, control_record
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import BatchHeader, CorruptBatch, Record, build_batch, parse_batches, read_records
from core_broker.protocol.stored import control
from core_broker.protocol.stored.quorum_state import QuorumStateData
from core_broker.raft.messages import LogPosition
from core_broker.raft.replicated_log import ElectionState
from core_broker.raft.voters import NO_NODE, ReplicaKey, Voter, VoterSet
from core_broker.service.clock import Clock
from core_broker.service.settings import INT_MAX, LONG_MAX
from core_broker.settings import BrokerSettings, TopicSettings

log = logging.getLogger(__name__)

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"

_READ_BYTES: Final = 1 << 20


class MetadataLostError(BrokerError):
    """The metadata cannot be restored. The broker must not start: it would remove every partition as a stray."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class QuorumStateFile:
    """The file `quorum-state` (ElectionStore)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self) -> ElectionState:
        """The last state saved; a damaged file counts as missing, and the log then gives the lowest possible epoch."""
        try:
            state = read_quorum_state(self._directory)
        except QuorumStateError as error:
            log.error("quorum-state file is damaged; taking the epoch from the log", extra={"reason": str(error)})
            return ElectionState()
        if state is None:
            return ElectionState()
        voted = None if state.voted_id < 0 else ReplicaKey(state.voted_id, state.voted_directory_id)
        return ElectionState(state.leader_epoch, state.leader_id, voted)

    def save(self, state: ElectionState) -> None:
        """Return once the state is on disk."""
        voted = state.voted or ReplicaKey(NO_NODE)
        write_quorum_state(
            self._directory,
            QuorumStateData(
                leader_id=state.leader_id,
                leader_epoch=state.epoch,
                voted_id=voted.id,
                voted_directory_id=voted.directory,
            ),
        )


class MetadataLog:
    """The metadata log of this node (ReplicatedLog of encoded records)."""

    def __init__(
        self,
        directory: Path,
        *,
        cluster_id: str,
        local: Voter,
        initial_voters: VoterSet,
        is_static: bool,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        """`initial_voters` count until the log names others; static ones, of `controller.quorum.voters`, always do."""
        self.directory = directory
        self.image = MetadataImage(cluster_id=cluster_id)
        """The state in the newest intact snapshot."""
        self._cluster_id = cluster_id
        self._local = local
        self._is_static = is_static
        self._settings = settings
        self._clock = clock
        self._voters: list[tuple[int, VoterSet]] = [(-1, initial_voters)]
        """The voters, and the offset of the record that named them; -1 for settings and snapshots."""
        self._are_recorded = False
        self._snapshot: SnapshotId | None = None
        self.data_bytes = 0
        """Size of all records read and appended by this process."""

    def open(self) -> None:
        """Load the newest intact snapshot and recover the log. Raises MetadataLostError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        newest = snapshots.load_newest(self.directory, self._cluster_id)
        self.image = newest.image
        self._snapshot = newest.snapshot
        self._take_voters(newest)
        self.log = self._open()
        for header, batch in self.log.read_batches(self.image.offset + 1, self.log.end_offset):
            self._note(header, batch, position=0)
        self.log.flush()  # after a crash the end may be in memory only, and this node is about to vouch for it

    def _open(self) -> PartitionLog:
        settings = TopicSettings(
            segment_bytes=self._settings.metadata_log_segment_bytes,
            segment_ms=self._settings.metadata_log_segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
            max_message_bytes=INT_MAX,
            message_timestamp_after_max_ms=LONG_MAX,
            file_delete_delay_ms=0,
        )
        opened = PartitionLog.open(
            self.directory, topic=METADATA_TOPIC, partition=0, settings=settings, clock=self._clock
        )
        expected = self.image.offset + 1
        if opened.start_offset > expected:
            raise MetadataLostError(
                f"{self.directory} begins at offset {opened.start_offset}, but the newest intact snapshot ends at "
                f"{expected}: restore a .checkpoint file from a backup"
            )
        if opened.end_offset < expected:
            log.error(
                "metadata log ends before its snapshot; continuing from the snapshot",
                extra={"end_offset": opened.end_offset, "snapshot_offset": expected},
            )
            opened.truncate_fully_and_start_at(expected)
        return opened

    def close(self) -> None:
        """Write everything to disk and close the files."""
        self.log.close()

    # -- positions --

    @property
    def start_offset(self) -> int:
        """The first offset; everything before is in a snapshot."""
        return self.log.start_offset

    @property
    def start_epoch(self) -> int:
        """Epoch of the record before the start; 0 if there is none."""
        start = self.log.start_offset
        if start == 0:
            return 0
        for snapshot in snapshots.list_snapshots(self.directory):
            if snapshot.end_offset == start:
                return snapshot.epoch
        return max(self.log.epochs.epoch_for_offset(start), 0)

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.log.end_offset

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, or of the snapshot if no record follows it; 0 for an empty log."""
        end = self.log.end_offset
        return self.log.epochs.epoch_for_offset(end - 1) if end > self.log.start_offset else self.start_epoch

    @property
    def snapshot(self) -> LogPosition | None:
        """The newest snapshot: the epoch of its last record, and the offset after it."""
        return None if self._snapshot is None else LogPosition(self._snapshot.epoch, self._snapshot.end_offset)

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The newest epoch up to `epoch`, and where it ends here; `epoch` and the start if all epochs are newer."""
        found = None
        for entry in self.log.epochs.entries:
            if entry.epoch > epoch:
                return LogPosition(found, entry.start_offset) if found is not None else self._before_start(epoch)
            found = entry.epoch
        return LogPosition(found, self.end_offset) if found is not None else self._before_start(epoch)

    def _before_start(self, epoch: int) -> LogPosition:
        start_epoch = self.start_epoch
        return LogPosition(start_epoch if self.start_offset and start_epoch <= epoch else epoch, self.start_offset)

    # -- voters --

    @property
    def voters(self) -> VoterSet:
        """The newest voters in the log, whether committed or not."""
        return self._voters[-1][1]

    @property
    def voters_offset(self) -> int:
        """Where the log says so; -1 if it does not, and they come from settings or a snapshot."""
        return self._voters[-1][0]

    @property
    def kraft_version(self) -> int:
        """1 if the voters are records (KIP-853), 0 if they are those of the settings."""
        return 0 if self._is_static else 1

    def _note(self, header: BatchHeader, buffer: bytes | memoryview | bytearray, *, position: int) -> None:
        """Count a batch of data; take the voters from a control batch."""
        if not header.is_control:
            self.data_bytes += header.size
        if not header.is_control or self._is_static:
            return
        view = memoryview(buffer)[position : position + header.size]
        header = parse_batches(view)[0]
        for delta, record in enumerate(read_records(view, header)):
            if (voters := snapshots.voters_in(record)) is not None:
                self._voters.append((header.base_offset + delta, voters))
                self._are_recorded = True

    # -- appending --

    def append(self, epoch: int, records: Sequence[bytes]) -> int:
        """Append encoded records as one batch; returns the offset of the first."""
        now = self._clock.now_ms()
        batch = build_batch([Record(timestamp=now, value=record) for record in records])
        self.data_bytes += len(batch)
        return self._append(batch, epoch)

    def append_leader_change(self, epoch: int, leader_id: int, granted_by: Sequence[ReplicaKey]) -> None:
        """Append the control record that begins an epoch, and the voters if the log lacks them or they have moved."""
        first: list[tuple[int, Message]] = []
        voters = self.voters
        if not self._is_static and (
            not self._are_recorded or voters.get(self._local.key.id) not in (None, self._local)
        ):
            if not self._are_recorded:
                body = control.KRaftVersionRecord(k_raft_version=self.kraft_version)
                first.append((snapshots.CONTROL_KRAFT_VERSION, body))
            voters = voters.with_voter(self._local)
            first.append((snapshots.CONTROL_VOTERS, snapshots.voters_record(voters)))
        # Without directory ids, which version 1 would add: Kafka reads these records as version 0, whatever they say.
        change = control.LeaderChangeMessage(
            leader_id=leader_id,
            voters=[control.Voter(voter.key.id) for voter in voters],
            granting_voters=[control.Voter(key.id) for key in granted_by],
        )
        self._append_control(epoch, [(snapshots.CONTROL_LEADER_CHANGE, change), *first])

    def append_voters(self, epoch: int, voters: VoterSet) -> int:
        """Append other voters; returns the offset of the record."""
        return self._append_control(epoch, [(snapshots.CONTROL_VOTERS, snapshots.voters_record(voters))])

    def _append_control(self, epoch: int, bodies: Sequence[tuple[int, Message]]) -> int:
        now = self._clock.now_ms()
        records = [control_record(kind, body, timestamp_ms=now) for kind, body in bodies]
        batch = build_batch(records, is_control=True)
        offset = self._append(batch, epoch)
        self._note(parse_batches(batch)[0], batch, position=0)
        return offset

    def _append(self, batch: bytearray, epoch: int) -> int:
        return self.log.append(batch, leader_epoch=epoch, origin=Origin.COORDINATOR).first_offset

    def append_fetched(self, data: bytes) -> None:
        """Append batches of the leader. Raises ValueError if they are damaged or do not continue the log."""
        try:
            self.log.append_as_follower(bytearray(data))
        except BrokerError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            raise ValueError(error.message) from error
        for header in parse_batches(data):
            self._note(header, data, position=header.position)

    def truncate(self, offset: int) -> None:
        """Remove everything from `offset` on."""
        self.log.truncate_to(offset)
        while self._voters[-1][0] >= offset:
            self._voters.pop()

    # -- reading --

    def read(self, offset: int) -> bytes:
        """Some batches from `offset` on; empty at the end."""
        found = self.log.read(offset, _READ_BYTES, upper_offset=self.end_offset)
        return b"" if found is None else os.pread(found.file.fd, found.length, found.position)

    def read_records(self, start: int, end: int) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """The batches between two offsets, with their records. Raises MetadataLostError."""
        for header, batch in self.log.read_batches(start, end):
            try:
                yield header, [] if header.is_control else read_records(batch, header)
            except (CorruptBatch, DecodeError) as error:
                raise MetadataLostError(
                    f"{self.directory}: records {header.base_offset} to {header.last_offset} cannot be read: {error}"
                ) from error

    # -- snapshots --

    def voters_at(self, offset: int) -> VoterSet | None:
        """The voters that the log named last, up to an offset; None if they are those of the settings."""
        if self._is_static:
            return None
        return next((voters for at, voters in reversed(self._voters) if at <= offset), None)

    def read_snapshot(self, snapshot: LogPosition, position: int) -> tuple[int, bytes] | None:
        """The size of a snapshot and its bytes from a position on; None if there is no such snapshot."""
        path = self.directory / SnapshotId(snapshot.offset, snapshot.epoch).file_name
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(position, 0))
                return size, file.read(_READ_BYTES)
        except FileNotFoundError:
            return None

    def write_snapshot(self, snapshot: LogPosition, position: int, data: bytes) -> None:
        """Keep some bytes of a snapshot that is being fetched; position 0 begins anew."""
        with self._part(snapshot).open("wb" if position == 0 else "r+b") as file:
            file.seek(position)
            file.write(data)

    def install_snapshot(self, snapshot: LogPosition) -> None:
        """Replace the whole log with a snapshot that was fetched. Raises ValueError if it is damaged."""
        part = self._part(snapshot)
        data = part.read_bytes()
        found = SnapshotId(snapshot.offset, snapshot.epoch)
        try:
            loaded = snapshots.decode_snapshot(data, found, self._cluster_id)
        except (CorruptBatch, DecodeError) as error:
            part.unlink()
            raise ValueError(f"the leader's snapshot {found.file_name} is damaged: {error}") from error
        write_durably(self.directory / found.file_name, data, temporary=part)
        self.image, self._snapshot = loaded.image, found
        self.log.truncate_fully_and_start_at(snapshot.offset)
        self._take_voters(loaded)

    def _take_voters(self, loaded: snapshots.LoadedSnapshot) -> None:
        if loaded.voters is not None and not self._is_static:
            self._voters, self._are_recorded = [(-1, loaded.voters)], True

    def _part(self, snapshot: LogPosition) -> Path:
        name = SnapshotId(snapshot.offset, snapshot.epoch).file_name
        return self.directory / f"{name}.fetched"

    def trim(self, newest: SnapshotId, *, high_watermark: int) -> None:
        """Delete what no start needs any more: the log below the older of the two snapshots that are kept."""
        self._snapshot = newest
        oldest = snapshots.delete_old_snapshots(self.directory)
        self.log.roll()
        if oldest > self.log.start_offset:
            self.log.delete_records_before(oldest)
            self.log.delete_old_segments(high_watermark=high_watermark)
            self.log.remove_deleted_files(at_once=True)
        while len(self._voters) > 1 and self._voters[1][0] < newest.end_offset:
            del self._voters[0]
        log.info("metadata snapshot written", extra={"snapshot": newest.file_name, "log_start_offset": oldest})
