"""What goes wrong in a simulated cluster, and when.

A machine that crashes may lose what it had not synced. As Kafka's, our promise holds for one such loss at a time: the
next comes only after every replica is in sync again, and until then no other node crashes, because a crash without a
loss looks the same to the cluster. All else may happen together: processes that are killed and keep their files,
pauses, cuts, loss, slow disks, jumping clocks.
"""

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.node import SimulatedNode

if TYPE_CHECKING:
    from tests.simulation.clients import Admin
    from tests.simulation.cluster import World


class Faults:
    """Disturbs a world, one fault after the other."""

    def __init__(self, world: "World", admin: "Admin") -> None:
        self.world = world
        self.admin = admin
        self.rng = random.Random(world.rng.getrandbits(64))
        self.loses = self.rng.random() < 0.5
        """Whether machines fail in this run, or processes."""
        self._is_recovering = False
        """A machine or a disk has failed, and not everything is in sync again."""
        self._is_calm = False
        self._events: list[tuple[Callable[[], None], float]] = [
            (self.crash, 4),
            (self.crash_all, 0.4),
            (self.stop, 2),
            (self.start, 8),
            (self.pause, 3),
            (self.isolate, 3),
            (self.split, 1),
            (self.cut_one_way, 3),
            (self.cut_from_controller, 1),
            (self.heal, 6),
            (self.slow_disk, 2),
            (self.fail_disk, 1),
            (self.jump, 1),
            (self.bad_network, 2),
            (self.change, 3),
            (self.replace_disk, 0.7),
        ]

    async def run(self, seconds: float) -> None:
        """Disturb for a while."""
        loop = self.world.loop
        end = loop.time() + seconds
        pace = self.rng.choice([2.0, 4.5, 9.0])
        while loop.time() < end:
            await asyncio.sleep(self.rng.expovariate(pace))
            (event,) = self.rng.choices([event for event, _ in self._events], [weight for _, weight in self._events])
            event()
            self.world.check_answers()
            is_failing = any(node.life and node.life.failing_writes for node in self.world.nodes.values())
            if self._is_recovering and not is_failing and self.world._is_in_sync():
                self._is_recovering = False

    def _note(self, text: str) -> None:
        self.world.note(text)
        self.world.count("faults")

    def _any_node(self) -> SimulatedNode:
        return self.rng.choice(list(self.world.nodes.values()))

    # -- nodes --

    def crash(self) -> None:
        node = self._any_node()
        if not node.is_up or self._is_recovering:
            return
        if self.loses:
            if not self.world._is_in_sync() and not self._is_only_behind(node):
                return
            self._is_recovering = True
            self._note(f"machine {node.number} fails")
            node.crash(loses_records=True)
        else:
            self._note(f"node {node.number} is killed")
            node.crash()

    def _is_only_behind(self, node: SimulatedNode) -> bool:
        """Whether every other replica of this node's partitions is in the ISR."""
        image = self.world.invariants.newest
        return all(
            set(partition.replicas) - {node.number} <= set(partition.isr)
            for topic in image.topics.values()
            for partition in topic.partitions.values()
        ) and all(other.is_serving for other in self.world.nodes.values() if other is not node)

    def crash_all(self) -> None:
        if not self.loses:
            self._note("all nodes are killed")
            for node in self.world.nodes.values():
                node.crash()

    def stop(self) -> None:
        node = self._any_node()
        if node.is_serving and not node.is_stopping and not self._is_recovering:
            self._note(f"node {node.number} stops")
            node.stop()

    def start(self) -> None:
        for node in self.world.nodes.values():
            if not node.is_up and self.rng.random() < 0.7:
                self.world.note(f"node {node.number} starts")
                node.start()

    def replace_disk(self) -> None:
        """A node comes back with an empty disk; a controller only where it can then join the voters again."""
        node = self._any_node()
        if not self.loses or self._is_recovering or not self.world._is_in_sync():
            return
        if node.settings.is_controller and not node.settings.controller_quorum_auto_join_enable:
            return
        self._is_recovering = True
        self._note(f"node {node.number} gets an empty disk")
        node.crash()
        node.wipe()

    def pause(self) -> None:
        node = self._any_node()
        life = node.life
        if life is None or life.is_paused:
            return
        seconds = self.rng.choice([0.2, 1.0, 3.0])
        self._note(f"node {node.number} pauses for {seconds} s")
        life.is_paused = True
        self.world.loop.call_later(seconds, self.world.loop.resume, life)

    def slow_disk(self) -> None:
        node = self._any_node()
        if node.life is not None:
            node.life.disk_seconds = self.rng.choice([0.0002, 0.005, 0.1, 0.5])
            self._note(f"a sync of node {node.number} takes {node.life.disk_seconds} s")

    def fail_disk(self) -> None:
        """Some writes fail, after half of their bytes, as on a full disk; that ends the process."""
        node = self._any_node()
        if self._is_recovering or (self.loses and not self.world._is_in_sync()):
            return
        if node.life is not None and node.is_serving:
            self._is_recovering = self.loses
            self._note(f"the disk of node {node.number} fails")
            node.life.failing_writes = self.rng.choice([1, 1, 3, 100])

    def jump(self) -> None:
        node = self._any_node()
        node.clock.jump_ms += self.rng.choice([-3_600_000, -1000, 1000, 3_600_000])
        self._note(f"the clock of node {node.number} jumps")

    # -- the network --

    def isolate(self) -> None:
        alone = self._any_node().number
        self._note(f"node {alone} is isolated")
        others = [*self.world.nodes, *(range(100, 201) if self.rng.random() < 0.5 else ())]
        self.world.network.cut |= {pair for n in others if n != alone for pair in ((n, alone), (alone, n))}

    def split(self) -> None:
        """Two groups that cannot reach each other."""
        numbers = list(self.world.nodes)
        group = set(self.rng.sample(numbers, len(numbers) // 2))
        self._note(f"nodes {sorted(group)} are cut off from the others")
        self.world.network.cut |= {(a, b) for a in numbers for b in numbers if (a in group) != (b in group)}

    def cut_one_way(self) -> None:
        a, b = self._any_node().number, self._any_node().number
        if a != b:
            self._note(f"node {a} cannot reach node {b}")
            self.world.network.cut.add((a, b))

    def cut_from_controller(self) -> None:
        leading = [n.number for n in self.world.nodes.values() if n.services and n.services.metadata.is_leader]
        if leading:
            self._note(f"controller {leading[0]} cannot be reached")
            self.world.network.cut |= {(n, leading[0]) for n in self.world.nodes if n != leading[0]}

    def bad_network(self) -> None:
        network = self.world.network
        network.loss = self.rng.choice([0.0, 0.01, 0.05, 0.2])
        network.duplicates = self.rng.choice([0.0, 0.01, 0.1])
        network.latency = self.rng.choice([0.0003, 0.002, 0.02])
        self._note(f"loss {network.loss}, duplicates {network.duplicates}, latency {network.latency} s")

    def heal(self) -> None:
        if self.world.network.cut:
            self.world.note("the network is healed")
            self.world.network.cut.clear()

    def change(self) -> None:
        self._note("an operator changes something")
        self.world.loop.create_task(self.admin.change_something(), context=self.admin.life.context)

    def heal_everything(self) -> None:
        """From now on nothing is wrong any more; what is down is started by the world."""
        network = self.world.network
        network.cut.clear()
        network.loss = network.duplicates = 0.0
        network.latency = 0.0005
        for node in self.world.nodes.values():
            if node.life is not None:
                node.life.failing_writes = 0
                node.life.disk_seconds = 0.0005
                self.world.loop.resume(node.life)
