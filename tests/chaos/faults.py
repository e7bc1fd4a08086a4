"""Faults: what is done to the cluster, to which of its nodes, and how it is undone."""

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import permutations
from typing import Final

from tests.chaos.clients import ClientProcesses
from tests.chaos.cluster import ChaosCluster
from tests.chaos.history import History
from tests.chaos.network import CLIENTS, ProxyNetwork
from tests.chaos.nodes import CAUDAL, ChaosNode
from tests.chaos.topics import INPUT, OUTPUT, TOPICS, TRANSACTIONS
from tests.support.service import ServiceFailed

Roles = Mapping[str, Callable[[], int | None]]
_ALL: Final = "all"
_DISK_FAULTS: Final = ("empty disk", "disk full")
_GROUPS: Final = ("transform", "classic", "consumer", "aiokafka")
_TRANSACTIONAL_IDS: Final = ("transform-31", "transform-32", "transactions-21", "transactions-22")
_MEASURED_MORE_S: Final = 2.0
"""After a kill whose failover is timed there is no other fault for this much longer than the pass mark."""
_HEALTHY_WAIT_S: Final = 20.0
_HEALTHY_CHECKS: Final = 4


class FaultInjector:
    """Injects one fault after the other; the seed decides which, where and for how long."""

    def __init__(
        self,
        cluster: ChaosCluster,
        clients: ClientProcesses,
        history: History,
        *,
        seed: int,
        kinds: list[str],
        targets: list[str],
    ) -> None:
        self._cluster = cluster
        self._clients = clients
        self._history = history
        self._random = random.Random(seed)
        self._faults: dict[str, Callable[[list[ChaosNode]], None]] = {
            "kill": self._kill,
            "pause": self._pause,
            "restart": self._restart,
            "isolate": self._isolate,
            "cut": self._cut,
            "cut one way": self._cut_one_way,
            "cut clients": self._cut_clients,
            "delay": self._delay,
            "lose responses": self._lose_responses,
            "disk full": self._fill_disk,
            "empty disk": self._empty_disk,
            "kill client": self._kill_client,
        }
        if not cluster.network.can_delay:
            del self._faults["delay"]
        self._roles: Roles = {
            "leader": self._leader,
            "follower": self._follower,
            "controller": cluster.controller,
            "group coordinator": lambda: self._coordinator("__consumer_offsets", _GROUPS),
            "transaction coordinator": lambda: self._coordinator("__transaction_state", _TRANSACTIONAL_IDS),
            _ALL: lambda: None,
        }
        for names, known in ((kinds, self._faults), (targets, self._roles)):
            if not set(names) <= set(known):
                raise ValueError(f"{', '.join(set(names) - set(known))}: unknown; there are {', '.join(known)}")
        self._targets = targets or list(self._roles)
        self._kinds = kinds or [*self._faults, "kill", "kill", "kill", "pause", "pause", "restart"]

    def inject(self) -> str:
        """Inject one fault, wait until it is undone, and say what it was."""
        self._check_running()
        kind = self._random.choice(self._kinds)
        target = self._random.choice(self._targets)
        # Most faults meet a healthy cluster, some one that has not recovered from the last.
        if kind == "empty disk" or self._random.random() < 0.75:
            is_healthy = self.wait_until_healthy(_HEALTHY_WAIT_S)
            if kind == "empty disk" and not is_healthy:
                kind = "pause"
        else:
            is_healthy = False
            time.sleep(self._random.uniform(0.2, 2.0))
        if kind in _DISK_FAULTS and target == _ALL:
            target = "follower"
        if kind == "kill client":
            target = ""
        nodes = self._choose(target, self._cluster.members.values())
        if kind in _DISK_FAULTS and nodes[0].kind != CAUDAL:  # Kafka ends itself, and its voters cannot join again
            nodes = self._choose("", [node for node in self._cluster if node.kind == CAUDAL])
        if self._cluster.is_mixed and len(nodes) == 1 and target:
            target = f"{target} ({nodes[0].kind})"
        self._history.write("fault", fault=kind, target=target, nodes=[node.node_id for node in nodes])
        if kind == "kill" and len(nodes) == 1 and is_healthy:
            self._kill_and_measure(nodes[0])
        else:
            self._faults[kind](nodes)
        self._history.write("healed", fault=kind)
        return f"{kind} {target} {','.join(str(node.node_id) for node in nodes)}"

    def wait_until_healthy(self, seconds: float) -> bool:
        """Wait until all replicas are in sync; whether that came in time.

        It must hold for a while: the broker that answers may have been cut off, and not know yet what happened.
        """
        deadline = time.monotonic() + seconds
        checks = 0
        while checks < _HEALTHY_CHECKS and time.monotonic() < deadline:
            checks = checks + 1 if self._cluster.is_healthy() else 0
            time.sleep(0.3)
        return checks >= _HEALTHY_CHECKS

    def _check_running(self) -> None:
        """Start brokers again that ended by themselves, which is in the verdict."""
        for node in self._cluster:
            if not node.is_running:
                what = f"node {node.node_id} ended by itself: {node.log_tail(1)}"
                self._history.write("probe", rule="L4", ok=False, what=what)
                self._start_one(node)

    def _choose(self, target: str, nodes: Collection[ChaosNode]) -> list[ChaosNode]:
        if target == _ALL:
            return list(nodes)
        number = self._roles[target]() if target else None
        return [self._cluster[number] if number in self._cluster.members else self._random.choice(list(nodes))]

    def _leader(self) -> int | None:
        return self._cluster.leaders().get((INPUT, self._random.randrange(TOPICS[INPUT])))

    def _follower(self) -> int | None:
        key = (INPUT, self._random.randrange(TOPICS[INPUT]))
        leader, replicas = self._cluster.leaders().get(key), self._cluster.replicas().get(key, ())
        return self._random.choice([number for number in replicas if number != leader] or [None])

    def _coordinator(self, topic: str, names: Sequence[str]) -> int | None:
        return self._cluster.coordinator(topic, self._random.choice(names))

    # -- processes --

    def _kill_and_measure(self, node: ChaosNode) -> None:
        led = [key for key, leader in self._cluster.leaders().items() if leader == node.node_id and key[0] == INPUT]
        is_controller = self._cluster.controller() == node.node_id
        started = time.monotonic()
        node.kill()
        self._history.write(
            "killed", t=started, node=node.node_id, led=led, is_measured=True, is_controller=is_controller
        )
        measured_s = self._cluster.failover_s + _MEASURED_MORE_S
        time.sleep(self._random.uniform(0.0, measured_s))
        self._start([node])
        time.sleep(max(0.0, started + measured_s - time.monotonic()))

    def _kill(self, nodes: list[ChaosNode]) -> None:
        for node in nodes:
            node.kill()
        self._history.write("killed", led=[], is_measured=False)
        time.sleep(self._random.uniform(0.0, 3.0))
        self._start(nodes)

    def _pause(self, nodes: list[ChaosNode]) -> None:
        for node in nodes:
            node.pause()
        time.sleep(self._random.uniform(1.0, 5.0 if len(nodes) > 1 else 15.0))
        for node in nodes:
            node.resume()

    def _restart(self, nodes: list[ChaosNode]) -> None:
        if self._cluster.is_mixed:  # Kafka's brokers do not stop without a controller: one after the other
            for node in nodes:
                node.stop()
                self._start([node])
            return
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(lambda node: node.stop(), nodes))
        self._start(nodes)

    def _start(self, nodes: list[ChaosNode]) -> None:
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(self._start_one, nodes))

    def _start_one(self, node: ChaosNode) -> None:
        """Start a broker, and once more if it fails, which is in the verdict."""
        try:
            node.start()
        except ServiceFailed as error:
            what = str(error).splitlines()[-1]
            self._history.write("probe", rule="L4", ok=False, what=f"node {node.node_id} did not start: {what}")
            node.kill()
            node.start()

    def _kill_client(self, _nodes: list[ChaosNode]) -> None:
        self._clients.kill_one(self._random)

    # -- network --

    def _for_a_while(self, longest_s: float) -> None:
        time.sleep(self._random.uniform(1.0, longest_s))
        self._cluster.network.heal()

    def _isolate(self, nodes: list[ChaosNode]) -> None:
        """Nodes lose the other nodes; with more than one, every node is alone. Clients reach all of them."""
        chosen = {node.node_id for node in nodes}
        pairs = [pair for pair in permutations(self._cluster.members, 2) if chosen.intersection(pair)]
        self._cluster.network.cut(pairs)
        self._for_a_while(12.0)

    def _cut(self, nodes: list[ChaosNode]) -> None:
        """One node and one other lose each other; the third reaches both."""
        pair = (nodes[0].node_id, self._other(nodes[0]))
        self._cluster.network.cut([pair, pair[::-1]])
        self._for_a_while(12.0)

    def _cut_one_way(self, nodes: list[ChaosNode]) -> None:
        """What one node sends to one other, or to all, does not arrive; what they send does."""
        node = nodes[0].node_id
        others = [number for number in self._cluster.members if number != node]
        if self._random.random() < 0.5:
            others = [self._other(nodes[0])]
        self._cluster.network.cut((node, other) for other in others)
        self._for_a_while(12.0)

    def _cut_clients(self, nodes: list[ChaosNode]) -> None:
        pairs = [(CLIENTS, node.node_id) for node in nodes]
        self._cluster.network.cut([*pairs, *(pair[::-1] for pair in pairs)])
        self._for_a_while(8.0)

    def _delay(self, nodes: list[ChaosNode]) -> None:
        numbers = [CLIENTS, *self._cluster.members]
        chosen = {node.node_id for node in nodes}
        pairs = [pair for pair in permutations(numbers, 2) if chosen.intersection(pair)]
        network = self._cluster.network
        assert isinstance(network, ProxyNetwork), "only proxies delay"
        network.delay(pairs, self._random.uniform(0.02, 0.3))
        self._for_a_while(8.0)

    def _lose_responses(self, nodes: list[ChaosNode]) -> None:
        """Requests arrive and are carried out, but clients or other nodes never hear of it."""
        receivers = [CLIENTS] if self._random.random() < 0.7 else [CLIENTS, *self._cluster.members]
        pairs = [(node.node_id, receiver) for node in nodes for receiver in receivers if receiver != node.node_id]
        self._cluster.network.drop(pairs)
        self._for_a_while(3.0)

    def _other(self, node: ChaosNode) -> int:
        return self._random.choice([number for number in self._cluster.members if number != node.node_id])

    # -- disks --

    def _fill_disk(self, nodes: list[ChaosNode]) -> None:
        """Let some files grow a little and no further, then give the space back and restart the broker."""
        node = nodes[0]
        names = [f"{topic}-0" for topic in (INPUT, TRANSACTIONS, OUTPUT)] + ["__cluster_metadata-0"]
        files = list((node.data / self._random.choice(names)).glob("*.log"))
        largest = max((file.stat().st_size for file in files), default=0)
        node.limit_files(largest + self._random.randint(0, 64 * 1024))
        time.sleep(self._random.uniform(1.0, 8.0))
        if node.is_running:
            with suppress(ProcessLookupError):  # it may stop by itself
                node.limit_files(None)
        node.stop()
        self._start([node])

    def _empty_disk(self, nodes: list[ChaosNode]) -> None:
        node = nodes[0]
        node.kill()
        node.wipe()
        self._start([node])
        self.wait_until_healthy(60.0)
