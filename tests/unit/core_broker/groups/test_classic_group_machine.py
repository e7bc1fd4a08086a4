"""Random joins, leaves, syncs, failures and silences: what must hold in every classic group at every moment."""

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core_broker.errors import ErrorCode
from core_broker.groups.classic_member import Ticket
from tests.support.classic_group_world import ClassicGroupWorld

LONGEST_WAIT_MS = 5 * 60_000 + 60_000
"""The time limit of new members and one rebalance time-out: nobody waits longer."""

PROTOCOLS = [(("range", b"r"),), (("range", b"r"), ("sticky", b"s")), (("sticky", b"s"), ("range", b"r"))]


class ClassicGroupMachine(RuleBasedStateMachine):
    """Clients that do anything at any time; the world below them checks that no request is answered twice."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ClassicGroupWorld()
        self.asked_at: dict[Ticket, float] = {}
        self.joins: set[Ticket] = set()
        self.syncs: set[Ticket] = set()
        self.leaders: dict[int, set[str]] = {}
        self.known_ids: list[str] = []
        self.checked: set[Ticket] = set()

    @initialize(delay=strategies.sampled_from([0, 3000]), at_once=strategies.booleans())
    def begin(self, delay: int, at_once: bool) -> None:
        self.world = ClassicGroupWorld(initial_rebalance_delay_ms=delay, size_max=4, stores_at_once=at_once)

    # --- events ------------------------------------------------------------

    @rule(
        protocols=strategies.sampled_from(PROTOCOLS),
        instance_id=strategies.sampled_from([None, None, "i-1", "i-2"]),
        must_know_its_id=strategies.booleans(),
        can_skip=strategies.booleans(),
    )
    def join_as_new(
        self, protocols: tuple[tuple[str, bytes], ...], instance_id: str | None, must_know_its_id: bool, can_skip: bool
    ) -> None:
        self._joined(
            self.world.join(
                protocols=protocols,
                instance_id=instance_id,
                must_know_its_id=must_know_its_id,
                can_skip_assignment=can_skip,
            )
        )

    @precondition(lambda self: self.known_ids)
    @rule(data=strategies.data(), protocols=strategies.sampled_from(PROTOCOLS))
    def join_again(self, data: strategies.DataObject, protocols: tuple[tuple[str, bytes], ...]) -> None:
        member_id = data.draw(strategies.sampled_from(self.known_ids))
        self._joined(self.world.join(member_id, protocols=protocols, instance_id=self._instance_of(member_id)))

    @precondition(lambda self: self.world.group.members)
    @rule()
    def everybody_joins_again(self) -> None:
        for member in list(self.world.group.members.values()):
            if member.join_ticket is None:
                self._joined(
                    self.world.join(member.member_id, protocols=member.protocols, instance_id=member.instance_id)
                )

    @precondition(lambda self: self.known_ids)
    @rule(data=strategies.data(), stale=strategies.booleans())
    def sync(self, data: strategies.DataObject, stale: bool) -> None:
        member_id = data.draw(strategies.sampled_from(self.known_ids))
        generation = self.world.group.generation - stale
        assignments = {known: known.encode() for known in self.world.group.members}
        ticket = self.world.sync(
            member_id, assignments, generation=generation, instance_id=self._instance_of(member_id)
        )
        self._asked(ticket, self.syncs)

    @precondition(lambda self: self.known_ids)
    @rule(data=strategies.data())
    def leave(self, data: strategies.DataObject) -> None:
        member_id = data.draw(strategies.sampled_from(self.known_ids))
        self.world.leave(member_id, self._instance_of(member_id))

    @rule(instance_id=strategies.sampled_from(["i-1", "i-2"]))
    def remove_static(self, instance_id: str) -> None:
        self.world.leave("", instance_id)

    @precondition(lambda self: self.known_ids)
    @rule(data=strategies.data())
    def heartbeat(self, data: strategies.DataObject) -> None:
        member_id = data.draw(strategies.sampled_from(self.known_ids))
        error = self.world.heartbeat(member_id, instance_id=self._instance_of(member_id))
        if error is ErrorCode.NONE:
            assert member_id in self.world.group.members

    @rule(milliseconds=strategies.sampled_from([1, 500, 3000, 10_001, 60_001]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.advance(milliseconds)

    @precondition(lambda self: self.world.stores)
    @rule(error=strategies.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]))
    def store_ends(self, error: ErrorCode) -> None:
        self.world.finish_store(error)

    # --- what must hold ------------------------------------------------------------

    @invariant()
    def each_generation_has_one_leader_and_answers_its_members_only(self) -> None:
        for ticket in self.joins - self.checked:
            answer = self.world.join_answers.get(ticket)
            if answer is None:
                continue
            self.checked.add(ticket)
            if answer.member_id and answer.member_id not in self.known_ids:
                self.known_ids.append(answer.member_id)
            if answer.error_code != ErrorCode.NONE:
                continue
            if answer.members:
                assert answer.leader == answer.member_id
                assert answer.member_id in {member.member_id for member in answer.members}
                if not answer.skip_assignment:
                    self.leaders.setdefault(answer.generation_id, set()).add(answer.member_id)
        assert all(len(leaders) == 1 for leaders in self.leaders.values())

    @invariant()
    def the_leader_and_all_static_members_are_members(self) -> None:
        group = self.world.group
        if group.members:
            assert group.leader_id in group.members
        else:
            assert group.state_name in ("Empty", "PreparingRebalance")
        assert all(member_id == member.member_id for member_id, member in group.members.items())
        instances = [member.instance_id for member in group.members.values() if member.instance_id is not None]
        assert len(instances) == len(set(instances))

    @invariant()
    def whoever_waits_is_in_the_group(self) -> None:
        group = self.world.group
        waiting = {m.join_ticket for m in group.members.values()} | {m.sync_ticket for m in group.members.values()}
        assert self._unanswered() <= waiting

    @invariant()
    def nobody_waits_in_a_state_that_cannot_answer(self) -> None:
        group = self.world.group
        is_static_rejoin_stored = any(store.static_rejoin is not None for store in self.world.stores)
        for member in group.members.values():
            if member.join_ticket is not None:
                assert group.state_name == "PreparingRebalance" or is_static_rejoin_stored
            if member.sync_ticket is not None:
                assert group.state_name == "CompletingRebalance"

    @invariant()
    def a_waiting_group_has_a_deadline(self) -> None:
        if self._unanswered() and not self.world.stores:
            assert self.world.group.next_deadline() is not None

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        if self.world.stores:
            return  # the write has its own time limit
        now = self.world.clock.monotonic()
        for ticket in self._unanswered():
            assert now - self.asked_at[ticket] <= LONGEST_WAIT_MS / 1000

    def teardown(self) -> None:
        """In the end everybody is answered, and without members the group is empty."""
        while self.world.stores:
            self.world.finish_store()
        self.world.stores_at_once = True
        self.world.advance(4 * LONGEST_WAIT_MS)
        assert self._unanswered() == set()
        assert self.world.group.state_name == "Empty"
        assert self.world.group.next_deadline() is None

    # --- bookkeeping ------------------------------------------------------------

    def _joined(self, ticket: Ticket) -> None:
        self._asked(ticket, self.joins)

    def _asked(self, ticket: Ticket, tickets: set[Ticket]) -> None:
        tickets.add(ticket)
        self.asked_at[ticket] = self.world.clock.monotonic()

    def _unanswered(self) -> set[Ticket]:
        return (self.joins - self.world.join_answers.keys()) | (self.syncs - self.world.sync_answers.keys())

    def _instance_of(self, member_id: str) -> str | None:
        member = self.world.group.members.get(member_id)
        return member.instance_id if member is not None else None


TestClassicGroupMachine = ClassicGroupMachine.TestCase
TestClassicGroupMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
