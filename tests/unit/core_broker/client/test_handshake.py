import ssl

import pytest
import trustme

from core_broker.client.errors import NotAllowed, Untrusted
from core_broker.client.handshake import check_handshake
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.api_versions import ApiVersionsResponse
from core_broker.protocol.messages.metadata import MetadataResponse
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.scripted_broker import Answer, ScriptedBroker, saying

VERSIONS, METADATA = saying(ApiVersionsResponse(), 0), saying(MetadataResponse(), 4)
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "anna",
    "sasl.password": "p",
}


def check(script: list[Answer], properties: dict[str, str], *, tls: ssl.SSLContext | None = None) -> None:
    with ScriptedBroker(script, tls=tls) as scripted:
        check_handshake(
            ClientSettings(bootstrap_servers=f"127.0.0.1:{scripted.port}", timeout_ms=5000, properties=properties)
        )


def test_a_broker_that_answers_is_fine() -> None:
    check([VERSIONS, METADATA], {})


def test_a_wrong_password_is_named_with_its_user() -> None:
    refusal = saying(SaslAuthenticateResponse(error_code=58, error_message="no"), 0)
    with pytest.raises(NotAllowed, match="the name anna or its password is wrong"):
        check([saying(SaslHandshakeResponse(), 1), refusal], LOGIN)


def test_the_mechanisms_that_there_are_are_named() -> None:
    there = saying(SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512", "PLAIN"]), 1)
    with pytest.raises(NotAllowed, match="does not have the SASL mechanism GSSAPI; it has PLAIN, SCRAM-SHA-512"):
        check([there], LOGIN | {"sasl.mechanism": "GSSAPI"})


def test_a_listener_without_login_is_named() -> None:
    with pytest.raises(NotAllowed, match="has no login at this listener"):
        check([saying(SaslHandshakeResponse(error_code=34), 1)], LOGIN)


def test_a_listener_that_asks_for_a_login_is_recognised() -> None:
    with pytest.raises(NotAllowed, match="asks for a login"):
        check([VERSIONS], {})


def test_a_listener_with_tls_is_recognised() -> None:
    with pytest.raises(Untrusted, match="TLS"):
        check([VERSIONS], {}, tls=_server())


def test_a_listener_without_tls_is_recognised() -> None:
    with pytest.raises(Untrusted, match="does this listener speak TLS"):
        check([], {"security.protocol": "SSL"})


def test_one_broker_that_accepts_the_client_is_enough() -> None:
    with ScriptedBroker([VERSIONS]) as refusing, ScriptedBroker([VERSIONS, METADATA]) as accepting:
        servers = f"127.0.0.1:1,127.0.0.1:{refusing.port},127.0.0.1:{accepting.port}"
        check_handshake(ClientSettings(bootstrap_servers=servers, timeout_ms=5000))


def test_silence_is_no_refusal() -> None:
    check_handshake(ClientSettings(bootstrap_servers="127.0.0.1:1,nonsense", timeout_ms=300))


def _server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context
