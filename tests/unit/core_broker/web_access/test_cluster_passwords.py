"""Passwords that are checked at a cluster: what each answer of a broker means, and who is asked."""

import asyncio
import socket

import pytest

from core_broker.client.settings import ClientSettings
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeResponse
from core_broker.web_access import cluster_passwords as module
from core_broker.web_access.cluster_passwords import ClusterPasswords
from core_broker.web_access.errors import Unavailable
from core_broker.web_access.passwords import Verdict
from tests.support.scripted_broker import Answer, ScriptedBroker, saying

HANDSHAKE = saying(SaslHandshakeResponse(), 1)
WELCOME = saying(SaslAuthenticateResponse(error_message=None), 0)
WRONG = saying(SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "no"), 0)
NO_MECHANISM = saying(SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["GSSAPI"]), 1)


def cluster(*servers: str, timeout_ms: int = 5000) -> ClientSettings:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    return ClientSettings(bootstrap_servers=",".join(servers), timeout_ms=timeout_ms, properties=login)


async def ask(settings: ClientSettings, user: str = "anna", password: str = "secret") -> Verdict:
    with ClusterPasswords(settings, logins_max=2) as passwords:
        async with asyncio.timeout(30):
            return await passwords.verify(user, password)


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("script,verdict", [([HANDSHAKE, WELCOME], Verdict.RIGHT), ([HANDSHAKE, WRONG], Verdict.WRONG)])
async def test_the_answer_to_a_login_is_the_verdict(script: list[Answer], verdict: Verdict) -> None:
    with ScriptedBroker(script) as broker:
        assert await ask(cluster(f"127.0.0.1:{broker.port}")) is verdict
    assert broker.requests[1][2] == b"\0\0\0\x0c\0anna\0secret"


async def test_a_listener_without_the_mechanism_says_nothing_about_the_password() -> None:
    with ScriptedBroker([NO_MECHANISM]) as broker, pytest.raises(Unavailable, match="does not answer"):
        await ask(cluster(f"127.0.0.1:{broker.port}"))


async def test_a_broker_that_is_down_is_passed_over() -> None:
    with ScriptedBroker([HANDSHAKE, WELCOME]) as broker:
        assert await ask(cluster(closed_port(), f"PLAIN://127.0.0.1:{broker.port}")) is Verdict.RIGHT


async def test_the_broker_that_answered_last_is_asked_first() -> None:
    with ScriptedBroker([HANDSHAKE, WELCOME]) as broker:
        settings = cluster(closed_port(), f"127.0.0.1:{broker.port}")
        with ClusterPasswords(settings, logins_max=1) as passwords:
            async with asyncio.timeout(30):
                await passwords.verify("anna", "secret")
            assert passwords._answering == 1


async def test_silent_brokers_share_the_time_of_one_login() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        servers = [f"127.0.0.1:{listening.getsockname()[1]}" for listening in (one, other)]
        with pytest.raises(Unavailable):
            await ask(cluster(*servers, timeout_ms=600))


async def test_checks_that_wait_for_a_thread_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITING_MAX", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = cluster(f"127.0.0.1:{silent.getsockname()[1]}", timeout_ms=500)
        with ClusterPasswords(settings, logins_max=1) as passwords:
            async with asyncio.timeout(30):
                checks = (passwords.verify("anna", str(number)) for number in range(3))
                found = await asyncio.gather(*checks, return_exceptions=True)
    assert "Too many logins" in str(found[2])
    assert "does not answer" in str(found[0])


async def test_no_password_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Unavailable):
        await ask(cluster(closed_port()), "anna", "unmistakable")
    assert "unmistakable" not in caplog.text + repr([vars(record) for record in caplog.records])
    assert "cannot be checked" in caplog.text
