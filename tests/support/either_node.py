"""A node with the listeners that a test asks for: ours, or Apache Kafka's where KAFKA_JARS names one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from core_broker.cluster.bootstrap_file import add_first_user
from core_broker.settings import BrokerSettings
from tests.support.cluster import free_port
from tests.support.kafka import KAFKA_JARS, SMALL_JAVA, KafkaNode
from tests.support.service import ServiceProcess, run_module


class EitherNode(KafkaNode):
    """One node, the same settings for both kinds. PLAINTEXT is there beside the listeners that are asked for."""

    def __init__(
        self,
        directory: Path,
        *,
        listeners: Mapping[str, str],
        settings: Mapping[str, str],
        java_options: Sequence[str] = (),
    ) -> None:
        """`listeners` are security protocols by the names of the listeners."""
        super().__init__(directory, java_options=(*SMALL_JAVA, *java_options))
        protocols = {"PLAINTEXT": "PLAINTEXT", **listeners, "CONTROLLER": "PLAINTEXT"}
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in listeners}
        """Where each listener is."""
        own = {"PLAINTEXT": f"127.0.0.1:{self._port}", **self.addresses}
        written = ",".join(f"{name}://{address}" for name, address in own.items())
        self.settings |= {
            "listeners": f"{written},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": written,
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            **settings,
        }

    def add_first_user(self, name: str, password: str, mechanism: str) -> None:
        """Before the first start."""
        if KAFKA_JARS is not None:
            self._format_options = [f"--add-scram={mechanism}=[name={name},password={password}]"]
        else:
            add_first_user(BrokerSettings(log_dirs=(str(self.data),)), name, password, mechanisms=[mechanism])

    @override
    def _command(self) -> list[str]:
        if KAFKA_JARS is not None:
            return super()._command()
        return run_module("core_broker", {"log.dirs": str(self.data), **self.settings})

    @override
    def _wait_until_ready(self, said: Path, position: int, deadline: float) -> str:
        if KAFKA_JARS is not None:
            return super()._wait_until_ready(said, position, deadline)
        return ServiceProcess._wait_until_ready(self, said, position, deadline)
