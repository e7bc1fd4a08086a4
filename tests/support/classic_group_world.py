"""A classic group and what its members hear, for tests that drive the state machine by values."""

import math
import struct
from typing import Final

from core_broker.errors import ErrorCode
from core_broker.groups.classic_group import ClassicGroup, GroupLimits
from core_broker.groups.classic_member import Action, AnswerJoin, AnswerSync, Join, StoreGroup, Sync, Ticket
from core_broker.protocol.fields import encode
from core_broker.protocol.messages.join_group import JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupResponse
from core_broker.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from core_broker.service.clock import ManualClock


def subscription(*topics: str) -> bytes:
    """What a consumer says that reads these topics."""
    return struct.pack(">h", 3) + bytes(encode(ConsumerProtocolSubscription(topics=list(topics)), 3))


TURNS_MAX: Final = 10_000
RANGE = (("range", subscription("orders")),)


class ClassicGroupWorld:
    """Feeds events, keeps answers by ticket, and stores (or fails to store) what the group asks for."""

    def __init__(
        self, *, initial_rebalance_delay_ms: int = 0, size_max: int = 100, stores_at_once: bool = True
    ) -> None:
        self.clock = ManualClock(1_000_000)
        limits = GroupLimits(initial_rebalance_delay_ms=initial_rebalance_delay_ms, size_max=size_max)
        self.group = ClassicGroup("readers", clock=self.clock, limits=limits)
        self.stores_at_once = stores_at_once
        self.store_error = ErrorCode.NONE
        self.stores: list[StoreGroup] = []
        self.join_answers: dict[Ticket, JoinGroupResponse] = {}
        self.sync_answers: dict[Ticket, SyncGroupResponse] = {}
        self._ticket = 0

    def join(
        self,
        member_id: str = "",
        *,
        fresh: str = "",
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        must_know_its_id: bool = False,
        can_skip_assignment: bool = False,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> Ticket:
        """Send a JoinGroup."""
        self._ticket += 1
        event = Join(
            ticket=self._ticket,
            member_id=member_id,
            fresh_member_id=fresh or f"member-{self._ticket}",
            instance_id=instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            protocols=protocols,
            protocol_type=protocol_type,
            must_know_its_id=must_know_its_id,
            can_skip_assignment=can_skip_assignment,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
        )
        self.perform(self.group.join(event))
        return self._ticket

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance_id: str | None = None,
        protocol_name: str | None = None,
    ) -> Ticket:
        """Send a SyncGroup."""
        self._ticket += 1
        event = Sync(
            ticket=self._ticket,
            member_id=member_id,
            generation=self.group.generation if generation is None else generation,
            instance_id=instance_id,
            protocol_name=protocol_name,
            assignments=assignments or {},
        )
        self.perform(self.group.sync(event))
        return self._ticket

    def leave(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        """Send a LeaveGroup."""
        error, actions = self.group.leave(member_id, instance_id)
        self.perform(actions)
        return error

    def heartbeat(self, member_id: str, generation: int | None = None, instance_id: str | None = None) -> ErrorCode:
        """Send a Heartbeat."""
        generation = self.group.generation if generation is None else generation
        return self.group.heartbeat(member_id, generation, instance_id)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, telling the group at each of its deadlines, as the coordinator does."""
        for _ in range(TURNS_MAX):
            deadline = self.group.next_deadline()
            wait_ms = milliseconds if deadline is None else math.ceil((deadline - self.clock.monotonic()) * 1000)
            wait_ms = max(wait_ms, 0)
            if deadline is None or wait_ms > milliseconds:
                self.clock.advance(milliseconds)
                return
            self.clock.advance(wait_ms)
            milliseconds -= wait_ms
            self.perform(self.group.on_time())
        raise AssertionError("the group asks for its turn again and again without letting time pass")

    def perform(self, actions: list[Action]) -> None:
        """Carry out what the group asks for."""
        for action in actions:
            match action:
                case AnswerJoin():
                    assert action.ticket not in self.join_answers, "a request is answered once"
                    self.join_answers[action.ticket] = action.response
                case AnswerSync():
                    assert action.ticket not in self.sync_answers, "a request is answered once"
                    self.sync_answers[action.ticket] = action.response
                case StoreGroup():
                    self.stores.append(action)
                    if self.stores_at_once:
                        self.finish_store()

    def finish_store(self, error: ErrorCode | None = None) -> None:
        """The oldest write is done."""
        self.perform(self.group.on_stored(self.stores.pop(0), self.store_error if error is None else error))

    # --- shortcuts ---------------------------------------------------------------------------------------------------

    def join_error(self, ticket: Ticket) -> ErrorCode:
        """How a JoinGroup was answered."""
        return ErrorCode(self.join_answers[ticket].error_code)

    def sync_error(self, ticket: Ticket) -> ErrorCode:
        """How a SyncGroup was answered."""
        return ErrorCode(self.sync_answers[ticket].error_code)

    def stable_group_of(self, *member_ids: str, instance_ids: tuple[str | None, ...] = ()) -> None:
        """Bring these members into a stable generation; the first leads."""
        instances = instance_ids or (None,) * len(member_ids)
        for member_id, instance_id in zip(member_ids, instances, strict=True):
            self.join(fresh=member_id, instance_id=instance_id)
            for known in list(self.group.members.values()):
                if known.join_ticket is None and self.group.state_name == "PreparingRebalance":
                    self.join(known.member_id, instance_id=known.instance_id)
        assignments = {member_id: f"part of {member_id}".encode() for member_id in self.group.members}
        for member in list(self.group.members.values()):
            is_leader = member.member_id == self.group.leader_id
            self.sync(member.member_id, assignments if is_leader else None, instance_id=member.instance_id)
        assert self.group.state_name == "Stable"
