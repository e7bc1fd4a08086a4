"""A whole cluster in one process: real brokers, a simulated network, virtual time, and one seed that decides all."""

import asyncio
import logging
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from core_broker.peers.peers import Address
from core_broker.protocol.records import parse_batches, read_records
from tests.simulation.clients import ACKS_ALL, ACKS_LEADER, TEMPORARY_TOPIC, Admin, Consumer, Producer
from tests.simulation.disk import OpenFiles
from tests.simulation.faults import Faults
from tests.simulation.invariants import Invariants, Key
from tests.simulation.network import Network
from tests.simulation.node import SimulatedNode
from tests.simulation.transactions import Coordinated, GroupClient, TransactionalProducer, Transactions
from tests.simulation.virtual_loop import VirtualLoop

_SETTINGS: Final = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "250",
    "initial.broker.registration.timeout.ms": "3500",
    "controller.quorum.election.timeout.ms": "200",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "550",
    "controller.quorum.request.timeout.ms": "550",
    "controller.listener.names": "CONTROLLER",
    "replica.lag.time.max.ms": "1000",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "leader.imbalance.check.interval.seconds": "3",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_CALM_SECONDS: Final = 25.0
"""How long a healed cluster may take until everything is in sync again."""
_ANSWER_SECONDS: Final = 45.0
"""No request takes longer on a node that runs."""


class Violation(AssertionError):
    """Something happened that must never happen."""


class World:
    """Nodes, clients, network, and what has happened so far."""

    def __init__(self, seed: int, directory: Path, *, verbose: bool = False) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.loop = VirtualLoop(random.Random(self.rng.getrandbits(64)))
        self.network = Network(self.loop, random.Random(self.rng.getrandbits(64)), on_problem=self.fail)
        self.files = OpenFiles()
        self.invariants = Invariants(self)
        self.violation: str | None = None
        self.history: list[str] = []
        self.counts: Counter[str] = Counter()
        self.has_load = True
        self.is_over = False
        self.think_seconds = self.rng.choice([0.1, 0.3, 0.6])
        self.producer_ids: dict[int, int] = {}
        self.producers: list[Producer] = []
        self.coordinated: list[Coordinated] = []
        self.transactions = Transactions(self)
        self._verbose = verbose
        self._acknowledged: dict[Key, dict[int, bytes]] = {}
        self.nodes: dict[int, SimulatedNode] = {}
        size = self.rng.choice([3, 3, 3, 5])
        self._add_nodes(size, directory)

    def _add_nodes(self, size: int, directory: Path) -> None:
        numbers = range(1, size + 1)
        voters = [1, 2, 3] if size < 5 or self.rng.random() < 0.5 else list(numbers)
        is_dynamic = self.is_dynamic = self.rng.random() < 0.4
        """Whether the voters can change."""
        for number in numbers:
            is_voter = number in voters
            listeners = [f"PLAINTEXT://10.0.0.{number}:9092"]
            settings = dict(_SETTINGS)
            if is_voter:
                listeners.append(f"CONTROLLER://10.0.0.{number}:9093")
            else:
                settings["process.roles"] = "broker"
            settings["listeners"] = ",".join(listeners)
            if not is_dynamic:
                settings["controller.quorum.voters"] = ",".join(f"{voter}@10.0.0.{voter}:9093" for voter in voters)
                settings["cluster.id"] = "AAAAAAAAAAAAAAAAAAAAAA"
            elif number > 1:
                settings["controller.quorum.bootstrap.servers"] = "10.0.0.1:9093"
                settings["controller.quorum.auto.join.enable"] = "true" if is_voter else "false"
            self.nodes[number] = SimulatedNode(self, number, directory / f"node-{number}", settings)

    # -- what others need to know --

    def address_of(self, number: int) -> Address:
        """Where clients reach a node."""
        return Address(f"10.0.0.{number}", 9092)

    def note(self, text: str) -> None:
        """Keep an event for the report."""
        line = f"{self.loop.time() - 1000:9.4f} {text}"
        self.history.append(line)
        if self._verbose:
            print(line, flush=True)

    def count(self, name: str, number: int = 1) -> None:
        """Count something for the summary."""
        self.counts[name] += number

    def fail(self, text: str) -> None:
        """End the run: something happened that must not."""
        if self.violation is None:
            self.violation = text
            self.note(f"VIOLATION {text}")
        self.loop.stop()

    def check_acknowledged(self, key: Key, offset: int, values: list[bytes]) -> None:
        """An acknowledged record is committed at its offset, with the value that was sent."""
        committed = self.invariants.of(key)
        if offset + len(values) > committed.end:
            text = f"offset {offset} of partition {key[1]} is acknowledged, but only {committed.end} are committed"
            self.fail(f"I7: {text}")
        known = self._acknowledged.setdefault(key, {})
        for delta, value in enumerate(values):
            if known.setdefault(offset + delta, value) != value:
                self.fail(f"S3: offset {offset + delta} was acknowledged for two records")

    # -- a run --

    async def run(self, seconds: float) -> None:
        """Start, load and disturb the cluster, heal it, and check what is left."""
        for node in self.nodes.values():
            node.start()
        await self._wait_for(lambda: all(node.is_serving for node in self.nodes.values()), "every node serves")
        admin = Admin(self, 200)
        topics = [("orders", self.rng.choice([1, 2])), ("events", 1)]
        for name, partitions in topics:
            await self._within(admin, admin.create_topic(name, partitions=partitions, replicas=3, configs={}))
        self.note("topics created")
        self._start_clients(topics)
        faults = Faults(self, admin)
        await faults.run(seconds)
        await self._heal(faults)
        await self._check_agreement()
        self.is_over = True

    def _start_clients(self, topics: list[tuple[str, int]]) -> None:
        places = [(name, index) for name, partitions in topics for index in range(partitions)]
        for number, (topic, index) in enumerate(places):
            self._add(Producer(self, 100 + number, topic, index, acks=ACKS_ALL, is_idempotent=True))
        acks, is_idempotent = self.rng.choice([(ACKS_LEADER, True), (ACKS_LEADER, False), (ACKS_ALL, False)])
        self._add(Producer(self, 150, *self.rng.choice(places), acks=acks, is_idempotent=is_idempotent))
        self._add(Producer(self, 152, TEMPORARY_TOPIC, 0, acks=ACKS_ALL, is_idempotent=False))
        if self.rng.random() < 0.5:
            self._add(TransactionalProducer(self, 160, places))
        if self.rng.random() < 0.3:
            self._add(GroupClient(self, 170, self.rng.choice(places)))
        for number in (180, 181):
            self._add(Consumer(self, number, is_read_committed=number == 181))

    def _add(self, client: Producer | Consumer | TransactionalProducer | GroupClient) -> None:
        if isinstance(client, Producer):
            self.producers.append(client)
        elif isinstance(client, Coordinated):
            self.coordinated.append(client)
        self.loop.create_task(client.run(), context=client.life.context)

    async def _within(self, client: Admin, work: Any) -> None:
        await self.loop.create_task(work, context=client.life.context)

    async def _wait_for(self, condition: Any, what: str) -> None:
        for _ in range(int(_CALM_SECONDS * 10)):
            if condition():
                return
            await asyncio.sleep(0.1)
        self.fail(f"S10: not within {_CALM_SECONDS:g} seconds: {what}. {self._describe()}")
        await asyncio.sleep(1)

    # -- afterwards --

    async def _heal(self, faults: "Faults") -> None:
        faults.heal_everything()
        self.note("healed")
        await self._wait_for(self._all_serve, "every node serves")
        await asyncio.sleep(0.5)
        self.has_load = False
        await self._wait_for(
            lambda: self._all_serve() and all(client.is_done for client in self.coordinated), "every client is done"
        )
        await self._wait_for(lambda: self._all_serve() and self._is_in_sync(), "every replica is in sync")
        self.note("in sync")

    def _all_serve(self) -> bool:
        for node in self.nodes.values():
            if not node.is_up:
                node.start()
        return all(node.is_serving and not node.is_stopping for node in self.nodes.values())

    def _is_in_sync(self) -> bool:
        image = self.invariants.newest
        leaders = [node for node in self.nodes.values() if node.services and node.services.metadata.is_leader]
        if len(leaders) != 1:
            return False
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                if set(partition.isr) != set(partition.replicas) or partition.adding_replicas:
                    return False
                found = [self.nodes[n].partition(topic.name, index, topic.topic_id) for n in partition.replicas]
                ends = {(p.log.end_offset, p.high_watermark) if p else None for p in found}
                if len(ends) != 1 or None in ends or any(end and end[0] != end[1] for end in ends):
                    return False
        return True

    def _describe(self) -> str:
        image = self.invariants.newest
        lines = [
            f"node {n.number}: up {n.is_up}, serving {n.is_serving}, stopping {n.is_stopping}, controller"
            f" {bool(n.services and n.services.metadata.is_leader)}, metadata"
            f" {n.services.metadata.image.offset if n.services else '?'} of {image.offset}"
            for n in self.nodes.values()
        ]
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                logs = {
                    n: (p.log.end_offset, p.high_watermark, p.leader_id, p.leader_epoch)
                    for n in partition.replicas
                    if (p := self.nodes[n].partition(topic.name, index, topic.topic_id)) is not None
                }
                lines.append(f"{topic.name}-{index}: {partition} (end, high watermark, leader, epoch): {logs}")
        return "\n    ".join(lines)

    async def _check_agreement(self) -> None:
        """After everything healed: all replicas are equal, and everything acknowledged is in them."""
        final: dict[tuple[str, int], bytes] = {}
        for topic in self.invariants.newest.topics.values():
            for index, partition in topic.partitions.items():
                key = (topic.topic_id, index)
                logs: dict[int, bytes] = {}
                for number in partition.replicas:
                    found = self.nodes[number].partition(topic.name, index, topic.topic_id)
                    assert found is not None
                    batches = found.log.read_batches(found.log.start_offset, found.log.end_offset)
                    logs[number] = b"".join(bytes(batch) for _, batch in batches)
                if len(set(logs.values())) != 1:
                    self.fail(f"S10: the replicas of {topic.name}-{index} differ")
                    return
                final[topic.name, index] = next(iter(logs.values()))
                self._check_records(f"{topic.name}-{index}", key, final[topic.name, index])
        self.transactions.check_end({place: data for place, data in final.items() if not place[0].startswith("__")})

    def _check_records(self, where: str, key: Key, data: bytes) -> None:
        found: dict[int, bytes] = {}
        for header in parse_batches(data):
            found.update((record.offset, record.value or b"") for record in read_records(data, header))
        for offset, value in self._acknowledged.get(key, {}).items():
            if found.get(offset) != value:
                self.fail(f"S1: {where} acknowledged {value!r} at offset {offset}, where {found.get(offset)!r} is")
        for producer in self.producers:
            if not producer.is_idempotent:
                continue
            own = [value for value in found.values() if value.startswith(f"{producer.number}:".encode())]
            numbers = [int(value.partition(b":")[2]) for value in own]
            if producer.acks == ACKS_ALL and any(b <= a for a, b in pairwise(numbers)):
                self.fail(f"S4: records of producer {producer.number} are twice or out of order in {where}")

    def check_answers(self) -> None:
        """No request waits for ever."""
        for side, since in list(self.network.answering.items()):
            life = side.server.life
            if life.is_dead:
                del self.network.answering[side]
            elif not life.is_paused and self.loop.time() - since > _ANSWER_SECONDS:
                self.fail(f"I13: node {side.server.number} has not answered a request for {_ANSWER_SECONDS:g} seconds")


class _LogWatch(logging.Handler):
    """Exceptions that the product catches and only logs are bugs, too."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._world.fail(f"logged: {record.getMessage()}: {record.exc_info[1]!r}")


def simulate(world: World, *, seconds: float = 6.0) -> None:
    """One run with faults, then calm; raises Violation. For a process that ends afterwards: it changes classes."""
    logging.getLogger().addHandler(_LogWatch(world))
    world.files.watch()
    world.invariants.watch()

    def on_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "never retrieved" not in context["message"] and "destroyed" not in context["message"]:
            world.fail(f"{context['message']}: {context.get('exception')!r}")

    world.loop.set_exception_handler(on_error)
    task = world.loop.create_task(world.run(seconds))
    task.add_done_callback(lambda _: world.loop.stop())
    world.loop.run_forever()
    if world.violation is not None:
        raise Violation(world.violation)
    if task.done() and (error := task.exception()) is not None:
        raise error
