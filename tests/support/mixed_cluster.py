"""One cluster of Caudal and Apache Kafka: three nodes of one kind, which hold the quorum, and two brokers of the other.

Set KAFKA_JARS to a folder with the jars of a Kafka release: `make test-mixed` does.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import FAST_FAILOVER, ClusterNode
from tests.support.kafka import CLUSTER_ID, KAFKA_JARS, SMALL_JAVA, KafkaNode, stored_cluster_id
from tests.support.role_cluster import ControllerProcess, PureBrokerProcess
from tests.support.routing import live_brokers

VOTERS: Final = (1, 2, 3)
GUESTS: Final = (4, 5)
FEATURES_WE_LACK: Final = {"share.version": 0, "streams.version": 0}
_START_SECONDS: Final = 120.0

needs_kafka: Final = [
    pytest.mark.skipif(KAFKA_JARS is None, reason="KAFKA_JARS names no folder of jars: see `make test-mixed`"),
    pytest.mark.skipif(shutil.which("java") is None, reason="the command java is not installed"),
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("java"),
]
"""Marks of a module that starts Kafka."""


class MixedCluster:
    """Nodes 1 to 3 are brokers and controllers of one kind; nodes 4 and 5, the guests, are brokers of the other."""

    def __init__(
        self,
        directory: Path,
        *,
        quorum: str,
        settings: Mapping[str, str] | None = None,
        release: str | None = None,
        features: Mapping[str, int] | None = None,
        jars: str | None = KAFKA_JARS,
    ) -> None:
        """`release` is that of Kafka whose feature levels the cluster begins with; `jars` is the Kafka to run.

        `features` are levels for a quorum of Kafka: by default those of the release, without what we lack.
        """
        self.directory = directory
        self.release = release
        self._features = features or ({} if release in ("4.0", "4.1") else FEATURES_WE_LACK)
        self.jars = jars
        self.quorum = quorum
        self.settings = {**FAST_FAILOVER, **(settings or {})}
        make = self._caudal_voter if quorum == "caudal" else self._kafka_voter
        self.voters = {number: make(number) for number in VOTERS}
        self.nodes: dict[int, BrokerProcess] = dict(self.voters)
        self.retired: list[BrokerProcess] = []
        """Nodes that are no longer brokers."""
        servers = ",".join(f"127.0.0.1:{node.controller_port}" for node in self.voters.values())
        self.controllers: dict[str, str] = {"controller.quorum.bootstrap.servers": servers}
        if quorum == "kafka":
            kafka = [node for node in self.voters.values() if isinstance(node, KafkaNode)]
            self.controllers = {"controller.quorum.voters": ",".join(node.voter for node in kafka)}
            for node in kafka:
                node.quorum = self.controllers
        else:
            for number in VOTERS[1:]:
                first = f"127.0.0.1:{self.voters[VOTERS[0]].controller_port}"
                self.voters[number].settings["controller.quorum.bootstrap.servers"] = first

    def _caudal_voter(self, node_id: int) -> ClusterNode:
        settings = {**self.settings, "controller.quorum.auto.join.enable": "true"}
        if self.release is not None:
            settings["initial.release.version"] = self.release
        return ClusterNode(self.directory / f"caudal-{node_id}", node_id=node_id, settings=settings)

    def _kafka_voter(self, node_id: int) -> KafkaNode:
        return KafkaNode(
            self.directory / f"kafka-{node_id}",
            node_id=node_id,
            settings=self.settings,
            features=self._features,
            java_options=SMALL_JAVA,
            jars=self.jars,
        )

    def guest(self, node_id: int, *, like_voters: bool = False) -> BrokerProcess:
        """Another broker of the kind that the voters are not, unless it should be like them."""
        if (self.quorum == "caudal") != like_voters:
            node: BrokerProcess = KafkaNode(
                self.directory / f"kafka-{node_id}",
                node_id=node_id,
                settings=self.settings,
                roles="broker",
                cluster_id=self.cluster_id,
                java_options=SMALL_JAVA,
                jars=self.jars,
            )
            assert isinstance(node, KafkaNode)
            node.quorum = self.controllers
        else:
            settings = {**self.settings, **self.controllers, "controller.listener.names": "CONTROLLER"}
            node = PureBrokerProcess(self.directory / f"caudal-{node_id}", node_id=node_id, settings=settings)
            node.node_id = node_id
        self.nodes[node_id] = node
        return node

    @property
    def cluster_id(self) -> str:
        """The id that every node's `meta.properties` has."""
        if self.quorum == "kafka":
            return CLUSTER_ID
        return stored_cluster_id(self.voters[VOTERS[0]].data)

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(node.address for node in self.nodes.values())

    def stored(self, topic: str) -> dict[int, bytes]:
        """The segments of a topic's only partition on each broker that has them."""
        folders = {number: node.data / f"{topic}-0" for number, node in self.nodes.items()}
        return {
            number: b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
            for number, folder in folders.items()
            if folder.exists()
        }

    @contextmanager
    def running(self, guests: Sequence[int] = GUESTS) -> Iterator["MixedCluster"]:
        """The voters and guests, each of which knows the others."""
        try:
            self.start(*self.voters.values())
            self.start(*(self.guest(number) for number in guests))
            self.wait_until_formed()
            eventually(lambda: self._voters_seen() == set(VOTERS), timeout_s=_START_SECONDS)
            yield self
        finally:
            with ThreadPoolExecutor() as threads:
                list(threads.map(lambda node: node.kill(), [*self.nodes.values(), *self.retired]))

    def start(self, *nodes: BrokerProcess) -> None:
        """Start nodes together: no quorum forms with one of three."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda node: node.start(), nodes))

    def keep_as_controller(self, node_id: int) -> None:
        """Restart a voter without its role of a broker."""
        voter = self.voters[node_id]
        voter.stop()
        del self.nodes[node_id]
        node: BrokerProcess = voter
        if isinstance(voter, KafkaNode):
            voter.roles = "controller"
        else:
            node = ControllerProcess.in_place_of(voter)
        self.retired.append(node)
        node.start()

    def _voters_seen(self) -> set[int]:
        """The voters by the quorum's own account; a voter of Caudal joins after it has become a broker."""
        with suppress(ClientError):
            admin = Admin(ClientSettings(bootstrap_servers=self.bootstrap, properties={"log_level": "0"}))
            return {voter.id for voter in admin.maintenance.quorum().voters}
        return set()

    def wait_until_formed(self) -> None:
        """Return once every running broker lists all running brokers."""
        running = [node for node in self.nodes.values() if node.is_running]
        for node in running:
            eventually(partial(_knows, node, len(running)), timeout_s=_START_SECONDS)


def _knows(node: BrokerProcess, brokers: int) -> bool:
    return len(live_brokers(node.address)) == brokers
