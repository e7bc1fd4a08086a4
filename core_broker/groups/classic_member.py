"""The members, events and actions of a classic group, as plain values."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.join_group import JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupResponse
from core_broker.protocol.stored.groups import GroupMetadataValue

Ticket: TypeAlias = int
"""Identifies a request that waits for its response."""
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""The assignors that a member supports, by preference: (name, metadata)."""


class State(StrEnum):
    """States of a classic group, in Kafka's spelling."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """The members have to rejoin."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have the new generation and wait for the leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"


class Join(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Event: a member joins the next generation."""

    ticket: Ticket
    member_id: str
    fresh_member_id: str
    """The id for a member without one."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    protocol_type: str = "consumer"
    protocols: Protocols = ()
    must_know_its_id: bool = False
    """KIP-394: a new member first gets its id and must join again with it."""
    can_skip_assignment: bool = False
    """KIP-814: a static leader understands that it need not compute an assignment."""


class Sync(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Event: a member requests its assignment; the leader sends all assignments."""

    ticket: Ticket
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: dict[str, bytes] = {}


class Member(msgspec.Struct, kw_only=True):
    """One member and its progress in the rebalance."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    deadline: float = 0.0
    """When its session expires (`Clock.monotonic`), unless it is waiting for a response."""
    is_new: bool = False
    """Whether it has never been part of a generation, so cannot send heartbeats."""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None

    @property
    def can_expire(self) -> bool:
        """False while it waits for a response, because then it sends no heartbeats."""
        return self.is_new or (self.join_ticket is None and self.sync_ticket is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for an assignor."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate it prefers."""
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
    """The state that a returning static member has replaced, restored if the change cannot be stored."""

    member_id: str
    former: Member
    former_leader_id: str
    can_skip_assignment: bool


class StoreGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Action: write the group, then call `on_stored`."""

    generation: int
    value: GroupMetadataValue
    assignments: dict[str, bytes] | None = None
    """The leader's assignment, which takes effect once it is stored."""
    static_rejoin: StaticRejoin | None = None


Action: TypeAlias = AnswerJoin | AnswerSync | StoreGroup


class Answers:
    """Collects the actions of a group while it processes an event, in order."""

    def __init__(self) -> None:
        self._actions: list[Action] = []

    def take(self) -> list[Action]:
        """Return and clear the actions."""
        actions, self._actions = self._actions, []
        return actions

    def store(self, store: StoreGroup) -> None:
        """Write the group."""
        self._actions.append(store)

    def join(self, ticket: Ticket, response: JoinGroupResponse) -> None:
        """Answer a JoinGroup."""
        self._actions.append(AnswerJoin(ticket, response))

    def sync(self, ticket: Ticket, response: SyncGroupResponse) -> None:
        """Answer a SyncGroup."""
        self._actions.append(AnswerSync(ticket, response))

    def refuse_join(self, event: Join, error: ErrorCode, member_id: str | None = None) -> None:
        """Reject a JoinGroup at once."""
        answered_id = event.member_id if member_id is None else member_id
        self.join(event.ticket, JoinGroupResponse(error_code=error, member_id=answered_id))

    def refuse_waiting_join(self, member: Member, error: ErrorCode, member_id: str = "") -> None:
        """Reject the waiting JoinGroup of a member, if there is one."""
        if member.join_ticket is not None:
            self.join(member.join_ticket, JoinGroupResponse(error_code=error, member_id=member_id))
            member.join_ticket = None

    def refuse_sync(self, ticket: Ticket, error: ErrorCode) -> None:
        """Reject a SyncGroup."""
        self.sync(ticket, SyncGroupResponse(error_code=error))

    def refuse_waiting_sync(self, member: Member, error: ErrorCode) -> None:
        """Reject the waiting SyncGroup of a member, if there is one."""
        if member.sync_ticket is not None:
            self.refuse_sync(member.sync_ticket, error)
            member.sync_ticket = None

    def refuse_waiting(self, member: Member, error: ErrorCode) -> None:
        """Reject all waiting requests of a member."""
        self.refuse_waiting_join(member, error)
        self.refuse_waiting_sync(member, error)
