"""The client side, against the server side of the same mechanism."""

import re
from pathlib import Path

import pytest

from core_broker.security.sasl.client import Conversation, PasswordLogin, TokenLogin, login_of
from core_broker.security.sasl.mechanism import Challenge, Outcome, Success
from core_broker.settings import BrokerSettings
from tests.support.sasl_world import ScramUsers, scram_server


async def converse(conversation: Conversation, users: ScramUsers, mechanism: str) -> Outcome:
    """Run an exchange to its end."""
    server = scram_server(mechanism, users)
    outcome: Outcome = Challenge(b"")
    while isinstance(outcome, Challenge):
        outcome = server.step(conversation.step(outcome.data))
    if isinstance(outcome, Success):
        assert not conversation.is_complete
        assert conversation.step(outcome.data) == b""
        assert conversation.is_complete
    return outcome


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["admin", "a=b,c"])
async def test_a_node_logs_in_with_scram(mechanism: str, name: str) -> None:
    users = ScramUsers({name: "grün, =\"'"})
    login = PasswordLogin(mechanism, name, "grün, =\"'")
    outcome = await converse(await login.begin(), users, mechanism)
    assert isinstance(outcome, Success)
    assert str(outcome.principal) == f"User:{name}"


@pytest.mark.parametrize("iterations", [4095, 16385])
async def test_a_peer_cannot_demand_any_number_of_iterations(iterations: int) -> None:
    """CVE-2026-10143"""
    conversation = await PasswordLogin("SCRAM-SHA-256", "admin", "secret").begin()
    nonce = conversation.step(b"").partition(b"r=")[2]
    with pytest.raises(ValueError, match="iteration count"):
        conversation.step(b"r=%bx,s=c2FsdA==,i=%d" % (nonce, iterations))


async def test_a_server_that_does_not_know_the_password_is_noticed() -> None:
    conversation = await PasswordLogin("SCRAM-SHA-256", "admin", "secret").begin()
    nonce = conversation.step(b"").partition(b"r=")[2]
    conversation.step(b"r=%bx,s=c2FsdA==,i=4096" % nonce)
    with pytest.raises(ValueError, match="could not prove"):
        conversation.step(b"v=c2FsdA==")
    assert not conversation.is_complete


async def test_plain_sends_one_message() -> None:
    conversation = await PasswordLogin("PLAIN", "admin", "secret").begin()
    assert not conversation.is_complete
    assert conversation.step(b"") == b"\0admin\0secret"
    assert conversation.is_complete


@pytest.mark.parametrize(("user", "password"), [("", "secret"), ("admin", ""), ("ad\0min", "x"), ("admin", "x\0")])
def test_a_login_without_name_or_password_is_refused(user: str, password: str) -> None:
    with pytest.raises(ValueError, match="needs a user name and a password"):
        PasswordLogin("PLAIN", user, password)


async def test_a_token_is_read_again_at_every_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    login = TokenLogin(file, extensions={"tenant": "a"})
    for token in ("first.token.x", "second.token.y="):
        file.write_text(f"{token}\n")
        assert (await login.begin()).step(b"") == f"n,,\x01auth=Bearer {token}\x01tenant=a\x01\x01".encode()


@pytest.mark.parametrize("text", ["", "two tokens", "a\x01b", "ü"])
async def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(ValueError, match="token"):
        await TokenLogin(file).begin()


async def test_a_refused_token_ends_the_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c")
    conversation = await TokenLogin(file).begin()
    conversation.step(b"")
    assert conversation.step(b'{"status":"invalid_token"}') == b"\x01"


# -- from the settings -----------------------------------------------------------------------------------------------


P = "listener.name.internal"
JAAS = "org.apache.kafka.common.security"


def settings(**keys: str) -> BrokerSettings:
    names = "INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    given = {f"{P}.{key.replace('__', '-').replace('_', '.')}": value for key, value in keys.items()}
    overrides = tuple((key.removeprefix("listener.name."), value) for key, value in given.items())
    return BrokerSettings.parse(
        {
            "inter.broker.listener.name": "INTERNAL",
            "listeners": "INTERNAL://:0",
            "listener.security.protocol.map": names,
        }
        | {"sasl.enabled.mechanisms": "SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}
        | {f"{P}.scram-sha-512.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required username=a password=b;"}
    ).replace(listener_overrides=overrides)


async def test_a_login_is_made_from_the_settings() -> None:
    text = f"{JAAS}.scram.ScramLoginModule required username=admin password='s,e' tokenauth=true;"
    login = login_of(settings(scram__sha__512_sasl_jaas_config=text), "INTERNAL", "SCRAM-SHA-512")
    assert (login.mechanism, login.hint) == ("SCRAM-SHA-512", f"{P}.scram-sha-512.sasl.jaas.config")
    first = (await login.begin()).step(b"")
    assert first.startswith(b"n,,n=admin,r=")
    assert first.endswith(b",tokenauth=true")


async def test_a_token_login_is_made_from_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    file.write_text("a.b.c")
    url = {"oauthbearer_sasl_oauthbearer_token_endpoint_url": file.as_uri()}
    login = login_of(settings(**url), "INTERNAL", "OAUTHBEARER")
    assert (await login.begin()).step(b"") == b"n,,\x01auth=Bearer a.b.c\x01\x01"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_a_login_that_is_not_configured_names_the_key(mechanism: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{P}.{mechanism.lower()}.sasl.")):
        login_of(settings(), "INTERNAL", mechanism)
