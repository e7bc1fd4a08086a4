"""Brokers with a plain listener, one with TLS and one with logins: ours, and Apache Kafka with the same settings."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from typing_extensions import override

from tests.support.broker import BrokerProcess
from tests.support.certificates import Authority
from tests.support.cluster import free_port
from tests.support.kafka import KafkaNode

_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class SecuredBroker(BrokerProcess):
    """Ours."""

    label = ""
    """What to add to the name of a figure."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.tls_address = f"127.0.0.1:{free_port()}"
        self.login_address = f"127.0.0.1:{free_port()}"
        self._authority = Authority()
        security = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listener.name.tls.ssl.keystore.type": "PEM",
            "listener.name.tls.ssl.keystore.location": str(self._authority.issue().save(directory / "broker.pem")),
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.login.scram-sha-256.sasl.jaas.config": _SCRAM,
        }
        super().__init__(directory, settings={**(settings or {}), **security})

    def client_context(self) -> ssl.SSLContext:
        """A context for clients in Python."""
        return ssl.create_default_context(cadata=self._authority.pem)

    def warm_up(self, count: int) -> int:
        """How many requests of a run of so many to send before it."""
        return min(count, 2)

    def listeners(self, plain_port: int) -> str:
        """The listeners of clients."""
        return f"PLAINTEXT://127.0.0.1:{plain_port},TLS://{self.tls_address},LOGIN://{self.login_address}"

    @override
    def _command(self) -> list[str]:
        self.settings["listeners"] = self.listeners(self._port)
        return super()._command()


class SecuredKafka(SecuredBroker, KafkaNode):
    """Apache Kafka."""

    label = ", Apache Kafka"

    @override
    def warm_up(self, count: int) -> int:
        return count  # until its code is compiled

    @override
    def _command(self) -> list[str]:
        controllers = f"CONTROLLER://127.0.0.1:{self.controller_port}"
        self.settings["listeners"] = f"{self.listeners(self._port)},{controllers}"
        return KafkaNode._command(self)
