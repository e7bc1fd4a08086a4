"""The classic group protocol as a state machine: events and time in, new state and actions out, no I/O.

A generation begins when the members have rejoined (or the rebalance time-out has passed) and the leader has sent an
assignment that was stored. The coordinator executes the actions: it answers waiting requests, which the state machine
identifies by their tickets, and writes the group to the log.

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable -> PreparingRebalance -> ... -> Empty
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_member import (
    Action,
    Answers,
    Join,
    Member,
    State,
    StaticRejoin,
    StoreGroup,
    Sync,
    Ticket,
)
from core_broker.groups.classic_roster import Roster
from core_broker.groups.classic_subscription import subscribed_topics
from core_broker.groups.group import GroupKind, StoredRecord
from core_broker.groups.records import group_key
from core_broker.protocol.messages.join_group import JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupResponse
from core_broker.protocol.stored.groups import GroupMetadataValue
from core_broker.service.clock import Clock

CONSUMER_PROTOCOL: Final = "consumer"
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60_000
"""How long a new member may wait for its first generation: it sends no heartbeats yet, so its client may be gone."""
PENDING_MEMBERS_MAX: Final = 10_000
"""Limit of ids assigned but not yet used; beyond it the oldest is dropped, and its client has to start again."""
_POSTPONE_MS_MIN: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits configured for classic groups."""

    initial_rebalance_delay_ms: int = 3000
    size_max: int = 2**31 - 1


class ClassicGroup:
    """One group of the classic protocol. Every method that takes an event returns the resulting actions."""

    kind: GroupKind = "classic"

    def __init__(self, group_id: str, *, clock: Clock, limits: GroupLimits) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.state_since_ms = clock.now_ms()
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self._roster = Roster()
        self._clock = clock
        self._limits = limits
        self._pending: dict[str, float] = {}
        """Ids assigned by KIP-394 -> when they expire."""
        self._pending_sync: set[str] = set()
        self._topics: frozenset[str] | None = None
        self._join_deadline = 0.0
        self._sync_deadline: float | None = None
        self._in_initial_delay = False
        self._initial_delay_left_ms = 0
        self._member_joined_in_delay = False
        self._is_storing = False
        self._answers = Answers()

    # --- queries (groups/shape.py) -----------------------------------------------------------------------------------

    @property
    def members(self) -> Mapping[str, Member]:
        """The members by their id."""
        return self._roster.members

    @property
    def leader_id(self) -> str | None:
        """The member that computes the assignment."""
        return self._roster.leader_id

    @property
    def state_name(self) -> str:
        """The state in Kafka's spelling."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members; ids that were assigned but never used do not count."""
        return self.state is State.EMPTY

    def check_commit(
        self, member_id: str, generation_or_epoch: int, instance_id: str | None, *, is_transactional: bool
    ) -> None:
        """Reject an offset commit of an unknown member or of another generation."""
        if generation_or_epoch < 0 and self.state is State.EMPTY:
            return  # an admin client, or a consumer that assigns its partitions itself
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            error = self._roster.check(member_id, instance_id)
            if error is not ErrorCode.NONE:
                raise BrokerError(error)
            if generation_or_epoch != self.generation:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            # Old transactional clients send no member id; all others must be members (KIP-447).
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is State.COMPLETING_REBALANCE:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
        if self.state is State.DEAD:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:  # noqa: ARG002 - only KIP-848 has epochs
        """Any client may fetch the offsets of a classic group."""
        if self.state is State.DEAD:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, or the subscriptions of the members are unknown."""
        if self._topics is not None:
            return topic in self._topics
        return self.protocol_type == CONSUMER_PROTOCOL

    def offsets_expire_from_ms(self, committed_at_ms: int) -> int | None:
        """KIP-211: when the group became empty; the commit itself if the group never had members."""
        if not self.protocol_type:
            return committed_at_ms
        if self.state is State.EMPTY:
            return self.state_since_ms if self.state_since_ms >= 0 else committed_at_ms
        if self.protocol_type == CONSUMER_PROTOCOL and self._topics is not None and self.state is State.STABLE:
            return committed_at_ms
        return None

    def tombstones(self) -> list[StoredRecord]:
        """The record that removes the group from the log."""
        return [(group_key(self.group_id), None)]

    def next_deadline(self) -> float | None:
        """The earliest time at which something expires."""
        deadlines = [member.deadline for member in self.members.values() if member.can_expire]
        deadlines.extend(self._pending.values())
        if self.state is State.PREPARING_REBALANCE:
            deadlines.append(self._join_deadline)
        if self._sync_deadline is not None:
            deadlines.append(self._sync_deadline)
        return min(deadlines, default=None)

    # --- JoinGroup ---------------------------------------------------------------------------------------------------

    def join(self, event: Join) -> list[Action]:
        """A member joins or rejoins."""
        if self.state is State.DEAD:
            self._answers.refuse_join(event, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not self._has_room_for(event.member_id):
            member = self.members.get(event.member_id)
            if member is not None:
                self._remove(member)
            self._answers.refuse_join(event, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        elif not self._roster.supports(event, self.protocol_type):
            self._answers.refuse_join(event, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not event.member_id:
            member_id = event.fresh_member_id
            if event.instance_id is not None:
                former_id = self._roster.static_ids.get(event.instance_id)
                if former_id is None:
                    self._add(event, member_id)
                else:
                    self._replace_static(event, former_id)
            elif event.must_know_its_id:
                if len(self._pending) >= PENDING_MEMBERS_MAX:
                    del self._pending[next(iter(self._pending))]
                self._pending[member_id] = self._clock.monotonic() + event.session_timeout_ms / 1000
                self._answers.refuse_join(event, ErrorCode.MEMBER_ID_REQUIRED, member_id)
            else:
                self._add(event, member_id)
        else:
            self._join_known(event)
        self._complete_join_if_ready()
        return self._answers.take()

    def _has_room_for(self, member_id: str) -> bool:
        if self.state is State.EMPTY:
            return True
        member = self.members.get(member_id)
        if self.state is State.PREPARING_REBALANCE:
            # Count the members that have rejoined, not all members: if the limit was lowered, the last to rejoin are
            # rejected.
            return (
                member is not None and member.join_ticket is not None
            ) or self._roster.waiting_count() < self._limits.size_max
        return member is not None or len(self.members) < self._limits.size_max

    def _join_known(self, event: Join) -> None:
        if event.member_id in self._pending and event.instance_id is None:
            self._add(event, event.member_id)
            return
        error = self._roster.check(event.member_id, event.instance_id)
        if error is not ErrorCode.NONE:
            self._answers.refuse_join(event, error)
            return
        member = self.members[event.member_id]
        if self._must_rebalance_for(member, event):
            self._update(member, event)
            self._prepare_rebalance()
        else:
            # It lost the response, or rejoins without changes: the current generation is sufficient.
            self._extend(member)
            self._answer_join(event.ticket, member, with_members=self.state is State.COMPLETING_REBALANCE)

    def _must_rebalance_for(self, member: Member, event: Join) -> bool:
        if self.state is State.PREPARING_REBALANCE or member.protocols != event.protocols:
            return True
        # A leader rejoins because it has seen a change, such as more partitions of a topic.
        return self.state is State.STABLE and member.member_id == self.leader_id

    def _add(self, event: Join, member_id: str) -> None:
        member = Member(
            member_id=member_id,
            instance_id=event.instance_id,
            client_id=event.client_id,
            client_host=event.client_host,
            session_timeout_ms=event.session_timeout_ms,
            rebalance_timeout_ms=event.rebalance_timeout_ms,
            protocols=event.protocols,
            deadline=self._clock.monotonic() + NEW_MEMBER_JOIN_TIMEOUT_MS / 1000,
            is_new=True,
            join_ticket=event.ticket,
        )
        if not self.members:
            self.protocol_type = event.protocol_type
        self._pending.pop(member_id, None)
        self._roster.add(member)
        self._member_joined_in_delay = True
        self._prepare_rebalance()

    def _update(self, member: Member, event: Join) -> None:
        self._answers.refuse_waiting_join(member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        member.join_ticket = event.ticket
        member.protocols = event.protocols
        member.session_timeout_ms = event.session_timeout_ms
        member.rebalance_timeout_ms = event.rebalance_timeout_ms
        member.client_id, member.client_host = event.client_id, event.client_host

    # --- static members (KIP-345) ------------------------------------------------------------------------------------

    def _replace_static(self, event: Join, former_id: str) -> None:
        """A static member returns under a new id: the old id is fenced, the assignment is kept."""
        former = msgspec.structs.replace(self.members[former_id], join_ticket=None, sync_ticket=None)
        former_leader_id = self.leader_id or ""
        member = self._swap_static(former_id, event.fresh_member_id)
        self._update(member, event)
        self._extend(member)
        if self.state is State.STABLE and self._roster.select_protocol() == self.protocol_name:
            rejoin = StaticRejoin(
                member_id=member.member_id,
                former=former,
                former_leader_id=former_leader_id,
                can_skip_assignment=event.can_skip_assignment,
            )
            self._answers.store(self._store(static_rejoin=rejoin))
        else:
            # During a rebalance the leader only knows the old id, so the new one would get no assignment.
            self._prepare_rebalance()

    def _swap_static(self, former_id: str, member_id: str) -> Member:
        member = self.members[former_id]
        self._answers.refuse_waiting(member, ErrorCode.FENCED_INSTANCE_ID)
        self._roster.rename_static(member, member_id)
        if former_id in self._pending_sync:
            self._pending_sync.discard(former_id)
            self._pending_sync.add(member_id)
        return member

    def _static_stored(self, rejoin: StaticRejoin, error: ErrorCode) -> None:
        member = self.members.get(rejoin.member_id)
        if member is None or member.join_ticket is None or self.state is not State.STABLE:
            return  # it has left, or a rebalance has begun that will answer it
        if error is not ErrorCode.NONE:
            self._answers.refuse_waiting_join(member, error)
            former = self._swap_static(member.member_id, rejoin.former.member_id)
            former.protocols = rejoin.former.protocols
            former.session_timeout_ms = rejoin.former.session_timeout_ms
            former.rebalance_timeout_ms = rejoin.former.rebalance_timeout_ms
            return
        ticket, member.join_ticket = member.join_ticket, None
        self._extend(member)
        is_leader = self.leader_id == member.member_id
        if rejoin.can_skip_assignment:
            self._answer_join(ticket, member, with_members=is_leader, skip_assignment=is_leader)
        else:
            # Before KIP-814 the response must not name it as the leader, or it would send an unused assignment.
            self._answer_join(ticket, member, with_members=False, leader_id=rejoin.former_leader_id)

    # --- the rebalance -----------------------------------------------------------------------------------------------

    def _prepare_rebalance(self) -> None:
        """Start a rebalance, unless one is in progress."""
        if self.state in (State.PREPARING_REBALANCE, State.DEAD):
            return
        if self.state is State.COMPLETING_REBALANCE:
            self._drop_assignments(ErrorCode.REBALANCE_IN_PROGRESS)
        now = self._clock.monotonic()
        timeout_ms = self._roster.rebalance_timeout_ms()
        self._in_initial_delay = self.state is State.EMPTY
        if self._in_initial_delay:
            delay_ms = self._limits.initial_rebalance_delay_ms
            self._initial_delay_left_ms = max(timeout_ms - delay_ms, 0)
            self._member_joined_in_delay = False
            timeout_ms = delay_ms
        self._join_deadline = now + timeout_ms / 1000
        self._sync_deadline = None
        self._pending_sync.clear()
        self._enter(State.PREPARING_REBALANCE)

    def _complete_join_if_ready(self) -> None:
        if self.state is not State.PREPARING_REBALANCE:
            return
        if self._in_initial_delay:
            # Members that only have an id yet are not waited for: the delay is meant for them.
            if self._join_deadline <= self._clock.monotonic():
                self._on_join_deadline()
        elif not self._pending and self._roster.waiting_count() == len(self.members):
            self._complete_join()

    def _on_join_deadline(self) -> None:
        if self._in_initial_delay and self._member_joined_in_delay and self._initial_delay_left_ms > 0:
            # Members are still joining: extend the delay, within the rebalance time-out.
            delay_ms = min(self._limits.initial_rebalance_delay_ms, self._initial_delay_left_ms)
            self._initial_delay_left_ms -= delay_ms
            self._member_joined_in_delay = False
            self._join_deadline = self._clock.monotonic() + delay_ms / 1000
            return
        self._complete_join()

    def _complete_join(self) -> None:
        self._in_initial_delay = False
        for member in [m for m in self.members.values() if m.join_ticket is None and m.instance_id is None]:
            self._remove(member)
        if self.members and not self._roster.elect_waiting_leader():
            # Only static members are left and none has rejoined: wait for them until their sessions expire.
            wait_ms = max(self._roster.rebalance_timeout_ms(), _POSTPONE_MS_MIN)
            self._join_deadline = self._clock.monotonic() + wait_ms / 1000
            return
        self.generation += 1
        if self.members:
            self.protocol_name = self._roster.select_protocol()
            self._topics = self._subscribed_topics()
            self._is_storing = False
            self._enter(State.COMPLETING_REBALANCE)
            self._pending_sync = set(self.members)
            self._sync_deadline = self._clock.monotonic() + self._roster.rebalance_timeout_ms() / 1000
            for member in self.members.values():
                if member.join_ticket is None:
                    continue
                ticket, member.join_ticket = member.join_ticket, None
                member.is_new = False
                self._extend(member)
                self._answer_join(ticket, member, with_members=True)
        else:
            self.protocol_name = None
            self._topics = self._subscribed_topics()
            self._enter(State.EMPTY)
            self._answers.store(self._store())

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        return subscribed_topics(self._roster.subscriptions(self.protocol_name))

    # --- SyncGroup ---------------------------------------------------------------------------------------------------

    def sync(self, event: Sync) -> list[Action]:
        """A member requests its assignment; the leader sends all assignments."""
        error = self._check_sync(event)
        if error is not ErrorCode.NONE:
            self._answers.refuse_sync(event.ticket, error)
            return self._answers.take()
        member = self.members[event.member_id]
        self._pending_sync.discard(member.member_id)
        if not self._pending_sync:
            self._sync_deadline = None
        if self.state is State.STABLE:
            self._extend(member)
            self._answer_sync(event.ticket, member)
        else:
            self._answers.refuse_waiting_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
            member.sync_ticket = event.ticket
            if member.member_id == self.leader_id and not self._is_storing:
                self._is_storing = True
                assignments = {member_id: event.assignments.get(member_id, b"") for member_id in self.members}
                self._answers.store(self._store(assignments=assignments))
        return self._answers.take()

    def _check_sync(self, event: Sync) -> ErrorCode:
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._roster.check(event.member_id, event.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if event.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if event.protocol_type not in (None, self.protocol_type) or event.protocol_name not in (
            None,
            self.protocol_name,
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING_REBALANCE else ErrorCode.NONE

    def on_stored(self, store: StoreGroup, error: ErrorCode) -> list[Action]:
        """The group was written, or the write failed."""
        if store.static_rejoin is not None:
            self._static_stored(store.static_rejoin, error)
        elif store.assignments is not None:
            self._assignment_stored(store.generation, store.assignments, error)
        return self._answers.take()

    def _assignment_stored(self, generation: int, assignments: dict[str, bytes], error: ErrorCode) -> None:
        if self.state is not State.COMPLETING_REBALANCE or generation != self.generation:
            return  # another rebalance has begun meanwhile and answered all members
        self._is_storing = False
        if error is not ErrorCode.NONE:
            self._drop_assignments(error)
            self._prepare_rebalance()
            return
        self._enter(State.STABLE)
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.sync_ticket is not None:
                ticket, member.sync_ticket = member.sync_ticket, None
                self._extend(member)
                self._answer_sync(ticket, member)

    def _drop_assignments(self, error: ErrorCode) -> None:
        for member in self.members.values():
            member.assignment = b""
            if member.sync_ticket is not None:
                self._extend(member)
            self._answers.refuse_waiting_sync(member, error)

    # --- Heartbeat, LeaveGroup ---------------------------------------------------------------------------------------

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """A member is alive; REBALANCE_IN_PROGRESS makes it rejoin."""
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._roster.check(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._extend(self.members[member_id])
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING_REBALANCE else ErrorCode.NONE

    def extend_session(self, member_id: str) -> None:
        """Extend the session of a member that has committed offsets."""
        member = self.members.get(member_id)
        if member is not None and self.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._extend(member)

    def leave(self, member_id: str, instance_id: str | None) -> tuple[ErrorCode, list[Action]]:
        """A member leaves, or an operator removes a static one by its instance id."""
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        if not member_id and instance_id is not None:
            member_id = self._roster.static_ids.get(instance_id, "")
        if member_id in self._pending and instance_id is None:
            del self._pending[member_id]
            self._complete_join_if_ready()
            return ErrorCode.NONE, self._answers.take()
        error = self._roster.check(member_id, instance_id)
        if error is ErrorCode.NONE:
            self._remove_and_rebalance(self.members[member_id])
        return error, self._answers.take()

    # --- time --------------------------------------------------------------------------------------------------------

    def on_time(self) -> list[Action]:
        """Process expired deadlines; calling it too early does nothing."""
        now = self._clock.monotonic()
        for member_id in [member_id for member_id, deadline in self._pending.items() if deadline <= now]:
            del self._pending[member_id]
        for member in [m for m in self.members.values() if m.can_expire and m.deadline <= now]:
            self._remove_and_rebalance(member)
        if self._sync_deadline is not None and self._sync_deadline <= now:
            # Members that joined the generation but never sent a SyncGroup are removed.
            self._sync_deadline = None
            late = [self.members[member_id] for member_id in self._pending_sync if member_id in self.members]
            self._pending_sync.clear()
            for member in late:
                self._remove(member)
            if late:
                self._prepare_rebalance()
        if self.state is State.PREPARING_REBALANCE and self._join_deadline <= now:
            self._on_join_deadline()
        self._complete_join_if_ready()
        return self._answers.take()

    def _remove_and_rebalance(self, member: Member) -> None:
        self._remove(member)
        self._prepare_rebalance()
        self._complete_join_if_ready()

    def _remove(self, member: Member) -> None:
        self._answers.refuse_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._roster.remove(member)
        self._pending_sync.discard(member.member_id)

    # --- the log -----------------------------------------------------------------------------------------------------

    def restore(self, value: GroupMetadataValue) -> None:
        """Load the state from a stored record; all sessions start anew.

        A group with members but no leader was a KIP-848 group: it must still distribute the partitions of members that
        left.
        """
        self.generation = value.generation
        self.protocol_type = value.protocol_type
        self.protocol_name = value.protocol
        self._roster.restore(value.members, protocol_name=value.protocol or "", leader_id=value.leader or None)
        self._topics = self._subscribed_topics()
        self._enter(State.STABLE if self.members else State.EMPTY)
        if self.members and not value.leader:
            self._prepare_rebalance()
        self.state_since_ms = value.current_state_timestamp
        self.refresh_sessions()

    def refresh_sessions(self) -> None:
        """Restart all sessions: the members could not reach a coordinator while it was loading."""
        for member in self.members.values():
            self._extend(member)

    def unload(self, error: ErrorCode) -> list[Action]:
        """The broker is no longer this group's coordinator: reject all waiting requests."""
        for member in self.members.values():
            self._answers.refuse_waiting(member, error)
        self._pending.clear()
        self._sync_deadline = None
        self._enter(State.DEAD)
        return self._answers.take()

    def _store(
        self, *, assignments: dict[str, bytes] | None = None, static_rejoin: StaticRejoin | None = None
    ) -> StoreGroup:
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_since_ms,
            members=self._roster.for_log(self.protocol_name, assignments),
        )
        return StoreGroup(generation=self.generation, value=value, assignments=assignments, static_rejoin=static_rejoin)

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _extend(self, member: Member) -> None:
        member.deadline = self._clock.monotonic() + member.session_timeout_ms / 1000

    def _enter(self, state: State) -> None:
        self.state = state
        self.state_since_ms = self._clock.now_ms()

    def _answer_join(
        self,
        ticket: Ticket,
        member: Member,
        *,
        with_members: bool,
        leader_id: str | None = None,
        skip_assignment: bool = False,
    ) -> None:
        leader = (self.leader_id or "") if leader_id is None else leader_id
        response = JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader,
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=self._roster.for_leader(self.protocol_name) if with_members and leader == member.member_id else [],
        )
        self._answers.join(ticket, response)

    def _answer_sync(self, ticket: Ticket, member: Member) -> None:
        response = SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )
        self._answers.sync(ticket, response)
