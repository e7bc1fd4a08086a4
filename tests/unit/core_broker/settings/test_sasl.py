"""SASL cannot be configured by half: a listener at which no client could log in, or any could, is refused."""

import pytest

from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerSettings

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="s" user_admin="s";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="s";'
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
EXTERNAL = {
    "listeners": "EXTERNAL://localhost:9094,INTERNAL://localhost:9092",
    "listener.security.protocol.map": "EXTERNAL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}
BETWEEN_NODES = {**EXTERNAL, "inter.broker.listener.name": "EXTERNAL"}
P = "listener.name.external"


def refusal(*changes: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as refused:
        BrokerSettings.parse({key: value for change in changes for key, value in change.items()})
    return str(refused.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"sasl.enabled.mechanisms": "PLAIN", f"{P}.plain.sasl.jaas.config": PLAIN},
        {f"{P}.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"},
        {f"{P}.sasl.enabled.mechanisms": "SCRAM-SHA-512", f"{P}.scram-sha-512.sasl.jaas.config": SCRAM},
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": "https://id/keys",
            f"{P}.oauthbearer.sasl.jaas.config": OAUTH,
            f"{P}.oauthbearer.sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer"
            ".OAuthBearerValidatorCallbackHandler",
        },
    ],
    ids=["plain", "scram", "scram with login", "oauthbearer"],
)
def test_a_complete_listener_is_accepted(keys: dict[str, str]) -> None:
    BrokerSettings.parse({**EXTERNAL, **keys})


def test_settings_of_a_mechanism_go_before_those_of_the_listener() -> None:
    settings = BrokerSettings.parse(
        {
            **EXTERNAL,
            f"{P}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            f"{P}.plain.sasl.jaas.config": PLAIN,
            "connections.max.reauth.ms": "1000",
            f"{P}.connections.max.reauth.ms": "2000",
            f"{P}.plain.connections.max.reauth.ms": "3000",
        }
    )
    plain, scram = (settings.for_mechanism("EXTERNAL", name) for name in ("PLAIN", "SCRAM-SHA-256"))
    assert (plain.connections_max_reauth_ms, scram.connections_max_reauth_ms) == (3000, 2000)
    assert plain.jaas_login is not None
    assert plain.jaas_login.users == {"admin": "s"}
    assert scram.jaas_login is None


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({}, "sasl.enabled.mechanisms=GSSAPI: Kerberos"),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "Kerberos (GSSAPI) is not supported"),
        ({"sasl.enabled.mechanisms": "plain"}, "mechanisms are PLAIN"),
        ({"sasl.enabled.mechanisms": ""}, "must not be empty"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "must contain a user of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN", f"{P}.plain.sasl.jaas.config": SCRAM}, "login module of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN", f"{P}.plain.sasl.jaas.config": "nonsense"}, "must be a login module"),
        ({"sasl.kerberos.service.name": "kafka"}, "Kerberos"),
        ({"sasl.login.class": "a.b.C"}, "classes cannot be loaded"),
        ({"sasl.server.callback.handler.class": "a.b.C"}, "must be one of"),
    ],
)
def test_what_could_not_work_is_refused(keys: dict[str, str], reason: str) -> None:
    assert reason in refusal(EXTERNAL, keys)


@pytest.mark.parametrize("key", ["sasl.jaas.config", f"{P}.sasl.jaas.config"])
def test_a_login_that_kafka_would_ignore_is_refused(key: str) -> None:
    text = refusal(EXTERNAL, {"sasl.enabled.mechanisms": "SCRAM-SHA-256", key: PLAIN})
    assert "must be set for a mechanism" in text
    assert "user_admin" not in text


def test_tokens_without_a_source_of_keys_are_refused() -> None:
    """CVE-2026-110985: without keys, tokens that are not signed would be accepted."""
    assert "jwks.endpoint.url" in refusal(EXTERNAL, {"sasl.enabled.mechanisms": "OAUTHBEARER"})


@pytest.mark.parametrize(
    "url", ["ftp://id/keys", "keys.json", "https:///keys", "file:keys", "http://[", "jndi:ldap://x"]
)
def test_keys_come_from_a_file_or_the_web(url: str) -> None:
    """CVE-2025-27817"""
    assert "must be a URL" in refusal({"sasl.oauthbearer.jwks.endpoint.url": url})


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "must be one of the mechanisms of EXTERNAL: SCRAM-SHA-512"),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            "must contain username and password",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json",
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            },
            "must be the file with the token",
        ),
    ],
)
def test_nodes_must_be_able_to_log_in_at_each_other(keys: dict[str, str], reason: str) -> None:
    assert reason in refusal(BETWEEN_NODES, keys)


def test_nodes_that_can_log_in_at_each_other_are_accepted() -> None:
    BrokerSettings.parse(
        {
            **BETWEEN_NODES,
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            f"{P}.scram-sha-512.sasl.jaas.config": SCRAM,
        }
    )


def test_no_password_is_shown() -> None:
    settings = BrokerSettings.parse(
        {**EXTERNAL, "sasl.enabled.mechanisms": "PLAIN", f"{P}.plain.sasl.jaas.config": PLAIN}
    )
    assert "user_admin" not in repr(settings)
    assert "user_admin" not in repr(settings.for_mechanism("EXTERNAL", "PLAIN"))
