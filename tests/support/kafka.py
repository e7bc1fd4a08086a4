"""Apache Kafka itself behind the same handle as our broker: what our tests demand must be what Kafka does.

Set KAFKA_JARS to a folder with the jars of a Kafka release (its `libs`), and the tests of `tests/conformance` run
against that Kafka instead. A test that Kafka fails is wrong. Tests of the REST proxy, Connect and the tools can be run
against it, too; with KAFKA_NODES=3 it is a cluster, whose nodes hear of what is new one after the other.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

import pytest
from typing_extensions import override

from tests.support.broker import BrokerProcess
from tests.support.cluster import CAUDAL_NODES, ClusterProcess, free_port, replicated, wait_until_formed
from tests.support.service import READY_TIMEOUT_S, ServiceFailed

KAFKA_JARS: Final = os.environ.get("KAFKA_JARS")
KAFKA_RELEASES: Final = os.environ.get("CAUDAL_KAFKA_RELEASES")
"""A folder with one folder of jars for each of several releases, named by its version: see `make test-mixed`."""
KAFKA_NODES: Final = int(os.environ.get("KAFKA_NODES", "1"))
OURS_ALONE: Final = pytest.mark.skipif(KAFKA_JARS is not None, reason="about what only Caudal says or does")
"""The mark of a test that Apache Kafka need not pass."""
_OUR_OWN: Final = {"metrics.listener"}
SMALL_JAVA: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For tests, whose nodes live for minutes: little memory, and compiled quickly rather than well."""
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"


def stored_cluster_id(data: Path) -> str:
    """The id that the `meta.properties` of a node of either kind has."""
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]


def start_class() -> type[BrokerProcess]:
    """What to start where a broker is asked for."""
    if KAFKA_JARS is not None:
        return KafkaProcess
    return BrokerProcess if CAUDAL_NODES == 1 else ClusterProcess


class KafkaNode(BrokerProcess):
    """One Kafka node, by default broker and controller in one."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        node_id: int = 1,
        roles: str = "broker,controller",
        cluster_id: str = CLUSTER_ID,
        features: Mapping[str, int] | None = None,
        format_options: Sequence[str] = (),
        java_options: Sequence[str] = ("-Xmx700m",),
        jars: str | None = KAFKA_JARS,
    ) -> None:
        """`format_options` go to `kafka-storage format`: who votes first, where that is not in the settings."""
        super().__init__(directory, settings=settings)
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.roles = roles
        self._features = features or {}
        self._format_options = format_options
        self._java = ["java", *java_options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", f"{jars}/*"]
        self._port = free_port()
        self.controller_port = free_port()
        self.quorum = {"controller.quorum.voters": self.voter}
        """The settings that say where the controllers are."""

    @property
    def voter(self) -> str:
        """The node as a member of the quorum of controllers."""
        return f"{self.node_id}@127.0.0.1:{self.controller_port}"

    @override
    def _command(self) -> list[str]:
        properties = self.directory / "server.properties"
        escaped = {key: value.replace("\\", "\\\\") for key, value in self._properties().items()}
        properties.write_text("".join(f"{key}={value}\n" for key, value in escaped.items()))
        if not (self.data / "meta.properties").exists():
            tool = [*self._java, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(properties)]
            levels = [word for name, level in self._features.items() for word in ("--feature", f"{name}={level}")]
            subprocess.run([*tool, *levels, *self._format_options], check=True, capture_output=True)
        return [*self._java, "kafka.Kafka", str(properties)]

    def _properties(self) -> dict[str, str]:
        ours = {key: value for key, value in self.settings.items() if key not in _OUR_OWN}
        listeners = {
            "broker": f"PLAINTEXT://127.0.0.1:{self._port}",
            "controller": f"CONTROLLER://127.0.0.1:{self.controller_port}",
        }
        return {
            "node.id": str(self.node_id),
            "process.roles": self.roles,
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners[role] for role in self.roles.split(",")),
            "log.dirs": str(self.data),
            **self.quorum,
            **ours,
        }

    @override
    def _wait_until_ready(self, said: Path, position: int, deadline: float) -> str:
        port = self._port if "broker" in self.roles else self.controller_port
        while time.monotonic() < deadline + READY_TIMEOUT_S:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return f"127.0.0.1:{port}"
            if not self.is_running:
                break
        self.kill()
        raise ServiceFailed(f"Kafka did not start\n{self.log_tail()}")


class KafkaProcess(KafkaNode):
    """Kafka: one node, and others that live and die with it where a cluster is wanted."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        wanted = {**replicated(KAFKA_NODES), **(settings or {})}
        super().__init__(directory, settings=wanted, java_options=SMALL_JAVA)
        self._others = [
            KafkaNode(directory / f"node-{number}", settings=wanted, node_id=number, java_options=SMALL_JAVA)
            for number in range(2, KAFKA_NODES + 1)
        ]
        for node in [self, *self._others]:
            node.quorum = {"controller.quorum.voters": ",".join(each.voter for each in [self, *self._others])}

    @property
    @override
    def nodes(self) -> Sequence[BrokerProcess]:
        return [self, *self._others]

    @override
    def start(self) -> Self:
        with ThreadPoolExecutor(KAFKA_NODES) as threads:
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
            node.kill()  # alone they would wait for a quorum
