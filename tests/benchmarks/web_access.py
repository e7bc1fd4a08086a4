"""What logins cost an HTTP service: processor time of a request that is answered from memory, by method of login."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.http_load import request, send_all
from tests.benchmarks.measure import Row, Sizes, Stopwatch, percentile
from tests.support.registry import RegistryProcess
from tests.support.sasl_broker import SaslBroker
from tests.support.sasl_world import signing_key
from tests.support.secured_registry import ScramUsers, bearer_token, identity_provider
from tests.support.web_login import basic

_CONNECTIONS: Final = 8
_KEY: Final = signing_key("key")
_USER: Final = basic("anna", "secret")


def web_access(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """A registry without logins, one with them, and one that remembers no password."""
    count = sizes.registry_requests
    mechanisms = {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    with identity_provider(_KEY) as provider, SaslBroker(directory / "broker", settings=mechanisms) as broker:
        ScramUsers(broker).add("anna", "secret")
        settings = {
            "authentication.method": "BASIC,BEARER",
            "authentication.kafka.bootstrap.servers": broker.external,
            "authentication.kafka.security.protocol": "SASL_PLAINTEXT",
            "authentication.kafka.sasl.mechanism": "SCRAM-SHA-512",
            "authorization.enable": "false",
            "sasl.oauthbearer.jwks.endpoint.url": provider.url,
            "sasl.oauthbearer.expected.audience": "caudal",
        }
        folder = directory / "registry"
        with RegistryProcess(folder) as process:
            target = f"/schemas/ids/{process.register('orders').id}"
            yield _row(process, "no login", [request("GET", target)] * count, "answered from memory")
        with RegistryProcess(folder, settings=settings) as process:
            token = f"Bearer {bearer_token(_KEY)}"
            yield _row(process, "password, remembered", [_get(target, _USER)] * count, "the same, with BASIC")
            yield _row(process, "token, remembered", [_get(target, token)] * count, "the same, with BEARER")
            tokens = [_get(target, f"Bearer {bearer_token(_KEY, number=number)}") for number in range(count // 20)]
            yield _row(process, "token, new each time", tokens, "RS256, 2048 bits: a signature is checked each time")
        with RegistryProcess(folder, settings={**settings, "authentication.cache.ttl.ms": "0"}) as process:
            logins = [_get(target, _USER)] * max(10, count // 100)
            how = "SCRAM-SHA-512 at a broker over a new connection, 4096 iterations; requests at once share a login"
            yield _row(process, "password, checked at the cluster", logins, how, connections=1)


def _get(target: str, authorization: str) -> bytes:
    return request("GET", target, authorization=authorization)


def _row(
    process: RegistryProcess, what: str, requests: Sequence[bytes], how: str, *, connections: int = _CONNECTIONS
) -> Row:
    send_all(process.url, requests[:100], connections=connections)
    with Stopwatch(process.pid) as watch:
        load = send_all(process.url, requests, connections=connections)
    assert set(load.statuses) == {b"200"}, load.statuses
    cost = watch.cpu_seconds / len(requests) * 1e6
    rate, wait_ms = len(requests) / load.seconds, percentile(load.waits, 0.5) * 1000
    result = f"{cost:.0f} µs CPU each, {rate:,.0f}/s, p50 {wait_ms:.1f} ms"
    how = f"{how}; GET /schemas/ids, {connections} connections; {watch.note()}"
    return Row(what=f"login: {what}", result=result, how=how)
