"""A cluster of brokers, each a process of its own, which tests kill, pause and start again.

With CAUDAL_NODES=3 the tests of `tests/conformance` run against such a cluster instead of a single broker.
"""

import os
import random
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Self

from typing_extensions import override

from tests.support.broker import BrokerProcess
from tests.support.cluster_security import CAUDAL_SECURE, SECURE, SECURE_ADDRESSES, ClusterSecurity, shared_security
from tests.support.patience import eventually
from tests.support.routing import live_brokers
from tests.support.service import READY_TIMEOUT_S, run_module

_PORTS: Final = (10_000, 32_768)
_given_ports: set[int] = set()

CAUDAL_NODES: Final = int(os.environ.get("CAUDAL_NODES", "1"))

FAST_FAILOVER: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.lag.time.max.ms": "5000",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
"""Settings with which a dead broker is noticed within seconds."""


class ClusterNode(BrokerProcess):
    """One broker and controller of a cluster.

    With `security` all its listeners have it. Otherwise its clients have none; with CAUDAL_SECURE=1 the nodes do.
    """

    def __init__(
        self, directory: Path, *, node_id: int, settings: Mapping[str, str], security: ClusterSecurity | None = None
    ) -> None:
        super().__init__(directory, settings=settings)
        self.node_id = node_id
        self._port = free_port()
        self.controller_port = free_port()
        self._secure_port = free_port()
        self._listeners = ["PLAINTEXT" if security is None else SECURE]
        if security is None and CAUDAL_SECURE:
            security = shared_security()
            self._listeners.append(SECURE)
            SECURE_ADDRESSES[f"127.0.0.1:{self._port}"] = f"127.0.0.1:{self._secure_port}"
        if security is not None:
            own = security.of_node(node_id)
            self.settings = {"inter.broker.listener.name": SECURE, **own, **self.settings}
            if "PLAINTEXT" in self._listeners:
                users = [own["super.users"], self.settings["super.users"], "User:ANONYMOUS"]
                self.settings["super.users"] = ";".join(users)
        self._security = security

    @override
    def launch(self) -> None:
        if self._security is not None and not self.data.exists():
            self._security.prepare(self.data)
        super().launch()

    @override
    def _command(self) -> list[str]:
        address = "127.0.0.1"
        # The first is the one that clients without security use.
        ports = (self._port, self._secure_port)
        listeners = [f"{name}://{address}:{port}" for name, port in zip(self._listeners, ports, strict=False)]
        settings = {
            "node.id": str(self.node_id),
            "listeners": ",".join([*listeners, f"CONTROLLER://{address}:{self.controller_port}"]),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            **self.settings,
        }
        return run_module("core_broker", settings)


class BrokerCluster:
    """Brokers 1 to N. The first forms the cluster, the others join it and become voters."""

    def __init__(
        self,
        directory: Path,
        *,
        size: int = 3,
        settings: Mapping[str, str] | None = None,
        security: ClusterSecurity | None = None,
    ) -> None:
        common = {**FAST_FAILOVER, "controller.quorum.auto.join.enable": "true", **(settings or {})}
        self._security = security
        self.nodes: dict[int, ClusterNode] = {
            number: ClusterNode(directory / f"broker-{number}", node_id=number, settings=common, security=security)
            for number in range(1, size + 1)
        }
        first = self.nodes[1]
        for node in list(self.nodes.values())[1:]:
            node.settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{first.controller_port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda node: node.kill(), self.nodes.values()))

    def __iter__(self) -> Iterator[ClusterNode]:
        return iter(self.nodes.values())

    def __getitem__(self, node_id: int) -> ClusterNode:
        return self.nodes[node_id]

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self)

    @property
    def connection(self) -> dict[str, str]:
        """How clients connect: settings of librdkafka."""
        return {"bootstrap.servers": self.bootstrap, **(self._security.of_client if self._security else {})}

    def start(self, numbers: Sequence[int] | None = None) -> None:
        """Start brokers, all by default, and wait until each is ready and votes.

        Before that, the loss of one broker could leave the others without a quorum.
        """
        chosen = [self.nodes[number] for number in numbers or self.nodes]
        with ThreadPoolExecutor(len(chosen)) as threads:
            list(threads.map(lambda node: node.start(), chosen))
        joined = [node for node in chosen if node.node_id != 1]
        eventually(lambda: all("is a voter of the metadata quorum" in node.log_text() for node in joined))


def replicated(brokers: int) -> dict[str, str]:
    """Settings with which every topic has a replica on every broker."""
    return {
        "default.replication.factor": str(brokers),
        "offsets.topic.replication.factor": str(brokers),
        "transaction.state.log.replication.factor": str(brokers),
        "transaction.state.log.min.isr": str(min(brokers, 2)),
    }


class ClusterProcess(ClusterNode):
    """The first broker of a cluster, and others that live and die with it, behind the handle of a single broker."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None, size: int = CAUDAL_NODES) -> None:
        wanted = {**replicated(size), "controller.quorum.auto.join.enable": "true", **(settings or {})}
        super().__init__(directory, node_id=1, settings=wanted)
        self._others = [
            ClusterNode(directory / f"node-{number}", node_id=number, settings=wanted) for number in range(2, size + 1)
        ]
        for node in self._others:
            node.settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{self.controller_port}"

    @property
    @override
    def nodes(self) -> Sequence[ClusterNode]:
        return [self, *self._others]

    @override
    def start(self) -> Self:
        with ThreadPoolExecutor(len(self._others)) as threads:
            others = [threads.submit(node.start) for node in self._others if not node.is_running]
            super().start()
            for other in others:
                other.result()
        wait_until_formed(self)
        return self

    @override
    def _end(self, how: signal.Signals) -> None:
        super()._end(how)
        for node in self._others:
            node.kill()  # a controlled shutdown would need a quorum


def wait_until_formed(cluster: BrokerProcess) -> None:
    """Return once every broker of a cluster lists all of them."""
    for node in cluster.nodes:
        eventually(partial(_knows, node, len(cluster.nodes)), timeout_s=READY_TIMEOUT_S)


def _knows(node: BrokerProcess, brokers: int) -> bool:
    return node.is_running and len(live_brokers(node.address)) == brokers


def free_port() -> int:
    """A port that nothing listens on, and that is given once.

    It is below those that the system gives to connections: one of them could have it when its broker starts again.
    """
    while True:
        port = random.SystemRandom().randrange(*_PORTS)
        if port in _given_ports:
            continue
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            _given_ports.add(port)
            return port
