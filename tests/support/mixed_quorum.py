"""One quorum of both kinds: three nodes, each a broker as well; one is Apache Kafka's, two are Caudal's.

So when Kafka leads and is lost, Caudal leads. When Caudal leads and is lost, it is mostly Kafka that leads: a Kafka
node grants no vote before it has missed the leader for itself, and then asks first.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.client.models import Quorum
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import FAST_FAILOVER, ClusterNode
from tests.support.java_tools import run_java
from tests.support.kafka import CLUSTER_ID, SMALL_JAVA, KafkaNode
from tests.support.mixed_cluster import FEATURES_WE_LACK

NODES: Final = (1, 2, 3)
_QUORUM_TOOL: Final = "org.apache.kafka.tools.MetadataQuorumCommand"


class MixedQuorum:
    """Nodes 1 to 3. The first, of the founder's kind, forms the cluster; the others join it as observers."""

    def __init__(self, directory: Path, *, founder: str, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {**FAST_FAILOVER, **(settings or {})}
        self._directory = directory
        self._cluster_id = CLUSTER_ID
        self.kafka_id = 2 if founder == "caudal" else 1
        self.nodes: dict[int, ClusterNode | KafkaNode] = {number: self._node(number) for number in NODES}
        servers = ",".join(f"127.0.0.1:{node.controller_port}" for node in self.nodes.values())
        for node in self.nodes.values():
            quorum = {"controller.quorum.bootstrap.servers": servers}
            if isinstance(node, KafkaNode):
                node.quorum = quorum
            elif node.node_id != NODES[0]:
                node.settings.update(quorum)

    def _node(self, node_id: int) -> ClusterNode | KafkaNode:
        name = f"node-{node_id}"
        if node_id != self.kafka_id:
            return ClusterNode(self._directory / name, node_id=node_id, settings=self._settings)
        return KafkaNode(
            self._directory / name,
            node_id=node_id,
            settings=self._settings,
            features=FEATURES_WE_LACK if node_id == NODES[0] else None,
            format_options=["--standalone" if node_id == NODES[0] else "--no-initial-controllers"],
            java_options=SMALL_JAVA,
        )

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes.values())

    @contextmanager
    def running(self) -> Iterator["MixedQuorum"]:
        """The three nodes, of which only the first votes."""
        first, *others = self.nodes.values()
        try:
            first.start()
            lines = (first.data / "meta.properties").read_text().splitlines()
            cluster_id = dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]
            for node in others:
                if isinstance(node, KafkaNode):
                    node.cluster_id = cluster_id
            with ThreadPoolExecutor() as threads:
                list(threads.map(lambda node: node.start(), others))
            eventually(lambda: len(self.described().observers) == len(others))
            yield self
        finally:
            with ThreadPoolExecutor() as threads:
                list(threads.map(lambda node: node.kill(), self.nodes.values()))

    def described(self) -> Quorum:
        """The quorum as the active controller sees it, once there is one."""
        admin = Admin(ClientSettings(bootstrap_servers=self._bootstrap_of_living, properties={"log_level": "0"}))

        def ask() -> Quorum | None:
            with suppress(ClientError):
                return admin.maintenance.quorum()
            return None

        found = eventually(ask, lambda quorum: quorum is not None and quorum.leader_id >= 0)
        assert found is not None
        return found

    @property
    def _bootstrap_of_living(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes.values() if node.is_running)

    def leader(self) -> ClusterNode | KafkaNode:
        """The active controller."""
        return self.nodes[self.described().leader_id]

    def is_caudal(self, node: BrokerProcess) -> bool:
        """Whether a node runs Caudal."""
        return isinstance(node, ClusterNode)

    def tool(self, *arguments: str, at: int | None = None, by_controller: bool = False) -> str:
        """Run `kafka-metadata-quorum`, by default against every broker."""
        node = None if at is None else self.nodes[at]
        if by_controller:
            assert node is not None
            where = ["--bootstrap-controller", f"127.0.0.1:{node.controller_port}"]
        else:
            where = ["--bootstrap-server", self.bootstrap if node is None else f"127.0.0.1:{node.port}"]
        return run_java(_QUORUM_TOOL, *where, *arguments)

    def add_voter_by_tool(self, node_id: int) -> None:
        """`kafka-metadata-quorum add-controller`, which reads from a controller's settings who and where it is."""
        node = self.nodes[node_id]
        settings = node.directory / "server.properties"
        if isinstance(node, ClusterNode):
            values = {
                "node.id": node_id,
                "process.roles": "broker,controller",
                "log.dirs": node.data,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
                "controller.quorum.bootstrap.servers": f"127.0.0.1:{node.controller_port}",
            }
            settings.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        self.tool("--command-config", str(settings), "add-controller")
