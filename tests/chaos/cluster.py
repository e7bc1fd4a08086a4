"""Brokers whose connections pass through a network of ours, and what the fault injector asks about them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.chaos.namespaces import NamespaceNetwork
from tests.chaos.network import ProxyNetwork
from tests.chaos.nodes import KAFKA, CaudalGuest, CaudalVoter, ChaosNode, KafkaMember, Network
from tests.support.cluster import FAST_FAILOVER
from tests.support.cluster_security import ClusterSecurity
from tests.support.kafka import stored_cluster_id
from tests.support.mixed_cluster import GUESTS, VOTERS
from tests.support.patience import eventually

INTERNAL_PARTITIONS: Final = 3

SETTINGS: Final[Mapping[str, str]] = {
    **FAST_FAILOVER,
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "auto.create.topics.enable": "false",
    # Replicas compact at different times, and their files are compared byte by byte.
    "log.cleaner.enable": "false",
    "log.segment.bytes": str(16 * 1024 * 1024),
    "leader.imbalance.check.interval.seconds": "20",
}
MIXED_SETTINGS: Final[Mapping[str, str]] = {
    **SETTINGS,
    # Five brokers, of which some compile themselves first, share the processors with their clients.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "4000",
    "controller.quorum.request.timeout.ms": "4000",
    "replica.lag.time.max.ms": "10000",
}
_BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"


class ChaosCluster:
    """Nodes 1 to 3, which are brokers and controllers.

    With `quorum` it is a mixed cluster: nodes 1 to 3 are of that kind, and nodes 4 and 5 are brokers of the other.
    `program` is the module to run for our own controllers, with arguments. With `uses_namespaces`, which a mixed
    cluster cannot, the thread that makes the cluster becomes one of its clients.
    """

    def __init__(
        self,
        directory: Path,
        *,
        seed: int,
        program: Sequence[str] = ("core_broker",),
        quorum: str | None = None,
        uses_namespaces: bool = False,
        is_secure: bool = False,
    ) -> None:
        self.members: dict[int, ChaosNode] = {}
        self.is_mixed = quorum is not None
        assert not (self.is_mixed and uses_namespaces), "Kafka's nodes are reached through proxies"
        self.network: Network
        if uses_namespaces:
            self.network = NamespaceNetwork(VOTERS)
            self.network.enter()
        else:
            self.network = ProxyNetwork(seed=seed)
            self.network.broker_pids = self._broker_pids
        settings = MIXED_SETTINGS if self.is_mixed else SETTINGS
        self._security = ClusterSecurity(directory / "security", hosts=self.network.hosts) if is_secure else None
        self.failover_s = int(settings["broker.session.timeout.ms"]) / 1000 + 2
        """How long a partition may go without a write after its leader was killed, the controller or not."""
        for number in VOTERS:
            folder = directory / f"broker-{number}"
            self.members[number] = (
                KafkaMember(folder, node_id=number, settings=settings, is_voter=True)
                if quorum == KAFKA
                else CaudalVoter(folder, node_id=number, settings=settings, program=program)
            )
        for number in GUESTS if self.is_mixed else ():
            folder = directory / f"broker-{number}"
            self.members[number] = (
                CaudalGuest(folder, node_id=number, settings=settings)
                if quorum == KAFKA
                else KafkaMember(folder, node_id=number, settings=settings, is_voter=False)
            )
        for number, node in self.members.items():
            if self._security is not None:
                node.settings.update(self._security.of_node(number))
            node.connect_to(self.network, is_controller=number in VOTERS, is_secure=is_secure)
        self._voters = [self.members[number] for number in VOTERS]
        self._admin: AdminClient | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda node: node.kill(), self))
        self._admin = None
        self.network.close()

    def __iter__(self) -> Iterator[ChaosNode]:
        return iter(self.members.values())

    def __getitem__(self, node_id: int) -> ChaosNode:
        return self.members[node_id]

    def _start(self) -> None:
        """Form the cluster. From then on each node knows the others, and none would form a second one."""
        addresses = {node.node_id: node.controller_reached_at for node in self._voters}
        static = {"controller.quorum.voters": ",".join(f"{number}@{where}" for number, where in addresses.items())}
        joining = [node for node in self._voters if isinstance(node, CaudalVoter)]
        for node in self:
            others = ",".join(where for number, where in addresses.items() if number != node.node_id)
            if isinstance(node, KafkaMember):
                node.quorum = {_BOOTSTRAP: others} if joining else static
            elif isinstance(node, CaudalGuest):
                node.settings.update(static)
            else:
                node.settings["controller.quorum.auto.join.enable"] = "true"
                if node is not self._voters[0]:
                    node.settings[_BOOTSTRAP] = others
        self._start_together(self._voters)
        # Before that, the loss of one broker could leave the others without a quorum.
        eventually(lambda: all("is a voter of the metadata quorum" in node.log_text() for node in joining[1:]))
        if joining:
            joining[0].settings[_BOOTSTRAP] = ",".join(list(addresses.values())[1:])
        guests = [node for node in self if node not in self._voters]
        for node in guests:
            if isinstance(node, KafkaMember):
                node.cluster_id = stored_cluster_id(self._voters[0].data)
        if guests:
            self._start_together(guests)
        self._admin = AdminClient({**self.connection, "socket.timeout.ms": 5000, "log_level": 0})
        eventually(lambda: len(self.admin.list_topics(timeout=10).brokers), lambda count: count == len(self.members))

    def _start_together(self, nodes: Sequence[ChaosNode]) -> None:
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(lambda node: node.start(), nodes))

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(node.reached_at for node in self)

    @property
    def connection(self) -> dict[str, str]:
        """How clients connect: settings of librdkafka."""
        return {"bootstrap.servers": self.bootstrap, **(self._security.of_client if self._security else {})}

    @property
    def admin(self) -> AdminClient:
        """A client for topics and metadata."""
        assert self._admin is not None, "the cluster was not started"
        return self._admin

    def _broker_pids(self) -> dict[int, int]:
        return {node.pid: node.node_id for node in self if node.is_running}

    # -- who has which role --

    def leaders(self) -> dict[tuple[str, int], int]:
        """The leader of each partition, as the metadata has it; empty if no broker answers."""
        return {key: leader for key, (leader, _, _) in self._partitions().items()}

    def replicas(self) -> dict[tuple[str, int], list[int]]:
        """The nodes that have each partition."""
        return {key: replicas for key, (_, replicas, _) in self._partitions().items()}

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
        for node in self:
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
    """The absolute value of Java's `String.hashCode`, by which Kafka assigns names to partitions."""
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code if code < 1 << 31 else (1 << 32) - code
