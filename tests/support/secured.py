"""A broker with TLS, users and rules: Apache Kafka or ours, by the same settings."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import trustme
from cryptography.hazmat.primitives import serialization

from tests.support.broker import BrokerProcess
from tests.support.cluster import free_port
from tests.support.kafka import SMALL_JAVA, KafkaNode

ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
_LISTENER = "sasl_ssl"


class Certificates:
    """A CA, and what a broker at 127.0.0.1 shows; all as PEM files."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.ca_file = folder / "ca.pem"
        self.ca.cert_pem.write_to_path(self.ca_file)
        self.broker_file = folder / "broker.pem"
        self.issue(self.broker_file, "127.0.0.1")

    def issue(self, file: Path, name: str) -> None:
        """Write a key, in the form that Java reads, and its certificate into a file."""
        issued = self.ca.issue_cert(name)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(text + b"".join(part.bytes() for part in issued.cert_chain_pems))


def client_properties(
    certificates: Certificates, user: str = ADMIN, password: str = ADMIN_PASSWORD, mechanism: str = "PLAIN"
) -> dict[str, str]:
    """What a client needs to log in, as Kafka's own tools take it."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    login = f'org.apache.kafka.common.security.{module}LoginModule required username="{user}" password="{password}";'
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_file),
    }


def broker_settings(certificates: Certificates, *, port: int, plain_port: int, controller_port: int) -> dict[str, str]:
    """Settings of a broker that asks for TLS and a login, and obeys rules."""
    plain = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="{ADMIN}" password="{ADMIN_PASSWORD}" user_{ADMIN}="{ADMIN_PASSWORD}";'
    )
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "listeners": f"SASL_SSL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{plain_port}"
        f",CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"SASL_SSL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{plain_port}",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"listener.name.{_LISTENER}.plain.sasl.jaas.config": plain,
        f"listener.name.{_LISTENER}.scram-sha-256.sasl.jaas.config": scram,
        f"listener.name.{_LISTENER}.scram-sha-512.sasl.jaas.config": scram,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker_file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_file),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """A properties file."""
    escaped = {key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in properties.items()}
    path.write_text("".join(f"{key}={value}\n" for key, value in escaped.items()))
    return path


class Secured(Protocol):
    """A broker with a listener for logins, and one without."""

    plain_port: int

    @property
    def address(self) -> str: ...


class SecuredBroker(BrokerProcess):
    """Caudal's broker with TLS, users and rules."""

    ready = re.compile(rb"ready:?.*?SASL_SSL://([\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        super().__init__(directory, settings={"metrics.listener": "http://127.0.0.1:0"})
        self.plain_port = free_port()
        ports = {"port": free_port(), "plain_port": self.plain_port, "controller_port": free_port()}
        self.settings.update(broker_settings(certificates, **ports))
        self.settings["controller.listener.names"] = "CONTROLLER"


class SecuredKafka(KafkaNode):
    """Apache Kafka with TLS, users and rules."""

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        super().__init__(directory, java_options=SMALL_JAVA)
        self.plain_port = free_port()
        self.settings.update(
            broker_settings(
                certificates, port=self._port, plain_port=self.plain_port, controller_port=self.controller_port
            )
        )
