"""A broker with an encrypted listener beside its plain one, and the ways to speak to it."""

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from tests.support.certificates import Authority, Identity
from tests.support.either_node import EitherNode


class TlsBroker(EitherNode):
    """The listener is called EXTERNAL; settings without a prefix are for it alone."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority()
        self.trusted = self.authority.save(directory / "authority.pem")
        self.key_store = self.authority.issue().save(directory / "broker.pem")
        stores = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_store),
            "ssl.truststore.type": "PEM",
        }
        super().__init__(directory, listeners={"EXTERNAL": "SSL"}, settings={**stores, **(settings or {})})

    @property
    def tls_address(self) -> str:
        """Where clients with TLS connect to."""
        return self.addresses["EXTERNAL"]

    @property
    def tls_endpoint(self) -> tuple[str, int]:
        """The same as host and port."""
        host, _, port = self.tls_address.rpartition(":")
        return host, int(port)

    def client_settings(self, identity: Identity | None = None) -> dict[str, str]:
        """Settings of librdkafka."""
        settings = {
            "bootstrap.servers": self.tls_address,
            "security.protocol": "ssl",
            "ssl.ca.pem": self.authority.pem,
        }
        if identity is not None:
            settings |= {"ssl.certificate.pem": identity.chain_pem, "ssl.key.pem": identity.key_pem()}
        return settings

    def client_context(self, identity: Identity | None = None) -> ssl.SSLContext:
        """A context for clients in Python."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        if identity is not None:
            path = identity.save(self.directory / f"client-{identity.certificate.serial_number}.pem")
            context.load_cert_chain(path)
        return context

    def connect(
        self,
        context: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        *,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLSocket:
        """A connection after its handshake; `session` is one to be resumed."""
        sock = socket.create_connection(self.tls_endpoint, timeout=20)
        return (context or self.client_context()).wrap_socket(sock, server_hostname=host, session=session)
