"""Three brokers whose connections pass through a network of ours, and what the fault injector asks about them."""

import json
import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from typing_extensions import override

from tests.chaos.network import BROKER, CONTROLLER, Network
from tests.support.cluster import FAST_FAILOVER, BrokerCluster, ClusterNode
from tests.support.service import run_module

SESSION_TIMEOUT_S: Final = int(FAST_FAILOVER["broker.session.timeout.ms"]) / 1000
INTERNAL_PARTITIONS: Final = 3

SETTINGS: Final[Mapping[str, str]] = {
    **FAST_FAILOVER,
    "controller.quorum.auto.join.enable": "true",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "auto.create.topics.enable": "false",
    # Replicas compact at different times, and their files are compared byte by byte.
    "log.cleaner.enable": "false",
    "log.segment.bytes": str(16 * 1024 * 1024),
    "leader.imbalance.check.interval.seconds": "20",
}


class ChaosNode(ClusterNode):
    """A broker that other nodes and clients reach only through its proxies."""

    def __init__(self, directory: Path, *, node_id: int, network: Network, program: Sequence[str]) -> None:
        super().__init__(directory, node_id=node_id, settings=SETTINGS)
        self._program = program
        self.proxy_port = network.listen(node_id, self._port, BROKER)
        self.controller_proxy_port = network.listen(node_id, self.controller_port, CONTROLLER)
        self.settings["advertised.listeners"] = (
            f"PLAINTEXT://127.0.0.1:{self.proxy_port},CONTROLLER://127.0.0.1:{self.controller_proxy_port}"
        )

    @override
    def _command(self) -> list[str]:
        settings = super()._command()[3:]
        module, *arguments = self._program
        return [*run_module(module, {}, *arguments), *settings]

    def pause(self) -> None:
        """Stop the process without ending it: its connections stay open, and it does not know how time passes."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process continue."""
        os.kill(self.pid, signal.SIGCONT)

    def limit_files(self, limit_bytes: int | None) -> None:
        """Fail every write beyond a position in a file, as a full disk does; None for no limit."""
        hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)[1]
        soft = hard if limit_bytes is None else limit_bytes
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def wipe(self) -> None:
        """Delete everything that the broker has stored."""
        shutil.rmtree(self.data)


class ChaosCluster(BrokerCluster):
    """Nodes 1 to 3. `program` is the module to run, with arguments."""

    def __init__(self, directory: Path, *, seed: int, program: Sequence[str] = ("core_broker",)) -> None:
        self.nodes: dict[int, ClusterNode] = {}
        self.network = Network(self._broker_pids, seed=seed)
        self.members: dict[int, ChaosNode] = {
            number: ChaosNode(directory / f"broker-{number}", node_id=number, network=self.network, program=program)
            for number in (1, 2, 3)
        }
        self.nodes.update(self.members)
        self._admin: AdminClient | None = None

    @override
    def start(self, numbers: Sequence[int] | None = None) -> None:
        """Form the cluster. From then on each node knows the others, and none would form a second one."""
        for node in self.members.values():
            others = [other for other in self.members.values() if other is not node]
            servers = ",".join(f"127.0.0.1:{other.controller_proxy_port}" for other in others)
            if node.node_id > 1:
                node.settings["controller.quorum.bootstrap.servers"] = servers
        super().start(numbers)
        first = self.members[1]
        first.settings["controller.quorum.bootstrap.servers"] = ",".join(
            f"127.0.0.1:{self.members[number].controller_proxy_port}" for number in (2, 3)
        )
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "socket.timeout.ms": 5000, "log_level": 0})

    @override
    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)
        self._admin = None
        self.network.close()

    @property
    @override
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.proxy_port}" for node in self.members.values())

    @property
    def admin(self) -> AdminClient:
        """A client for topics and metadata."""
        assert self._admin is not None, "the cluster was not started"
        return self._admin

    def _broker_pids(self) -> dict[int, int]:
        return {node.pid: node.node_id for node in self.members.values() if node.is_running}

    # -- who has which role --

    def leaders(self) -> dict[tuple[str, int], int]:
        """The leader of each partition, as the metadata has it; empty if no broker answers."""
        return {key: leader for key, (leader, _, _) in self._partitions().items()}

    def in_sync(self, topic: str, partition: int) -> list[int]:
        """The in-sync replicas of a partition."""
        found = self._partitions().get((topic, partition))
        return [] if found is None else found[2]

    def is_healthy(self) -> bool:
        """Whether all replicas of all partitions are in sync."""
        found = self._partitions()
        return bool(found) and all(len(isr) == len(replicas) == 3 for _, replicas, isr in found.values())

    def _partitions(self) -> dict[tuple[str, int], tuple[int, list[int], list[int]]]:
        try:
            topics = self.admin.list_topics(timeout=3).topics
        except KafkaException:
            return {}
        return {
            (name, number): (partition.leader, partition.replicas, partition.isrs)
            for name, topic in topics.items()
            for number, partition in topic.partitions.items()
        }

    def controller(self) -> int | None:
        """The leader of the metadata quorum, from the files in which the nodes keep their votes."""
        found = []
        for node in self.members.values():
            for path in node.data.rglob("quorum-state"):
                try:
                    state = json.loads(path.read_text())
                except (OSError, ValueError):
                    continue
                found.append((state.get("leaderEpoch", -1), state.get("leaderId", -1)))
        leader = max(found, default=(-1, -1))[1]
        return leader if leader in self.members else None

    def coordinator(self, topic: str, name: str) -> int | None:
        """The coordinator of a group or transactional id: the leader of its partition of the internal topic."""
        return self.leaders().get((topic, _java_hash(name) % INTERNAL_PARTITIONS))


def _java_hash(text: str) -> int:
    """`String.hashCode` of Java without its sign, by which Kafka assigns names to partitions."""
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code & 0x7FFFFFFF
