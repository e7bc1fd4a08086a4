"""What the quorum needs of its log and of its state file; a disk has one implementation, the simulator another."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from core_broker.raft.messages import LogPosition
from core_broker.raft.voters import ReplicaKey, VoterSet

RecordT_contra = TypeVar("RecordT_contra", contravariant=True)


class ElectionState(NamedTuple):
    """What a node must not forget: the newest epoch it has seen, its leader, and whom it voted for in it."""

    epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None


class ElectionStore(Protocol):
    """The file `quorum-state`."""

    def load(self) -> ElectionState:
        """The last state saved."""
        ...

    def save(self, state: ElectionState) -> None:
        """Return once the state is on disk: a vote that is forgotten could be given twice."""
        ...


class ReplicatedLog(Protocol, Generic[RecordT_contra]):
    """The metadata log of one node. What is appended is readable at once, and on disk when the driver says so."""

    @property
    def start_offset(self) -> int:
        """The first offset; everything before is in a snapshot."""
        ...

    @property
    def start_epoch(self) -> int:
        """Epoch of the record before the start; 0 if there is none."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        ...

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, or of the snapshot if no record follows it; 0 for an empty log."""
        ...

    @property
    def snapshot(self) -> LogPosition | None:
        """The newest snapshot: the epoch of its last record, and the offset after it."""
        ...

    @property
    def voters(self) -> VoterSet:
        """The newest voters in the log, whether committed or not."""
        ...

    @property
    def voters_offset(self) -> int:
        """Where the log says so; -1 if it does not, and they come from settings or a snapshot."""
        ...

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The newest epoch up to `epoch`, and where it ends here; `epoch` and the start if all epochs are newer."""
        ...

    def append(self, epoch: int, records: Sequence[RecordT_contra]) -> int:
        """Append records as one batch; returns the offset of the first."""
        ...

    def append_leader_change(self, epoch: int, leader_id: int, granted_by: Sequence[ReplicaKey]) -> None:
        """Append the control record that begins an epoch, and, in a new log, the voters."""
        ...

    def append_voters(self, epoch: int, voters: VoterSet) -> int:
        """Append other voters; returns the offset of the record."""
        ...

    def append_fetched(self, data: bytes) -> None:
        """Append batches of the leader. Raises ValueError if they are damaged or do not continue the log."""
        ...

    def read(self, offset: int) -> bytes:
        """Some batches from `offset` on; empty at the end."""
        ...

    def truncate(self, offset: int) -> None:
        """Remove everything from `offset` on."""
        ...

    def read_snapshot(self, snapshot: LogPosition, position: int) -> tuple[int, bytes] | None:
        """The size of a snapshot and its bytes from a position on; None if there is no such snapshot."""
        ...

    def write_snapshot(self, snapshot: LogPosition, position: int, data: bytes) -> None:
        """Keep some bytes of a snapshot that is being fetched; position 0 begins anew."""
        ...

    def install_snapshot(self, snapshot: LogPosition) -> None:
        """Replace the whole log with a snapshot that was fetched."""
        ...
