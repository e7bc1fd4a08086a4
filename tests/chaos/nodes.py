"""The brokers of a run, of either kind: reached only through a network of ours, paused, and robbed of their disks."""

import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from typing_extensions import override

from tests.chaos.namespaces import NamespaceNetwork
from tests.chaos.network import BROKER, CONTROLLER, ProxyNetwork
from tests.support.broker import BrokerProcess
from tests.support.cluster import ClusterNode
from tests.support.cluster_security import SECURE
from tests.support.kafka import CLUSTER_ID, SMALL_JAVA, KafkaNode
from tests.support.mixed_cluster import FEATURES_WE_LACK
from tests.support.role_cluster import PureBrokerProcess
from tests.support.service import run_module

CAUDAL: Final = "caudal"
KAFKA: Final = "kafka"
Network = ProxyNetwork | NamespaceNetwork
_JAVA: Final = (*SMALL_JAVA, "-Djava.net.preferIPv4Stack=true")
"""The network finds out who connects among sockets of IPv4."""


class ChaosNode(BrokerProcess):
    """A broker that other nodes and clients reach only through a network that can be cut."""

    kind: ClassVar = CAUDAL
    controller_port = 0
    network: Network
    reached_at = ""
    """Where clients and other brokers reach this one."""
    controller_reached_at = ""

    def connect_to(self, network: Network, *, is_controller: bool, is_secure: bool = False) -> None:
        """Be reached through a network only."""
        name = SECURE if is_secure else "PLAINTEXT"
        self.network = network
        self.reached_at = network.advertised(self.node_id, BROKER, self._port)
        listeners = [f"{name}://{network.listener(self.node_id, BROKER, self._port)}"]
        advertised = [f"{name}://{self.reached_at}"]
        if is_controller:
            self.controller_reached_at = network.advertised(self.node_id, CONTROLLER, self.controller_port)
            listeners.append(f"CONTROLLER://{network.listener(self.node_id, CONTROLLER, self.controller_port)}")
            advertised.append(f"CONTROLLER://{self.controller_reached_at}")
        self.settings["listeners"] = ",".join(listeners)
        self.settings["advertised.listeners"] = ",".join(advertised)

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


class CaudalVoter(ChaosNode, ClusterNode):
    """A broker and controller of ours. `program` is the module to run, with arguments."""

    def __init__(self, directory: Path, *, node_id: int, settings: Mapping[str, str], program: Sequence[str]) -> None:
        super().__init__(directory, node_id=node_id, settings=settings)
        self._program = program

    @override
    def _command(self) -> list[str]:
        settings = super()._command()[3:]
        module, *arguments = self._program
        return self.network.command(self.node_id, [*run_module(module, {}, *arguments), *settings])


class CaudalGuest(ChaosNode, PureBrokerProcess):
    """A broker of ours in a quorum of Apache Kafka."""

    def __init__(self, directory: Path, *, node_id: int, settings: Mapping[str, str]) -> None:
        super().__init__(directory, node_id=node_id, settings={**settings, "controller.listener.names": "CONTROLLER"})
        self.node_id = node_id


class KafkaMember(ChaosNode, KafkaNode):
    """A node of Apache Kafka: a voter, or a broker that is a guest."""

    kind: ClassVar = KAFKA

    def __init__(self, directory: Path, *, node_id: int, settings: Mapping[str, str], is_voter: bool) -> None:
        super().__init__(
            directory,
            node_id=node_id,
            settings=settings,
            roles="broker,controller" if is_voter else "broker",
            cluster_id=CLUSTER_ID,
            features=FEATURES_WE_LACK if is_voter else None,
            java_options=_JAVA,
        )
