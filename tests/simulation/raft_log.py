"""A metadata log in memory, whose unsynced end is lost in a crash."""

from collections.abc import Sequence

import msgspec

from core_broker.raft.messages import LogPosition
from core_broker.raft.replicated_log import ElectionState
from core_broker.raft.voters import ReplicaKey, Voter, VoterSet


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A record: plain data, or other voters."""

    epoch: int
    value: str
    voters: tuple[Voter, ...] | None = None


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """Everything up to an offset; plain values stand for the state that real records would add up to."""

    position: LogPosition
    entries: tuple[Entry, ...]


_encode = msgspec.msgpack.Encoder().encode
_entries = msgspec.msgpack.Decoder(tuple[Entry, ...]).decode
_snapshot = msgspec.msgpack.Decoder(Snapshot).decode


class SimulatedStore:
    """The file `quorum-state`, which is always on disk."""

    def __init__(self) -> None:
        self.state = ElectionState()

    def load(self) -> ElectionState:
        """What was saved."""
        return self.state

    def save(self, state: ElectionState) -> None:
        """Keep it."""
        self.state = state


class SimulatedLog:
    """One node's disk: what is below `flushed` survives a crash."""

    CHUNK = 64

    def __init__(self, voters: VoterSet) -> None:
        self._first_voters = voters
        self.entries: list[Entry] = []
        self.start_offset = 0
        self.flushed = 0
        self.newest: Snapshot | None = None
        self._incoming = b""

    # -- faults --

    def crash(self, kept: int) -> None:
        """Lose what was not synced, but for `kept` records that the disk happened to have."""
        end = max(self.start_offset, min(self.flushed + kept, self.end_offset))
        del self.entries[end - self.start_offset :]
        self.flushed = end
        self._incoming = b""

    # -- the log --

    @property
    def start_epoch(self) -> int:
        return self.newest.position.epoch if self.start_offset and self.newest else 0

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else self.start_epoch

    @property
    def snapshot(self) -> LogPosition | None:
        return None if self.newest is None else self.newest.position

    def _voters(self) -> tuple[int, VoterSet]:
        for index in range(len(self.entries) - 1, -1, -1):
            if (found := self.entries[index].voters) is not None:
                return self.start_offset + index, VoterSet(found)
        if self.newest is not None and self.start_offset:
            for entry in reversed(self.newest.entries):
                if entry.voters is not None:
                    return -1, VoterSet(entry.voters)
        return -1, self._first_voters

    @property
    def voters(self) -> VoterSet:
        return self._voters()[1]

    @property
    def voters_offset(self) -> int:
        return self._voters()[0]

    def end_of_epoch(self, epoch: int) -> LogPosition:
        found, end = -1, self.start_offset
        if self.start_offset and self.start_epoch <= epoch:
            found = self.start_epoch
        for index, entry in enumerate(self.entries):
            if entry.epoch > epoch:
                break
            found, end = entry.epoch, self.start_offset + index + 1
        return LogPosition(epoch if found < 0 else found, end)

    def append(self, epoch: int, records: Sequence[str]) -> int:
        offset = self.end_offset
        self.entries.extend(Entry(epoch, record) for record in records)
        return offset

    def append_leader_change(self, epoch: int, leader_id: int, granted_by: Sequence[ReplicaKey]) -> None:
        assert granted_by
        self.entries.append(Entry(epoch, f"leader {leader_id}"))

    def append_voters(self, epoch: int, voters: VoterSet) -> int:
        self.entries.append(Entry(epoch, "voters", tuple(voters)))
        return self.end_offset - 1

    def append_fetched(self, data: bytes) -> None:
        self.entries.extend(_entries(data))

    def read(self, offset: int) -> bytes:
        found = self.entries[offset - self.start_offset :][:10]
        return _encode(found) if found else b""

    def truncate(self, offset: int) -> None:
        assert offset >= self.start_offset
        del self.entries[offset - self.start_offset :]
        self.flushed = min(self.flushed, offset)

    def at(self, offset: int) -> Entry | None:
        """A record, also one that only a snapshot has."""
        if offset >= self.start_offset:
            return self.entries[offset - self.start_offset]
        return self.newest.entries[offset] if self.newest else None

    # -- snapshots --

    def take_snapshot(self, end: int) -> None:
        """Keep everything below `end` as a snapshot alone."""
        if end <= self.start_offset:
            return
        before = self.newest.entries[: self.start_offset] if self.newest and self.start_offset else ()
        taken = self.entries[: end - self.start_offset]
        self.newest = Snapshot(LogPosition(taken[-1].epoch, end), (*before, *taken))
        del self.entries[: end - self.start_offset]
        self.start_offset = end
        self.flushed = max(self.flushed, end)

    def read_snapshot(self, snapshot: LogPosition, position: int) -> tuple[int, bytes] | None:
        if self.newest is None or self.newest.position != snapshot:
            return None
        data = _encode(self.newest)
        return len(data), data[position : position + self.CHUNK]

    def write_snapshot(self, snapshot: LogPosition, position: int, data: bytes) -> None:
        self._incoming = self._incoming[:position] + data

    def install_snapshot(self, snapshot: LogPosition) -> None:
        self.newest = _snapshot(self._incoming)
        assert self.newest.position == snapshot
        self.entries = []
        self.start_offset = self.flushed = snapshot.offset
