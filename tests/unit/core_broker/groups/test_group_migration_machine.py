"""One group under random joins and losses of members of both protocols, writes that fail, and restarts."""

import asyncio
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.offset_commits import Committer
from core_broker.protocol.messages.consumer_group_heartbeat import TopicPartitions
from tests.support.both_kinds_world import ORDERS, BothKindsWorld, assigned, numbers_in
from tests.support.group_coordinator_world import GROUP, settle

PARTITIONS = sorted(ORDERS.partitions)
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


class ClassicClient:
    """Joins, assigns if it leads, and reads what it was given; an eager one, that gives up all to join again."""

    def __init__(self, world: BothKindsWorld) -> None:
        self.world, self.member_id, self.generation = world, "", -1
        self.is_assigned = False
        self.owned: set[int] = set()
        self.turn: asyncio.Task[None] | None = None

    async def act(self) -> None:
        """One heartbeat, and all that it leads to."""
        code = self._heartbeat()
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code in _LOST or not self.is_assigned:
            self.is_assigned, self.owned = False, set()
            await self._join()

    def _heartbeat(self) -> ErrorCode:
        if not self.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            return self.world.coordinator.classic.heartbeat(GROUP, self.member_id, self.generation, None)
        except BrokerError as error:
            return error.code

    async def _join(self) -> None:
        try:
            joined = await self.world.join(self.member_id)
            if joined.error_code:
                return
            self.member_id, self.generation = joined.member_id, joined.generation_id
            everyone = [member.member_id for member in joined.members]
            shares = {m: assigned(*PARTITIONS[place :: len(everyone)]) for place, m in enumerate(everyone)}
            synced = await self.world.sync(self.member_id, self.generation, shares)
        except BrokerError:
            return
        if not synced.error_code:
            self.is_assigned, self.owned = True, set(numbers_in(synced.assignment))


class ModernClient:
    """Speaks KIP-848."""

    def __init__(self, world: BothKindsWorld, member_id: str) -> None:
        self.world, self.member_id, self.epoch = world, member_id, 0
        self.owned: set[int] = set()

    async def act(self) -> None:
        """One heartbeat that tells what it owns."""
        fields: dict[str, Any] = {}
        if self.epoch:
            fields["topic_partitions"] = [TopicPartitions(ORDERS.topic_id, sorted(self.owned))]
        else:
            self.owned = set()
        try:
            answer = await self.world.beat(self.epoch, self.member_id, **fields)
        except BrokerError:
            self.epoch, self.owned = 0, set()
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {number for topic in answer.assignment.topic_partitions for number in topic.partitions}


class GroupMigrationMachine(RuleBasedStateMachine):
    """A topic of two partitions and clients of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = self.runner.run(self._begin())
        self.running = self.runner.get_loop().create_task(self.world.coordinator.run())
        self.classic: list[ClassicClient] = []
        self.modern: list[ModernClient] = []
        self.joined = 0

    async def _begin(self) -> BothKindsWorld:
        world = BothKindsWorld()
        await world.commit(5, committer=Committer(group_id=GROUP))
        return world

    async def _turn(self, milliseconds: int = 1_000) -> None:
        """Everybody who is not waiting for an answer acts once."""
        for client in self.classic:
            if client.turn is None or client.turn.done():
                client.turn = asyncio.ensure_future(client.act())
        await settle()
        for modern in self.modern:
            await modern.act()
        await self.world.advance(milliseconds)

    # --- rules -------------------------------------------------------------------------------------------------------

    @rule()
    def everybody_acts(self) -> None:
        self.runner.run(self._turn())

    @precondition(lambda self: len(self.classic) < 3)
    @rule()
    def classic_member_comes(self) -> None:
        self.classic.append(ClassicClient(self.world))
        self.runner.run(self._turn())

    @precondition(lambda self: len(self.modern) < 2)
    @rule()
    def modern_member_comes(self) -> None:
        self.joined += 1
        self.modern.append(ModernClient(self.world, f"modern-{self.joined}"))
        self.runner.run(self._turn())

    @precondition(lambda self: self.classic)
    @rule(says_so=st.booleans())
    def classic_member_goes(self, says_so: bool) -> None:
        client = self.classic.pop()
        if client.turn is not None:
            client.turn.cancel()
        if says_so and client.member_id:
            self.runner.run(self._attempt(self.world.coordinator.classic.leave(GROUP, [(client.member_id, None)])))

    @precondition(lambda self: self.modern)
    @rule(says_so=st.booleans(), is_stored=st.booleans())
    def modern_member_goes(self, says_so: bool, is_stored: bool) -> None:
        client = self.modern.pop()
        if says_so:
            self.world.partition_of().error = None if is_stored else ErrorCode.NOT_ENOUGH_REPLICAS
            self.runner.run(self._attempt(self.world.beat(-1, client.member_id)))
            self.world.partition_of().error = None

    async def _attempt(self, action: Any) -> None:
        try:
            await action
        except BrokerError:
            pass
        await settle()

    @rule(turns=st.integers(1, 12))
    def time_goes_by(self, turns: int) -> None:
        for _ in range(turns):
            self.runner.run(self._turn(5_000))

    @rule()
    def coordinator_restarts(self) -> None:
        async def restart() -> None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)
            await self.world.restart()
            self.running = asyncio.ensure_future(self.world.coordinator.run())
            await settle()

        self.runner.run(restart())

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def another_coordinator_would_load_the_same_group(self) -> None:
        copy = BothKindsWorld()
        copy.partitions, copy.clock = self.world.partitions, self.world.clock
        self.runner.run(copy.restart())
        assert copy.committed() == 5
        here, there = self.world.group, copy.group
        if isinstance(here, ConsumerGroup):
            if here.changes:
                return  # a write has failed, and the next one makes up for it
            assert isinstance(there, ConsumerGroup)
            assert (there.members, there.targets) == (here.members, here.targets)
            assert (there.epoch, there.target_epoch) == (here.epoch, here.target_epoch)
        else:
            assert isinstance(here, ClassicGroup)
            assert isinstance(there, ClassicGroup)
            if here.state_name == "Stable":
                assert (there.state_name, there.generation) == ("Stable", here.generation)
                assert {m: x.assignment for m, x in there.members.items()} == {
                    m: x.assignment for m, x in here.members.items()
                }

    @invariant()
    def kind_follows_the_members(self) -> None:
        group = self.world.group
        if isinstance(group, ConsumerGroup) and group.members and not group.changes:
            assert any(member.classic is None for member in group.members.values())

    def teardown(self) -> None:
        """After quiet, everything is read, and by one member each."""
        try:
            for _ in range(40):
                self.runner.run(self._turn(3_000))
            clients = [*self.classic, *self.modern]
            owned = [number for c in self.classic for number in c.owned] + [n for m in self.modern for n in m.owned]
            assert sorted(owned) == (PARTITIONS if clients else [])
            if clients:
                assert self.world.group.kind == ("consumer" if self.modern else "classic")
        finally:
            self.runner.run(self._end())
            self.runner.close()

    async def _end(self) -> None:
        waiting = [client.turn for client in self.classic if client.turn is not None]
        for task in (*waiting, self.running):
            task.cancel()
        await asyncio.gather(*waiting, self.running, return_exceptions=True)


TestGroupMigrationMachine = GroupMigrationMachine.TestCase
TestGroupMigrationMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
