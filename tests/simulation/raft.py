"""Nodes of the metadata quorum in one process: a seed decides what the network, the disks and the nodes do."""

import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from core_broker.errors import BrokerError
from core_broker.raft.messages import LogPosition, Request
from core_broker.raft.node import (
    ANYONE,
    Action,
    Committed,
    Flush,
    RaftNode,
    Reply,
    RoleChanged,
    Send,
    SnapshotInstalled,
    Timeouts,
)
from core_broker.raft.roles import Leader
from core_broker.raft.voters import ReplicaKey, Voter, VoterSet
from tests.simulation.raft_log import Entry, SimulatedLog, SimulatedStore

REQUEST_TIMEOUT = 2.0


class Violation(AssertionError):
    """Something happened that must never happen."""


class Member:
    """A node that may crash, and what survives on its disk."""

    def __init__(self, world: "RaftWorld", key: ReplicaKey, voters: VoterSet) -> None:
        self.world = world
        self.key = key
        self.log = SimulatedLog(voters)
        self.store = SimulatedStore()
        self.node: RaftNode[str] | None = None
        self.life = 0
        self.paused_until = 0.0
        self.wakes = 0.0
        self.acknowledged: dict[int, tuple[int, str]] = {}
        """What was appended here and waits to be committed, by offset: epoch and value."""

    def start(self) -> None:
        self.life += 1
        self.wakes = 0.0
        self.acknowledged.clear()
        self.node = RaftNode(
            self.key, log=self.log, store=self.store, timeouts=Timeouts(), rng=self.world.rng, may_vote=True
        )
        self.run(lambda node: node.start(self.world.now))

    def crash(self) -> None:
        if self.node is None:
            return
        self.node = None
        self.log.crash(self.world.rng.choice([0, 0, 1, 5]))

    def run(self, step: Callable[[RaftNode[str]], None]) -> None:
        """Let the node do something, and carry out what it asks for; a paused node does it when it wakes."""
        world, life = self.world, self.life
        if self.node is None:
            return
        if self.paused_until > world.now:
            world.at(self.paused_until, lambda: self.run(step) if self.life == life else None)
            return
        step(self.node)
        for action in self.node.take_actions():
            self.carry_out(action)
        if self.node is not None:
            wakes = max(self.node.wakes_at, world.now + 0.001)
            if not world.now < self.wakes <= wakes:
                self.wakes = wakes
                world.at(wakes, lambda: self.tick(life))

    def tick(self, life: int) -> None:
        if self.node is not None and self.life == life:
            self.run(lambda node: node.tick(self.world.now))

    def carry_out(self, action: Action) -> None:
        world, life = self.world, self.life
        match action:
            case Send(to, request):
                world.send(self, to, request)
            case Reply(token, response):
                token(response)
            case Flush(end):
                delay = world.rng.choice([0.0005, 0.001, 0.01, world.slow_flush])
                world.at(world.now + delay, lambda: self.flushed(life, end))
            case Committed(high_watermark):
                world.on_committed(self, high_watermark)
            case RoleChanged(epoch, _, is_leader):
                if is_leader:
                    world.on_leader(self, epoch)
                else:
                    self.acknowledged.clear()
            case SnapshotInstalled():
                pass

    def flushed(self, life: int, end: int) -> None:
        if self.life == life and self.node is not None:
            self.log.flushed = max(self.log.flushed, min(end, self.log.end_offset))
            self.run(lambda node: node.on_flushed(end, self.world.now))


class RaftWorld:
    """Everything there is, and the rules that hold whatever happens."""

    def __init__(self, seed: int, *, size: int = 3, voting: int | None = None) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.slow_flush = 0.05
        self.loss = 0.0
        self.cut: set[tuple[int, int]] = set()
        """Pairs of nodes, of which the first cannot reach the second."""
        self.refusals = 0.0
        """How many requests are refused of those to a node that is down, or behind a cut."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.leaders: dict[int, int] = {}
        self.committed: list[Entry] = []
        self.acknowledged: list[tuple[int, str]] = []
        keys = [ReplicaKey(number, bytes([number]) * 16) for number in range(1, size + 1)]
        voters = VoterSet(Voter(key) for key in keys[: voting or size])
        self.members = {key.id: Member(self, key, voters) for key in keys}
        for member in self.members.values():
            member.start()

    # -- time --

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, what))

    def run_until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            when, _, what = heapq.heappop(self._events)
            self.now = max(self.now, when)
            what()
        self.now = end

    # -- the network --

    def _delay(self) -> float:
        return self.rng.choice([0.0005, 0.001, 0.005, 0.05, 0.3 if self.loss else 0.001])

    def _passes(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self.cut and self.rng.random() >= self.loss

    def send(self, sender: Member, to: int, request: Request) -> None:
        if to == ANYONE:
            to = self.rng.choice([number for number in self.members if number != sender.key.id])
        call = _Call(self, sender, self.members[to], request)
        if self._is_refused(sender.key.id, self.members[to]):
            self.at(self.now + self._delay(), call.refuse)
        elif self._passes(sender.key.id, to):
            self.at(self.now + self._delay(), call.deliver)
            if self.loss and self.rng.random() < 0.05:
                self.at(self.now + self._delay(), call.deliver)
        self.at(self.now + REQUEST_TIMEOUT, lambda: call.answer(None))

    def reply(self, call: "_Call", response: Any) -> None:
        """A response leaves the receiver."""
        if self._passes(call.receiver.key.id, call.sender.key.id):
            self.at(self.now + self._delay(), lambda: call.answer(response))

    def _is_refused(self, sender: int, receiver: Member) -> bool:
        is_away = receiver.node is None or (sender, receiver.key.id) in self.cut
        return is_away and self.rng.random() < self.refusals

    # -- what clients do --

    def leader(self) -> Member | None:
        leading = [m for m in self.members.values() if m.node is not None and isinstance(m.node.role, Leader)]
        return self.rng.choice(leading) if leading else None

    def append(self, value: str) -> None:
        if (member := self.leader()) is not None and member.paused_until <= self.now:

            def append(node: RaftNode[str]) -> None:
                try:
                    offset = node.append([value], self.now)
                except BrokerError:
                    return
                member.acknowledged[offset] = node.epoch, value

            member.run(append)

    def change_voters(self) -> None:
        if (member := self.leader()) is None or member.node is None:
            return
        voters = member.node.voters
        outside = [m.key for m in self.members.values() if not voters.has(m.key)]

        def change(node: RaftNode[str]) -> None:
            try:
                if outside and (len(voters) < 3 or self.rng.random() < 0.5):
                    node.add_voter(Voter(self.rng.choice(outside)), self.now)
                elif len(voters) > 1:
                    node.remove_voter(self.rng.choice(list(voters)).key, self.now)
            except BrokerError:
                pass

        member.run(change)

    def snapshot(self) -> None:
        member = self.rng.choice(list(self.members.values()))
        if member.node is not None:
            member.log.take_snapshot(min(member.node.high_watermark, member.log.flushed))

    # -- rules --

    def on_leader(self, member: Member, epoch: int) -> None:
        if self.leaders.setdefault(epoch, member.key.id) != member.key.id:
            raise Violation(f"two leaders in epoch {epoch}: {self.leaders[epoch]} and {member.key.id}")

    def on_committed(self, member: Member, high_watermark: int) -> None:
        log = member.log
        if high_watermark > log.end_offset:
            raise Violation(f"node {member.key.id} commits up to {high_watermark}, but has {log.end_offset}")
        for offset in range(max(log.start_offset, 0), min(high_watermark, len(self.committed))):
            if log.at(offset) != self.committed[offset]:
                text = f"node {member.key.id} has {log.at(offset)} at {offset}, committed was {self.committed[offset]}"
                raise Violation(text)
        for offset in range(len(self.committed), high_watermark):
            entry = log.at(offset)
            assert entry is not None
            self.committed.append(entry)
        for offset in [offset for offset in member.acknowledged if offset < high_watermark]:
            epoch, value = member.acknowledged.pop(offset)
            if (self.committed[offset].epoch, self.committed[offset].value) != (epoch, value):
                raise Violation(f"acknowledged {value} at {offset}, which is {self.committed[offset]}")

    def check_agreement(self) -> None:
        """After everything healed: one leader, who commits, and whom all follow with the same log."""
        self.append("last")
        self.run_until(self.now + 15)
        leading = [m for m in self.members.values() if m.node is not None and isinstance(m.node.role, Leader)]
        if len(leading) != 1:
            raise Violation(f"{len(leading)} leaders after everything healed")
        if self.committed[-1].value != "last" and "last" not in [entry.value for entry in self.committed[-20:]]:
            raise Violation("nothing is committed after everything healed")
        for member in self.members.values():
            assert member.node is not None
            if member.node.high_watermark != len(self.committed) or member.log.end_offset != len(self.committed):
                text = f"node {member.key.id} is at {member.node.high_watermark} of {len(self.committed)}"
                raise Violation(f"{text}, role {member.node.role}, leader {leading[0].node and leading[0].node.role}")


class _Call:
    """A request on its way, until it is answered, refused or given up."""

    def __init__(self, world: RaftWorld, sender: Member, receiver: Member, request: Request) -> None:
        self.world, self.sender, self.receiver, self.request = world, sender, receiver, request
        self._life = sender.life
        self._is_over = False

    def deliver(self) -> None:
        world = self.world
        token = partial(world.reply, self)
        self.receiver.run(lambda node: node.on_request(self.request, token, world.now))

    def answer(self, response: Any) -> None:
        """Hand over a response; None if there is none."""
        self._finish(lambda node: node.on_response(self.receiver.key.id, self.request, response, self.world.now))

    def refuse(self) -> None:
        self._finish(lambda node: node.on_refused(self.receiver.key.id, self.request, self.world.now))

    def _finish(self, step: Callable[[RaftNode[str]], None]) -> None:
        if not self._is_over and self.sender.life == self._life:
            self._is_over = True
            self.sender.run(step)


def simulate(seed: int, *, seconds: float = 30.0, size: int | None = None) -> RaftWorld:
    """One run with faults, then calm; raises Violation."""
    choose = random.Random(seed)
    size = size or choose.choice([3, 3, 5])
    world = RaftWorld(seed, size=size, voting=choose.choice([size, max(1, size - 2)]))
    world.loss = choose.choice([0.0, 0.01, 0.1, 0.3])
    world.slow_flush = choose.choice([0.002, 0.05, 1.0])
    world.refusals = choose.choice([0.0, 0.0, 0.5])
    number = 0
    while world.now < seconds:
        world.run_until(world.now + choose.expovariate(4))
        number += 1
        _do_something(world, choose, number)
    world.loss, world.slow_flush = 0.0, 0.002
    world.cut.clear()
    for member in world.members.values():
        if member.node is None:
            member.start()
    world.run_until(world.now + 60)
    world.check_agreement()
    return world


def _do_something(world: RaftWorld, choose: random.Random, number: int) -> None:
    weights = [weight for _, weight in _EVENTS]
    event, _ = choose.choices(_EVENTS, weights)[0]
    event(world, choose, number)


def _append(world: RaftWorld, choose: random.Random, number: int) -> None:
    for _ in range(choose.choice([1, 3, 20])):
        world.append(f"value {number}")


def _crash(world: RaftWorld, choose: random.Random, _: int) -> None:
    choose.choice(list(world.members.values())).crash()


def _crash_all(world: RaftWorld, _choose: random.Random, _: int) -> None:
    for member in world.members.values():
        member.crash()


def _start(world: RaftWorld, choose: random.Random, _: int) -> None:
    for member in world.members.values():
        if member.node is None and choose.random() < 0.7:
            member.start()


def _pause(world: RaftWorld, choose: random.Random, _: int) -> None:
    choose.choice(list(world.members.values())).paused_until = world.now + choose.choice([0.5, 3, 10])


def _isolate(world: RaftWorld, choose: random.Random, _: int) -> None:
    alone = choose.choice(list(world.members))
    for other in world.members:
        if other != alone:
            world.cut |= {(other, alone), (alone, other)}


def _cut_one_way(world: RaftWorld, choose: random.Random, _: int) -> None:
    world.cut.add((choose.choice(list(world.members)), choose.choice(list(world.members))))


def _heal(world: RaftWorld, _choose: random.Random, _: int) -> None:
    world.cut.clear()


def _change_voters(world: RaftWorld, _choose: random.Random, _: int) -> None:
    world.change_voters()


def _take_snapshot(world: RaftWorld, _choose: random.Random, _: int) -> None:
    world.snapshot()


_EVENTS: list[tuple[Callable[[RaftWorld, random.Random, int], None], float]] = [
    (_append, 40),
    (_crash, 4),
    (_start, 8),
    (_crash_all, 0.5),
    (_pause, 2),
    (_isolate, 3),
    (_cut_one_way, 3),
    (_heal, 5),
    (_change_voters, 4),
    (_take_snapshot, 4),
]
"""What may happen next, and how often."""


def position_of(log: SimulatedLog) -> LogPosition:
    """Where a log ends."""
    return LogPosition(log.last_epoch, log.end_offset)
