"""A REST proxy whose callers log in, in front of a broker with TLS, users and access rules."""

import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from joserfc.jwk import RSAKey
from typing_extensions import override

from tests.support.authority import AuthorityFolder
from tests.support.every_login import AUDIENCE, ISSUER, EveryLogin
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.sasl_world import signed_token, signing_key
from tests.support.service import run_module
from tests.support.web_login import basic

SERVICE: Final = ("proxy", "secret of the proxy")
"""The user of the proxy itself, which has no rights."""
CACHE_MS: Final = 300
MECHANISM: Final = ScramMechanism.SCRAM_SHA_512
V2: Final = "application/vnd.kafka.v2+json"
V2_JSON: Final = "application/vnd.kafka.json.v2+json"


class SecuredProxy(ProxyProcess):
    """With http for passwords and tokens, and https for certificates."""

    def __init__(
        self,
        directory: Path,
        broker: EveryLogin,
        *,
        registry: str,
        listener: str = "LOGIN",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.authority = AuthorityFolder(directory / "authority")
        super().__init__(
            directory,
            bootstrap=broker.addresses[listener],
            registry=registry,
            settings={
                "client.security.protocol": "SASL_SSL",
                "client.sasl.mechanism": "SCRAM-SHA-512",
                "client.sasl.username": SERVICE[0],
                "client.sasl.password": SERVICE[1],
                "client.ssl.ca.location": str(broker.stores.trust_store),
                "authentication.method": "BASIC,BEARER,CERTIFICATE",
                "authentication.cache.ttl.ms": str(CACHE_MS),
                "authentication.failures.per.minute": "1000000",
                "sasl.oauthbearer.jwks.endpoint.url": (broker.directory / "keys.json").as_uri(),
                "sasl.oauthbearer.expected.audience": AUDIENCE,
                "sasl.oauthbearer.expected.issuer": ISSUER,
                "sasl.oauthbearer.clock.skew.seconds": "0",
                "ssl.certificate.location": str(self.authority.issue("proxy")),
                "ssl.ca.location": str(self.authority.trust_store),
                "ssl.client.authentication": "REQUESTED",
                "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/",
                "kafka.timeout.ms": "20000",
                "consumer.request.timeout.ms": "500",
                **(settings or {}),
            },
        )

    @property
    def tls_url(self) -> str:
        """Where certificates are welcome."""
        found = re.findall(r"https://127\.0\.0\.1:\d+", (self.directory / "stdout.log").read_text())
        return str(found[-1])

    @override
    def _command(self) -> list[str]:
        listeners = f"http://127.0.0.1:{self._port},https://127.0.0.1:0"
        return run_module("rest_proxy", {**self.settings, "listeners": listeners})

    def by_certificate(self, name: str) -> httpx2.Client:
        """A client that shows a certificate."""
        context = ssl.create_default_context(cafile=str(self.authority.trust_store))
        context.load_cert_chain(self.authority.issue(name))
        return httpx2.Client(base_url=self.tls_url, verify=context, timeout=60)


class Users:
    """Users of a broker, their rights and topics, as its administrator."""

    def __init__(self, broker: EveryLogin) -> None:
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def add(self, name: str, password: str) -> None:
        """Add a user, or give it another password."""
        credential = UserScramCredentialUpsertion(name, ScramCredentialInfo(MECHANISM, 4096), password.encode())
        _done(self._admin.alter_user_scram_credentials([credential]))

    def remove(self, name: str) -> None:
        """Remove a user."""
        _done(self._admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, MECHANISM)]))

    def allow(self, name: str, resource: str, operation: str, *, kind: str = "TOPIC", prefixed: bool = False) -> None:
        """Give a user a right."""
        _done(self._admin.create_acls([_binding(name, kind, resource, operation, prefixed=prefixed)]))

    def forbid(self, name: str, resource: str, operation: str, *, kind: str = "TOPIC") -> None:
        """Take the right back."""
        held = _binding(name, kind, resource, operation)
        wanted = AclBindingFilter(
            held.restype,
            held.name,
            held.resource_pattern_type,
            held.principal,
            held.host,
            held.operation,
            held.permission_type,
        )
        _done(self._admin.delete_acls([wanted]))

    def create_topic(self, *names: str) -> None:
        """Topics with a single partition."""
        _done(self._admin.create_topics([NewTopic(name, 1, 1) for name in names]))

    def members(self, group: str) -> list[str]:
        """The client ids of the members of a group."""
        return [member.client_id for member in self._admin.describe_consumer_groups([group])[group].result(30).members]


def _binding(name: str, kind: str, resource: str, operation: str, *, prefixed: bool = False) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    return AclBinding(
        ResourceType[kind],
        resource,
        pattern,
        f"User:{name}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(30)


class Caller:
    """A client of the proxy that logs in."""

    def __init__(self, url: str, headers: Mapping[str, str], cluster_id: str = "") -> None:
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=60)
        self.cluster = f"/v3/clusters/{cluster_id}"

    def ask(self, method: str, path: str, body: Any = None, *, media_type: str = "application/json") -> httpx2.Response:
        """Any request; paths that begin with a colon are those of the cluster."""
        full = path.replace(":", self.cluster, 1) if path.startswith(":") else path
        return self.http.request(method, full, json=body, headers={"content-type": media_type} if body else {})

    def produce(self, topic: str, *values: Any) -> httpx2.Response:
        """Write values in API v2."""
        records = [{"value": value} for value in values or ("x",)]
        return self.ask("POST", f"/topics/{topic}", {"records": records}, media_type=V2_JSON)

    def open_instance(self, group: str, name: str, topics: Sequence[str] = ()) -> httpx2.Response:
        """Create a consumer instance, and let it subscribe."""
        body = {"name": name, "format": "json", "auto.offset.reset": "earliest"}
        created = self.ask("POST", f"/consumers/{group}", body, media_type=V2)
        if topics and created.is_success:
            path = f"/consumers/{group}/instances/{name}/subscription"
            return self.ask("POST", path, {"topics": list(topics)}, media_type=V2)
        return created

    def poll(self, group: str, name: str, *, timeout_ms: int = 1000) -> httpx2.Response:
        """The next records of an instance."""
        return self.ask("GET", f"/consumers/{group}/instances/{name}/records?timeout={timeout_ms}")

    def close(self) -> None:
        """Close all connections."""
        self.http.close()


class AccessWorld:
    """Broker, registry and proxy, and clients of it."""

    def __init__(self, broker: EveryLogin, proxy: SecuredProxy) -> None:
        self.broker = broker
        self.proxy = proxy
        self.users = Users(broker)
        self._clients: list[Caller] = []
        self.cluster_id = ""

    def user(self, name: str, password: str | None = None) -> Caller:
        """A client that logs in with a password."""
        return self._client({"authorization": basic(name, password or f"{name} secret")})

    def with_token(self, token: str) -> Caller:
        """A client that logs in with a token."""
        return self._client({"authorization": f"Bearer {token}"})

    def anyone(self) -> Caller:
        """A client that does not log in."""
        return self._client({})

    def _client(self, headers: Mapping[str, str]) -> Caller:
        client = Caller(self.proxy.url, headers, self.cluster_id)
        self._clients.append(client)
        return client

    def gauge(self, name: str) -> int:
        """A gauge of the proxy."""
        text = self.user("admin").http.get("/metrics").text
        found = re.search(rf"^caudal_rest_proxy_{name} (\d+)", text, re.MULTILINE)
        assert found is not None, name
        return int(found[1])

    def close(self) -> None:
        """Close all clients."""
        for client in self._clients:
            client.close()


def token_of(name: str, *, lasts_s: float = 300, **claims: Any) -> str:
    """A token of the identity provider that broker and proxy trust."""
    key = signing_key("key1")
    assert isinstance(key, RSAKey)
    now = time.time()  # noqa: TID251 - the clock of the identity provider
    known = {"sub": name, "iat": int(now), "exp": now + lasts_s, "aud": AUDIENCE, "iss": ISSUER}
    return signed_token({**known, **claims}, key)


def proxy_client(url: str, authorization: str) -> httpx2.Client:
    """A client with this Authorization header."""
    return httpx2.Client(base_url=url, headers={"authorization": authorization}, timeout=60)


@contextmanager
def access_world(folder: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[AccessWorld]:
    """Such a world while the block runs; `admin` may do everything."""
    with EveryLogin(folder / "broker") as broker, RegistryProcess(folder / "registry") as registry:
        users = Users(broker)
        users.add(*SERVICE)
        users.add("admin", "admin secret")
        with SecuredProxy(folder / "proxy", broker, registry=registry.url, settings=settings) as proxy:
            world = AccessWorld(broker, proxy)
            try:
                found = world.user("admin").http.get("/v3/clusters")
                assert found.is_success, found.text
                world.cluster_id = found.json()["data"][0]["cluster_id"]
                yield world
                assert proxy.is_running
                assert "Traceback" not in proxy.log_text()
            finally:
                world.close()
