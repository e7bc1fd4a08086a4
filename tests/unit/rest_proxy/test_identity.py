import socket
from collections.abc import Mapping

import pytest

from core_broker.client.errors import NotAllowed
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.api_versions import ApiVersionsResponse
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeResponse
from core_broker.service.clock import ManualClock
from core_broker.service.settings import SettingsError
from core_broker.web_access.callers import BearerCredentials, PasswordCredentials
from rest_proxy.identity import CallerIdentity, Identity
from rest_proxy.settings import ProxySettings
from tests.support.scripted_broker import Answer, ScriptedBroker, saying

PASSWORD = PasswordCredentials("alice", "s3cret")
TOKEN = BearerCredentials("t0ken", 60_000)
OWN = {
    "client.security.protocol": "SASL_PLAINTEXT",
    "client.sasl.mechanism": "PLAIN",
    "client.sasl.username": "proxy",
    "client.sasl.password": "own",
    "client.socket.keepalive.enable": "true",
    "producer.sasl.username": "another",
    "producer.linger.ms": "7",
    "schema.registry.basic.auth.user.info": "proxy:own",
}


def settings(changes: Mapping[str, str] | None = None) -> ProxySettings:
    given = {**OWN, **(changes or {})}
    methods = {"authentication.method": "BASIC,BEARER", "sasl.oauthbearer.jwks.endpoint.url": "https://id.example"}
    return ProxySettings.parse({**given, **methods, "sasl.oauthbearer.clock.skew.seconds": "5"})


def caller(
    credentials: PasswordCredentials | BearerCredentials,
    changes: Mapping[str, str] | None = None,
    *,
    clock: ManualClock | None = None,
) -> CallerIdentity:
    return CallerIdentity(settings(changes), "User:alice", credentials, clock=clock)


def test_the_proxy_itself_logs_in_by_its_own_settings() -> None:
    own = Identity(settings())
    assert own.kafka(own._settings.producer_properties).properties["sasl.username"] == "another"
    assert not own.has_expired
    own.check()
    own.check_stream()


def test_a_password_takes_the_place_of_the_proxy_s() -> None:
    found = caller(PASSWORD).kafka(settings().producer_properties)
    assert dict(found.properties) == {
        "log_level": "2",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "socket.keepalive.enable": "true",
        "linger.ms": "7",
        "sasl.username": "alice",
        "sasl.password": "s3cret",
    }
    assert found.token is None


def test_a_token_takes_the_place_of_user_and_password() -> None:
    found = caller(TOKEN, clock=ManualClock(1000)).kafka(settings().producer_properties)
    assert {key: value for key, value in found.properties.items() if key.startswith("sasl.")} == {
        "sasl.mechanism": "OAUTHBEARER"
    }
    assert found.token is not None
    assert found.token() == ("t0ken", 65.0)


def test_an_expired_token_is_given_to_nobody() -> None:
    clock = ManualClock(64_999)
    identity = caller(TOKEN, clock=clock)
    token = identity.kafka().token
    assert token is not None
    assert [identity.expires_within(seconds) for seconds in (0, 1)] == [False, True]
    clock.advance(1)
    assert identity.expires_within(0)
    assert token()[0] != "t0ken"
    with pytest.raises(NotAllowed, match="has expired"):
        identity.check()
    identity.renew(BearerCredentials("newer", 120_000))
    assert not identity.has_expired
    assert token() == ("newer", 125.0)


def test_the_registry_sees_the_caller_only_if_it_shall() -> None:
    assert caller(PASSWORD).registry().user_info == "proxy:own"
    shown = {"schema.registry.as.caller": "true"}
    assert caller(PASSWORD, shown).registry().user_info == "alice:s3cret"
    by_token = caller(TOKEN, shown).registry()
    assert (by_token.user_info, by_token.bearer_token) == (None, "t0ken")


def test_nothing_shows_a_secret() -> None:
    for credentials in (PASSWORD, TOKEN):
        identity = caller(credentials)
        for shown in (repr(identity), repr(identity.kafka()), repr(identity.registry())):
            assert not any(secret in shown for secret in ("s3cret", "t0ken", "own"))


def at(broker: ScriptedBroker, clock: ManualClock) -> CallerIdentity:
    return caller(PASSWORD, {"bootstrap.servers": f"127.0.0.1:{broker.port}"}, clock=clock)


def script(*, accepts: bool) -> list[Answer]:
    code = 0 if accepts else ErrorCode.SASL_AUTHENTICATION_FAILED
    answers = [saying(SaslHandshakeResponse(), 1), saying(SaslAuthenticateResponse(code, None), 0)]
    return [*answers, saying(ApiVersionsResponse(), 0)] if accepts else answers


def test_a_login_counts_for_a_while() -> None:
    clock = ManualClock()
    with ScriptedBroker(script(accepts=True)) as broker:
        identity = at(broker, clock)
        for _ in range(3):
            identity.check()
        clock.advance(4_000)
        identity.check()
        assert len(broker.requests) == 3


def test_a_refused_login_is_told_without_the_address_of_the_broker() -> None:
    clock = ManualClock(10_000)
    with ScriptedBroker(script(accepts=False)) as broker:
        identity = at(broker, clock)
        for _ in range(2):
            with pytest.raises(NotAllowed) as caught:
                identity.check()
            assert caught.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert str(caught.value) == "The Kafka cluster does not accept this login"
        assert len(broker.requests) == 2


def test_a_cluster_that_is_not_there_refuses_nobody() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        caller(PASSWORD, {"bootstrap.servers": f"127.0.0.1:{taken.getsockname()[1]}"}).check()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"authentication.method": "NONE", "schema.registry.as.caller": "true"}, "schema.registry.as.caller"),
        (
            {
                "authentication.method": "BEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "https://id.example",
                "client.security.protocol": "SSL",
            },
            "client.*",
        ),
    ],
)
def test_settings_that_cannot_pass_callers_on_are_refused(given: Mapping[str, str], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ProxySettings.parse(given)
    assert key in [problem.key for problem in caught.value.problems]
