import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme

from core_broker.client.connection import Connection
from core_broker.client.errors import NotAllowed, Rejected, Unreachable
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.scripted_broker import Answer, ScriptedBroker, saying

WELCOME = saying(SaslHandshakeResponse(), 1)
HANDSHAKE, AUTHENTICATE = 17, 36
QUESTION = SaslHandshakeRequest("question")
"""Any request will do."""
ANSWER = SaslHandshakeResponse(mechanisms=["answer"])
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "anna",
    "sasl.password": "secret",
}


def settings(properties: Mapping[str, str]) -> ClientSettings:
    return ClientSettings(timeout_ms=5000, client_id="caudal", properties=properties)


answering = saying(ANSWER, 1)


def ask(connection: Connection) -> SaslHandshakeResponse:
    return connection.send(QUESTION, 1, SaslHandshakeResponse)


def asked(script: list[Answer], properties: Mapping[str, str]) -> list[tuple[int, int, bytes]]:
    """The requests that a broker sees when it is asked one question."""
    with (
        ScriptedBroker([*script, answering]) as scripted,
        Connection(settings(properties), "127.0.0.1", scripted.port) as connection,
    ):
        assert ask(connection) == ANSWER
    return scripted.requests


def test_question_is_answered() -> None:
    assert asked([], {}) == [(HANDSHAKE, 1, b"\0\x08question")]


def test_user_shows_a_password() -> None:
    proof = saying(SaslAuthenticateResponse(error_message=None), 0)
    handshake, authenticate, _ = asked([WELCOME, proof], PLAIN)
    assert handshake == (HANDSHAKE, 1, b"\0\5PLAIN")
    assert authenticate == (AUTHENTICATE, 0, b"\0\0\0\x0c\0anna\0secret")


def test_wrong_password_is_not_allowed() -> None:
    refusal = saying(SaslAuthenticateResponse(error_code=58, error_message="no"), 0)
    with pytest.raises(NotAllowed, match="refused to authenticate this user"):
        asked([WELCOME, refusal], PLAIN)


def test_mechanism_that_the_broker_does_not_know_is_not_allowed() -> None:
    with pytest.raises(NotAllowed):
        asked([saying(SaslHandshakeResponse(error_code=33), 1)], PLAIN)


def test_unsupported_mechanism_is_rejected() -> None:
    with pytest.raises(Rejected, match="GSSAPI"):
        asked([], PLAIN | {"sasl.mechanism": "GSSAPI"})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """What a broker needs to show that it is 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def test_encrypted_question_is_answered(authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    properties = {"security.protocol": "ssl", "ssl.ca.location": str(tmp_path / "ca.pem")}
    with (
        ScriptedBroker([answering], tls=tls) as scripted,
        Connection(settings(properties), "127.0.0.1", scripted.port) as connection,
    ):
        assert ask(connection) == ANSWER


def test_broker_with_an_unknown_certificate_is_unreachable(tls: ssl.SSLContext) -> None:
    with (
        ScriptedBroker([answering], tls=tls) as scripted,
        pytest.raises(Unreachable, match="certificate"),
        Connection(settings({"security.protocol": "ssl"}), "127.0.0.1", scripted.port),
    ):
        pass


def test_certificate_need_not_be_known_when_nobody_asks(tls: ssl.SSLContext) -> None:
    properties = {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}
    with (
        ScriptedBroker([answering], tls=tls) as scripted,
        Connection(settings(properties), "127.0.0.1", scripted.port) as connection,
    ):
        assert ask(connection) == ANSWER


def test_answer_of_absurd_length_is_refused() -> None:
    with (
        ScriptedBroker([lambda _: b"x" * 70_000_000]) as scripted,
        Connection(settings({}), "127.0.0.1", scripted.port) as connection,
        pytest.raises(Rejected, match="70000004 bytes"),
    ):
        ask(connection)
