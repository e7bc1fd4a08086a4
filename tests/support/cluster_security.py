"""TLS and SASL between all parties of a cluster: nodes among themselves, controllers, and clients.

With CAUDAL_SECURE=1 the nodes of every cluster of ours use it among themselves, and so do the clients of
`tests/support/clients`; what a test connects by itself still does it in plain text.
"""

import atexit
import os
import secrets
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from core_broker.cluster.bootstrap_file import add_first_user
from core_broker.security.sasl.scram import BY_NAME
from core_broker.settings import BrokerSettings
from tests.support.authority import AuthorityFolder

CAUDAL_SECURE: Final = os.environ.get("CAUDAL_SECURE", "") not in ("", "0")
NODE: Final = "node"
"""The user as which nodes log in at each other."""
CLIENT: Final = "client"
"""The user of the tests' own clients, which may do everything."""
SECURE: Final = "SECURE"
"""The listener of clients and brokers."""
CONTROLLER: Final = "CONTROLLER"
SECURE_ADDRESSES: Final[dict[str, str]] = {}
"""With CAUDAL_SECURE=1, where clients log in at the nodes of this process: by their addresses without security."""
_MODULES: Final = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule"}


class ClusterSecurity:
    """One authority, one certificate for each node, and passwords."""

    def __init__(
        self,
        folder: Path,
        *,
        mechanism: str = "PLAIN",
        protocol: str = "SASL_SSL",
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
        others: Sequence[str] = (),
    ) -> None:
        """`hosts` are all names and addresses of nodes, `others` are users that may do nothing."""
        self.folder = folder
        self.authority = AuthorityFolder(folder)
        self.mechanism = mechanism
        self.protocol = protocol
        self.passwords = {name: secrets.token_hex(16) for name in (NODE, CLIENT, *others)}
        self._hosts = hosts

    def key_store(self, name: str) -> Path:
        """The certificate of a node; called again, it renews it in place."""
        return self.authority.issue(name, hosts=self._hosts)

    def of_node(
        self, number: int, listeners: Sequence[str] = (SECURE, CONTROLLER), *, user: str = NODE
    ) -> dict[str, str]:
        """The settings of a node for these listeners; one called PLAINTEXT, too, stays without security."""
        protocols = [f"{name}:{self.protocol}" for name in listeners]
        values = {
            "listener.security.protocol.map": ",".join([*protocols, "PLAINTEXT:PLAINTEXT"]),
            "ssl.keystore.location": str(self.key_store(f"node-{number}")),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trust_store),
            "ssl.truststore.type": "PEM",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{NODE};User:{CLIENT}",
        }
        for name in listeners:
            values |= self._of_listener(name.lower(), user)
        if self.protocol.startswith("SASL"):
            values |= {
                "sasl.mechanism.inter.broker.protocol": self.mechanism,
                "sasl.mechanism.controller.protocol": self.mechanism,
            }
        return values

    def _of_listener(self, name: str, user: str) -> dict[str, str]:
        prefix = f"listener.name.{name}."
        if not self.protocol.startswith("SASL"):
            return {
                prefix + "ssl.client.auth": "required",
                prefix + "ssl.principal.mapping.rules": rf"RULE:^CN=node-[0-9]+$/{NODE}/,RULE:^CN=([^,]+)$/$1/",
            }
        return {
            prefix + "sasl.enabled.mechanisms": self.mechanism,
            f"{prefix}{self.mechanism.lower()}.sasl.jaas.config": self._jaas(user),
        }

    def _jaas(self, user: str) -> str:
        """How a node logs in; with PLAIN it is also the list of those that may log in at it."""
        options = {"username": user, "password": self.passwords[user]}
        if self.mechanism == "PLAIN":
            options |= {f"user_{name}": password for name, password in self.passwords.items()}
        text = " ".join(f'{name}="{value}"' for name, value in options.items())
        return f"org.apache.kafka.common.security.{_MODULES[self.mechanism]} required {text};"

    def prepare(self, data: Path) -> None:
        """Before the first start of a node: with SCRAM no user could log in to create the first one."""
        if self.mechanism not in BY_NAME:
            return
        data.mkdir(parents=True)
        settings = BrokerSettings.parse({"log.dirs": str(data)})
        for name, password in self.passwords.items():
            add_first_user(settings, name, password, mechanisms=[self.mechanism])

    def format_options(self) -> list[str]:
        """The same for a node of Apache Kafka: options of `kafka-storage format`."""
        if self.mechanism not in BY_NAME:
            return []
        users = self.passwords.items()
        return [f"--add-scram={self.mechanism}=[name={name},password={password}]" for name, password in users]

    @property
    def of_client(self) -> dict[str, str]:
        """Settings of a client by librdkafka."""
        found = {"security.protocol": self.protocol, "ssl.ca.location": str(self.authority.trust_store)}
        if self.protocol.startswith("SASL"):
            return found | {
                "sasl.mechanism": self.mechanism,
                "sasl.username": CLIENT,
                "sasl.password": self.passwords[CLIENT],
            }
        own = str(self.key_store(CLIENT))
        return found | {"ssl.certificate.location": own, "ssl.key.location": own}

    def java_properties(self) -> str:
        """Settings of a client in Java."""
        found = {
            "security.protocol": self.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trust_store),
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": (
                f"org.apache.kafka.common.security.{_MODULES[self.mechanism]} required "
                f'username="{CLIENT}" password="{self.passwords[CLIENT]}";'
            ),
        }
        return "".join(f"{key}={value}\n" for key, value in found.items())


@cache
def shared_security() -> ClusterSecurity:
    """One for all clusters of this process, for as long as it runs."""
    folder = TemporaryDirectory(prefix="security-")
    atexit.register(folder.cleanup)
    return ClusterSecurity(Path(folder.name))


def connection(bootstrap: str) -> dict[str, Any]:
    """How a client connects to brokers, by librdkafka's settings: with CAUDAL_SECURE=1 it logs in."""
    secure = [SECURE_ADDRESSES.get(address) for address in bootstrap.split(",")]
    known = [address for address in secure if address is not None]
    if not known:
        return {"bootstrap.servers": bootstrap}
    return {**shared_security().of_client, "bootstrap.servers": ",".join(known)}


def python_connection(bootstrap: str) -> dict[str, Any]:
    """The same by the settings of aiokafka and kafka-python."""
    settings = connection(bootstrap)
    return {"bootstrap_servers": settings["bootstrap.servers"], **for_aiokafka(settings)}


def for_aiokafka(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of librdkafka, as `ClusterSecurity.of_client` has them, for aiokafka."""
    if "security.protocol" not in settings:
        return {}
    return {
        "security_protocol": settings["security.protocol"],
        "ssl_context": ssl.create_default_context(cafile=settings["ssl.ca.location"]),
        "sasl_mechanism": settings["sasl.mechanism"],
        "sasl_plain_username": settings["sasl.username"],
        "sasl_plain_password": settings["sasl.password"],
    }
