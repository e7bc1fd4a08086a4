"""A member of a classic group, what happens to a group, and what the group wants done about it: values only."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from core_broker.protocol.messages.join_group import JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupResponse
from core_broker.protocol.stored.groups import GroupMetadataValue

Ticket: TypeAlias = int
"""Stands for a request that waits for its answer."""
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""Assignors that a member can follow, by preference, with what it tells each: (name, metadata)."""


class State(StrEnum):
    """States of a classic group, in Kafka's spelling."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """The members are asked to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All know the generation and wait for the leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"


class Join(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A member asks to be part of the next generation."""

    ticket: Ticket
    member_id: str
    fresh_member_id: str
    """The id to use if the member has none yet."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    protocol_type: str = "consumer"
    protocols: Protocols = ()
    must_know_its_id: bool = False
    """KIP-394: a new member is first told its id and must come back with it."""
    can_skip_assignment: bool = False
    """KIP-814: a static leader understands that it need not assign."""


class Sync(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A member asks for its assignment; the leader brings everybody's."""

    ticket: Ticket
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: dict[str, bytes] = {}


class Member(msgspec.Struct, kw_only=True):
    """One member and where it stands in the rebalance."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    deadline: float = 0.0
    """When its session ends (`Clock.monotonic`), unless it is waiting for us."""
    is_new: bool = False
    """It has not yet been told that it belongs to a generation, so cannot send heartbeats."""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None

    @property
    def can_expire(self) -> bool:
        """False while it waits for an answer of ours: then silence is not its fault."""
        return self.is_new or (self.join_ticket is None and self.sync_ticket is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it has to say to an assignor."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)


class AnswerJoin(msgspec.Struct, frozen=True, gc=False):
    """Action: answer a JoinGroup."""

    ticket: Ticket
    response: JoinGroupResponse


class AnswerSync(msgspec.Struct, frozen=True, gc=False):
    """Action: answer a SyncGroup."""

    ticket: Ticket
    response: SyncGroupResponse


class StaticRejoin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a returning static member has replaced, to be undone when that cannot be stored."""

    member_id: str
    former: Member
    former_leader_id: str
    can_skip_assignment: bool


class StoreGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Action: write the group, then tell it with `on_stored`."""

    generation: int
    value: GroupMetadataValue
    assignments: dict[str, bytes] | None = None
    """The leader's assignment, which becomes valid once it is stored."""
    static_rejoin: StaticRejoin | None = None


Action: TypeAlias = AnswerJoin | AnswerSync | StoreGroup
