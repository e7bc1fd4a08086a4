"""The roles of a member of the quorum. A role belongs to one epoch, and is replaced, never reused."""

from typing import Any, TypeAlias

import msgspec

from core_broker.raft.messages import FetchRequest, FetchSnapshotRequest, LogPosition
from core_broker.raft.voters import NO_NODE, ReplicaKey


class Unattached(msgspec.Struct):
    """Knows no leader of its epoch, or cannot reach it."""

    election_at: float
    """When it stands for election, if it votes."""
    leader_id: int = NO_NODE


class Votes(msgspec.Struct):
    """The votes of one round, of voters by their ids."""

    granted: set[int]
    rejected: set[int] = msgspec.field(default_factory=set)


class Prospective(msgspec.Struct):
    """Asks whether it would be elected, before it disturbs a leader with a new epoch (KIP-996)."""

    votes: Votes
    election_at: float
    leader_id: int = NO_NODE


class Candidate(msgspec.Struct):
    """Has voted for itself, and asks the others to."""

    votes: Votes
    election_at: float
    is_backing_off: bool = False
    leader_id: int = NO_NODE


class Follower(msgspec.Struct):
    """Fetches from the leader of its epoch."""

    leader_id: int
    fetch_at: float
    """When to fetch, unless a fetch is on its way."""
    leader_lost_at: float
    """When to stop believing in the leader."""
    has_fetched: bool = False
    """Whether it has heard from the leader, and not yet that the leader's process has ended."""
    fetching: FetchRequest | FetchSnapshotRequest | None = None
    """The request that waits for its response; one that an earlier role left behind must change nothing."""
    snapshot: LogPosition | None = None
    """The snapshot that it is fetching."""
    position: int = 0


class ReplicaProgress(msgspec.Struct):
    """How far a replica is, as its leader knows."""

    end_offset: int = -1
    fetched_at: float = -1.0
    caught_up_at: float = -1.0
    end_when_fetched: int = -1
    """The leader's end at the last fetch: having all of that later means having been caught up at that time."""


class ParkedFetch(msgspec.Struct):
    """A fetch that waits for records."""

    request: FetchRequest
    token: Any
    expires_at: float


class Contact(msgspec.Struct, frozen=True):
    """When a leader was last heard from."""

    leader_id: int
    heard_at: float


class Leader(msgspec.Struct):
    """Appends, and commits what a majority has."""

    start_offset: int
    """Where its epoch begins: nothing before counts as committed until something of this epoch is."""
    quorum_lost_at: float
    """When to step down, unless a majority fetches before."""
    introduce_at: float
    """When to send BeginEpoch to the voters that do not fetch."""
    replicas: dict[ReplicaKey, ReplicaProgress] = msgspec.field(default_factory=dict)
    parked: dict[ReplicaKey, ParkedFetch] = msgspec.field(default_factory=dict)
    fetched_since: set[int] = msgspec.field(default_factory=set)
    """Voters that have fetched since the last time a majority had."""
    predecessor: Contact | None = None
    """The leader that this node followed before; None if it followed none since it last led."""
    leader_id: int = NO_NODE


class Resigned(msgspec.Struct):
    """Was the leader of its epoch, and waits for the next one."""

    election_at: float
    leader_id: int = NO_NODE


Role: TypeAlias = Unattached | Prospective | Candidate | Follower | Leader | Resigned
