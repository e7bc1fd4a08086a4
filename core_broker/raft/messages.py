"""What the members of the quorum say to each other, without the nesting of the wire format (see `wire`)."""

from typing import TypeAlias

import msgspec

from core_broker.errors import ErrorCode
from core_broker.raft.voters import NO_NODE, Endpoint, ReplicaKey


class LogPosition(msgspec.Struct, frozen=True, order=True):
    """An epoch and an offset. The log with the larger one contains everything that may be committed."""

    epoch: int
    offset: int


class VoteRequest(msgspec.Struct, frozen=True):
    """A candidate asks for a vote; a prospective candidate asks whether it would get one (KIP-996)."""

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey
    end: LogPosition
    """The epoch of the candidate's last record, and the end of its log."""
    is_pre_vote: bool = False


class BeginEpochRequest(msgspec.Struct, frozen=True):
    """The leader introduces itself."""

    epoch: int
    leader_id: int
    voter: ReplicaKey
    endpoints: tuple[tuple[str, Endpoint], ...] = ()


class EndEpochRequest(msgspec.Struct, frozen=True):
    """The leader steps down, and says who should follow it, best first."""

    epoch: int
    leader_id: int
    successors: tuple[ReplicaKey, ...] = ()


class FetchRequest(msgspec.Struct, frozen=True):
    """A replica has everything below `offset` on disk, and wants what comes next."""

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    """Epoch of the record before `offset`, by which the leader sees whether the logs agree."""
    high_watermark: int
    wait_ms: int = 0


class FetchSnapshotRequest(msgspec.Struct, frozen=True):
    """A replica wants the bytes of a snapshot from a position on."""

    epoch: int
    replica: ReplicaKey
    snapshot: LogPosition
    position: int


Request: TypeAlias = VoteRequest | BeginEpochRequest | EndEpochRequest | FetchRequest | FetchSnapshotRequest


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What every response says: the leader and its epoch, as the sender knows them."""

    error: ErrorCode = ErrorCode.NONE
    epoch: int
    leader_id: int = NO_NODE


class VoteResponse(Response, frozen=True, kw_only=True):
    """An answer to a VoteRequest."""

    is_granted: bool = False


class FetchResponse(Response, frozen=True, kw_only=True):
    """Records, or where the logs part, or the snapshot to begin with."""

    high_watermark: int = -1
    log_start: int = 0
    records: bytes = b""
    diverging: LogPosition | None = None
    snapshot: LogPosition | None = None


class SnapshotResponse(Response, frozen=True, kw_only=True):
    """Some bytes of a snapshot."""

    snapshot: LogPosition
    size: int = 0
    position: int = 0
    data: bytes = b""
