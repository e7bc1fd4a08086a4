"""The brokers of a run, of either kind: reached only through proxies, paused, and robbed of their disks."""

import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from typing_extensions import override

from tests.chaos.network import BROKER, CONTROLLER, Network
from tests.support.broker import BrokerProcess
from tests.support.cluster import ClusterNode
from tests.support.kafka import CLUSTER_ID, SMALL_JAVA, KafkaNode
from tests.support.mixed_cluster import FEATURES_WE_LACK
from tests.support.role_cluster import PureBrokerProcess
from tests.support.service import run_module

CAUDAL: Final = "caudal"
KAFKA: Final = "kafka"
_JAVA: Final = (*SMALL_JAVA, "-Djava.net.preferIPv4Stack=true")
"""The network finds out who connects among sockets of IPv4."""


class ChaosNode(BrokerProcess):
    """A broker that other nodes and clients reach only through its proxies."""

    kind: ClassVar = CAUDAL
    controller_port = 0
    proxy_port = 0
    controller_proxy_port = 0

    def hide_behind(self, network: Network, *, is_controller: bool) -> None:
        """Advertise proxies instead of the node's own ports."""
        self.proxy_port = network.listen(self.node_id, self._port, BROKER)
        advertised = [f"PLAINTEXT://127.0.0.1:{self.proxy_port}"]
        if is_controller:
            self.controller_proxy_port = network.listen(self.node_id, self.controller_port, CONTROLLER)
            advertised.append(f"CONTROLLER://127.0.0.1:{self.controller_proxy_port}")
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
        return [*run_module(module, {}, *arguments), *settings]


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
