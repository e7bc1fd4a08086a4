import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.errors import BrokerError
from core_broker.server.metrics_tls import metrics_tls
from core_broker.service.metrics import MetricsServer
from core_broker.settings import BrokerSettings
from tests.support.authority import AuthorityFolder


@pytest.fixture
def authority(tmp_path: Path) -> AuthorityFolder:
    return AuthorityFolder(tmp_path / "authority")


@pytest.fixture
def server(authority: AuthorityFolder) -> Iterator[MetricsServer]:
    settings = BrokerSettings.parse(
        {
            "metrics.listener": "https://127.0.0.1:0",
            "ssl.keystore.location": str(authority.issue("broker")),
            "ssl.truststore.location": str(authority.trust_store),
        }
    )
    with MetricsServer(settings.metrics_listener, collect=lambda: (), tls=metrics_tls(settings)) as running:
        yield running


def health(server: MetricsServer, authority: AuthorityFolder, certificate: Path | None) -> bytes:
    context = ssl.create_default_context(cafile=str(authority.trust_store))
    if certificate is not None:
        context.load_cert_chain(certificate)
    assert server.url is not None
    with urllib.request.urlopen(server.url.replace("/metrics", "/health"), timeout=10, context=context) as answer:
        found: bytes = answer.read()
    return found


def test_metrics_are_read_with_a_certificate_of_the_authority(
    server: MetricsServer, authority: AuthorityFolder
) -> None:
    assert server.url is not None
    assert server.url.startswith("https://127.0.0.1:")
    assert b"ok" in health(server, authority, authority.issue("prometheus"))


def test_nobody_else_gets_an_answer_and_the_page_stays_up(
    server: MetricsServer, authority: AuthorityFolder, tmp_path: Path
) -> None:
    stranger = AuthorityFolder(tmp_path / "other").issue("prometheus")
    for certificate in (None, stranger, authority.issue("late", has_expired=True)):
        with pytest.raises(OSError, match="alert|reset|EOF|closed|Broken"):
            health(server, authority, certificate)
    assert server.url is not None
    with pytest.raises(OSError, match="."):
        urllib.request.urlopen(server.url.replace("https", "http"), timeout=10)
    assert b"ok" in health(server, authority, authority.issue("prometheus"))


def test_a_renewed_certificate_is_shown_and_one_that_cannot_be_used_is_not(
    server: MetricsServer, authority: AuthorityFolder
) -> None:
    assert server.url is not None
    client = authority.issue("prometheus")
    port = int(server.url.split(":")[2].split("/")[0])
    first = shown(port, authority, client)
    renewed = authority.issue("broker")
    second = shown(port, authority, client)
    assert first != second
    renewed.write_text("broken")
    assert shown(port, authority, client) == second


def shown(port: int, authority: AuthorityFolder, client: Path) -> bytes | None:
    context = ssl.create_default_context(cafile=str(authority.trust_store))
    context.load_cert_chain(client)
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
    ):
        return encrypted.getpeercert(binary_form=True)


def test_https_without_certificates_is_refused_and_http_needs_none() -> None:
    assert metrics_tls(BrokerSettings.parse({})) is None
    with pytest.raises(BrokerError, match=r"metrics\.listener with https.*ssl\.keystore\.location"):
        metrics_tls(BrokerSettings.parse({"metrics.listener": "https://127.0.0.1:0"}))
