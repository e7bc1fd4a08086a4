"""A registry whose callers have to log in: at a broker, with tokens of an identity provider, or with certificates."""

import http.server
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import UserScramCredentialAlteration as Alteration
from joserfc.jwk import ECKey, RSAKey
from typing_extensions import override

from tests.support.authority import AuthorityFolder
from tests.support.registry import RegistryProcess
from tests.support.sasl_broker import SaslBroker
from tests.support.sasl_world import key_set, signed_token
from tests.support.service import run_module

CACHE_MS = 300


class SecuredRegistry(RegistryProcess):
    """With https, where certificates are welcome, and beside it http for hostile clients."""

    ready = re.compile(rb"registry ready: listeners=(https://[\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, broker: str, *, keys: str, settings: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = AuthorityFolder(directory)
        self.certificate = self.authority.issue("registry")
        super().__init__(
            directory,
            settings={
                "authentication.method": "BASIC,BEARER,CERTIFICATE",
                "authentication.kafka.bootstrap.servers": broker,
                "authentication.kafka.security.protocol": "SASL_PLAINTEXT",
                "authentication.kafka.sasl.mechanism": "SCRAM-SHA-512",
                "authentication.cache.ttl.ms": str(CACHE_MS),
                "authentication.failures.per.minute": "1000000",
                "authorization.enable": "false",
                "sasl.oauthbearer.jwks.endpoint.url": keys,
                "sasl.oauthbearer.expected.audience": "caudal",
                "sasl.oauthbearer.clock.skew.seconds": "0",
                "ssl.certificate.location": str(self.certificate),
                "ssl.ca.location": str(self.authority.trust_store),
                "ssl.client.authentication": "REQUESTED",
                "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/",
                **(settings or {}),
            },
        )

    @property
    def plain_port(self) -> int:
        """Where it listens without TLS."""
        found = re.findall(r"http://127\.0\.0\.1:(\d+)", (self.directory / "stdout.log").read_text())
        return int(found[-1])

    @override
    def _command(self) -> list[str]:
        listeners = f"https://127.0.0.1:{self._port},http://127.0.0.1:0"
        return run_module("schema_registry", {"listeners": listeners, **self.settings})


class ScramUsers:
    """Adds and removes users of a broker."""

    def __init__(self, broker: SaslBroker) -> None:
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def add(self, user: str, password: str, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512) -> None:
        """Add a user, or give it another password."""
        self._alter(UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode()))

    def remove(self, user: str) -> None:
        """Remove a user."""
        self._alter(UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512))

    def _alter(self, alteration: Alteration) -> None:
        for future in self._admin.alter_user_scram_credentials([alteration]).values():
            future.result(30)


class IdentityProvider:
    """The keys of an identity provider on the web, which may change."""

    def __init__(self, *keys: RSAKey | ECKey) -> None:
        self.url = ""
        self.show(*keys)

    def show(self, *keys: RSAKey | ECKey) -> None:
        """From now on these are the keys."""
        self.shown = key_set(*keys)


@contextmanager
def identity_provider(*keys: RSAKey | ECKey) -> Iterator[IdentityProvider]:
    """An identity provider for as long as the block lasts."""
    provider = IdentityProvider(*keys)

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(provider.shown)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bearer_token(key: RSAKey | ECKey, *, lasts_s: float = 300, **claims: Any) -> str:
    """A token of the identity provider for tom."""
    now = time.time()  # noqa: TID251 - the clock of the identity provider
    algorithm = "RS256" if isinstance(key, RSAKey) else "ES256"
    return signed_token(
        {"sub": "tom", "iat": int(now), "exp": now + lasts_s, "aud": "caudal", **claims}, key, algorithm
    )
