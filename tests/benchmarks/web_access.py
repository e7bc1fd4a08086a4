"""What logins cost the HTTP services: processor time of a cheap request by method of login, beside none."""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.http_load import request, send_all
from tests.benchmarks.measure import Row, Sizes, Stopwatch, percentile
from tests.support.authority import AuthorityFolder
from tests.support.connect import ConnectProcess
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess, register
from tests.support.sasl_broker import SaslBroker
from tests.support.sasl_world import signing_key
from tests.support.secured_registry import ScramUsers, bearer_token, identity_provider
from tests.support.service import ServiceProcess
from tests.support.web_login import basic

_CONNECTIONS: Final = 8
_WARM: Final = 100
_KEY: Final = signing_key("key")
_STORAGE: Final = {f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")}

Settings = Mapping[str, str]
Start = Callable[[Path, Settings], AbstractContextManager[ServiceProcess]]


def web_access(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Each service without logins, and with them."""
    mechanisms = {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    users = [f"user{number}" for number in range(max(10, sizes.registry_requests // 200))]
    authority = AuthorityFolder(directory / "authority")
    with identity_provider(_KEY) as provider, SaslBroker(directory / "broker", settings=mechanisms) as broker:
        cluster = ScramUsers(broker)
        for user in users:
            cluster.add(user, "secret")
        tls = {
            "listeners": "http://127.0.0.1:0,https://127.0.0.1:0",
            "ssl.certificate.location": str(authority.issue("service")),
        }
        logins = {
            "authentication.method": "BASIC,BEARER,CERTIFICATE",
            "authentication.kafka.bootstrap.servers": broker.external,
            "authentication.kafka.security.protocol": "SASL_PLAINTEXT",
            "authentication.kafka.sasl.mechanism": "SCRAM-SHA-512",
            "authentication.cache.ttl.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.url": provider.url,
            "sasl.oauthbearer.expected.audience": "caudal",
            "ssl.ca.location": str(authority.trust_store),
            "ssl.client.authentication": "REQUESTED",
        }
        known = [basic(user, "secret") for user in users]
        for service in _services(broker.bootstrap):
            bench = _Bench(service, directory / service.name, authority, count=sizes.registry_requests)
            yield from bench.without_logins(tls)
            yield from bench.with_logins({**tls, **logins, **service.settings}, known)


@dataclass(frozen=True, slots=True)
class _Service:
    name: str
    start: Start
    path: str
    """What is asked for: something that the service has in memory."""
    settings: Settings
    prepare: Callable[[ServiceProcess], object] = lambda _: None


def _services(bootstrap: str) -> list[_Service]:
    def registry(folder: Path, settings: Settings) -> RegistryProcess:
        return RegistryProcess(folder, settings=settings)

    def proxy(folder: Path, settings: Settings) -> ProxyProcess:
        return ProxyProcess(folder, bootstrap=bootstrap, registry="http://127.0.0.1:1", settings=settings)

    def connect(folder: Path, settings: Settings) -> ConnectProcess:
        return ConnectProcess(folder, bootstrap=bootstrap, settings={"task.processes": "0", **_STORAGE, **settings})

    no_rules = {"authorization.enable": "false"}
    return [
        _Service("registry", registry, "/schemas/ids/1", no_rules, lambda process: register(process.address, "orders")),
        _Service("rest-proxy", proxy, "/", {}),
        _Service("connect", connect, "/", no_rules),
    ]


class _Bench:
    """The rows of one service."""

    def __init__(self, service: _Service, folder: Path, authority: AuthorityFolder, *, count: int) -> None:
        self._service = service
        self._folder = folder
        self._authority = authority
        self._count = count
        self._base: dict[bool, float] = {}
        """µs without a login, over http and over https."""

    def without_logins(self, settings: Settings) -> Iterator[Row]:
        with self._service.start(self._folder, settings) as process:
            self._service.prepare(process)
            plain = [self._get()] * self._count
            yield self._row(process, "none", plain, "http")
            yield self._row(process, "none, encrypted", plain, "https", tls=self._trusting())

    def with_logins(self, settings: Settings, known: Sequence[str]) -> Iterator[Row]:
        token, count = f"Bearer {bearer_token(_KEY)}", self._count
        tokens = [f"Bearer {bearer_token(_KEY, number=number)}" for number in range(max(10, count // 20))]
        shown = self._trusting(self._authority.issue("anna"))
        with self._service.start(self._folder, settings) as process:
            checked = "SCRAM-SHA-512 at a broker over a new connection, 4096 iterations"
            logins = [self._get(login) for login in known]
            yield self._row(process, "password, first", logins, checked, connections=1, is_warm=False)
            yield self._row(process, "password, remembered", [self._get(known[0])] * count, "http")
            how = "RS256, 2048 bits: a signature is checked each time"
            yield self._row(process, "token, first", [self._get(one) for one in tokens], how, is_warm=False)
            yield self._row(process, "token, remembered", [self._get(token)] * count, "http")
            yield self._row(process, "certificate, same connection", [self._get()] * count, "https", tls=shown)
            for what, login, tls in (("token", token, self._trusting()), ("certificate", None, shown)):
                new = [self._get(login)] * max(10, count // 100)
                how = "https, TLS 1.3, EC keys, a handshake each time"
                yield self._row(process, f"{what}, new connections", new, how, tls=tls, connections=0)

    def _get(self, authorization: str | None = None) -> bytes:
        return request("GET", self._service.path, accept="application/json", authorization=authorization)

    def _trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._authority.trust_store))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def _row(
        self,
        process: ServiceProcess,
        what: str,
        requests: Sequence[bytes],
        how: str,
        *,
        tls: ssl.SSLContext | None = None,
        connections: int = _CONNECTIONS,
        is_warm: bool = True,
    ) -> Row:
        """Without connections, each request gets one of its own."""
        url = _urls(process)["http" if tls is None else "https"]
        if is_warm:
            send_all(url, requests[:_WARM], connections=connections or 1, tls=tls)
        batches = [[one] for one in requests] if not connections else [requests]
        with Stopwatch(process.pid) as watch:
            loads = [send_all(url, batch, connections=connections or 1, tls=tls) for batch in batches]
        assert {status for load in loads for status in load.statuses} == {b"200"}, loads[0].statuses
        cost = watch.cpu_seconds / len(requests) * 1e6
        base = self._base.setdefault(tls is not None, cost)
        wait_ms = percentile([wait for load in loads for wait in load.waits], 0.5) * 1000
        result = f"{cost:.0f} µs CPU each, {cost - base:+.0f} µs, {cost / base:.2f} times none, p50 {wait_ms:.2f} ms"
        asked = f"GET {self._service.path}, {connections or 'new'} connections, {len(requests)} requests"
        return Row(what=f"{self._service.name}, login: {what}", result=result, how=f"{how}; {asked}; {watch.note()}")


def _urls(process: ServiceProcess) -> dict[str, str]:
    """The addresses of its last start, by their schemes."""
    text = (process.directory / "stdout.log").read_text()
    return {found[1]: found[0] for found in re.finditer(r"(https?)://127\.0\.0\.1:\d+", text)}
