import ssl
from pathlib import Path

import pytest
import trustme

from core_broker.client.connection import Connection
from core_broker.client.errors import Rejected, Untrusted
from core_broker.client.settings import ClientSettings
from core_broker.client.tls import client_context, explain_failure, speaks_tls
from tests.support.scripted_broker import ScriptedBroker


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server(authority: trustme.CA, name: str = "127.0.0.1", *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


def connect(context: ssl.SSLContext, properties: dict[str, str]) -> None:
    settings = ClientSettings(timeout_ms=5000, properties={"security.protocol": "SSL", **properties})
    with ScriptedBroker([], tls=context) as scripted, Connection(settings, "127.0.0.1", scripted.port):
        pass


def trusting(authority: trustme.CA) -> dict[str, str]:
    return {"ssl.ca.pem": authority.cert_pem.bytes().decode()}


def test_certificates_are_taken_from_a_text(authority: trustme.CA) -> None:
    connect(server(authority), trusting(authority))


def test_a_client_shows_its_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    issued = authority.issue_cert("client")
    file = tmp_path / "client.pem"
    issued.private_key_and_cert_chain_pem.write_to_path(file)
    connect(server(authority, asks=True), {**trusting(authority), "ssl.certificate.location": str(file)})
    texts = {
        "ssl.certificate.pem": issued.cert_chain_pems[0].bytes().decode(),
        "ssl.key.pem": issued.private_key_pem.bytes().decode(),
    }
    connect(server(authority, asks=True), {**trusting(authority), **texts})


@pytest.mark.parametrize(
    ("name", "trusted", "words"),
    [
        ("127.0.0.1", False, "is the CA of the broker in"),
        ("else.example", True, "not for this host name"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_explained(
    authority: trustme.CA, name: str, trusted: bool, words: str
) -> None:
    with pytest.raises(Untrusted, match=words):
        connect(server(authority, name), trusting(authority) if trusted else {})


def test_the_name_need_not_fit_if_that_is_not_checked(authority: trustme.CA) -> None:
    unchecked = {"ssl.endpoint.identification.algorithm": "none"}
    connect(server(authority, "else.example"), {**trusting(authority), **unchecked})


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"ssl.ca.location": "/no/such/file"}, "ssl.ca.location=/no/such/file"),
        ({"ssl.ca.pem": "no certificate"}, "ssl.ca.pem"),
        ({"ssl.cipher.suites": "NO-SUCH"}, "ssl.cipher.suites"),
        ({"ssl.certificate.location": "/no/such/file"}, "ssl.key.password"),
        ({"ssl.keystore.location": "/no/such/file"}, "ssl.keystore.location"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_their_key(properties: dict[str, str], key: str) -> None:
    with pytest.raises(Rejected, match=key):
        client_context(properties)


def test_tls_is_recognised_in_the_answer_to_plain_text() -> None:
    assert "speaks TLS" in str(speaks_tls(int.from_bytes(b"\x15\x03\x03\x00"), "kafka:9093"))
    assert speaks_tls(100, "kafka:9093") is None


def test_other_failures_are_none_of_tls() -> None:
    assert explain_failure(ConnectionRefusedError("refused"), "kafka:9093") is None
