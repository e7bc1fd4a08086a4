"""Settings of one listener: the prefix goes before the bare name, and nothing unknown is accepted."""

import pytest

from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerConfig, BrokerSettings, ConfigSource
from core_broker.settings.listener_overrides import ListenerKey, base_key, split_listener_key

TWO = {
    "listeners": "INTERNAL://h:1,EXTERNAL://h:2",
    "listener.security.protocol.map": "INTERNAL:SSL,EXTERNAL:SSL,CONTROLLER:PLAINTEXT",
    "ssl.keystore.location": "internal.pem",
    "listener.name.external.ssl.keystore.location": "external.pem",
}


def refusals(values: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        BrokerSettings.parse(TWO | values)
    return str(caught.value)


def test_each_listener_has_its_own_settings() -> None:
    settings = BrokerSettings.parse(TWO)
    assert settings.for_listener("INTERNAL").ssl_keystore_location == "internal.pem"
    assert settings.for_listener("EXTERNAL").ssl_keystore_location == "external.pem"
    assert settings.ssl_keystore_location == "internal.pem"


def test_the_prefix_wins_even_with_the_default_value() -> None:
    settings = BrokerSettings.parse(
        TWO
        | {
            "ssl.client.auth": "required",
            "ssl.truststore.location": "ca.pem",
            "listener.name.external.ssl.client.auth": "none",
        }
    )
    assert settings.for_listener("INTERNAL").ssl_client_auth == "required"
    assert settings.for_listener("EXTERNAL").ssl_client_auth == "none"


@pytest.mark.parametrize(
    "key,value,problem",
    [
        ("listener.name.external.ssl.client.auth", "maybe", "=maybe: must be one of required, requested, none"),
        ("listener.name.external.ssl.keystore.locatoin", "x", "=******: unknown setting; did you mean ssl.keystore"),
        ("listener.name.external.node.id", "7", "cannot be set for one listener; remove the prefix"),
        (
            "listener.name.other.ssl.client.auth",
            "none",
            "and a listener, in lower case: controller, external, internal",
        ),
        ("listener.name.EXTERNAL.ssl.client.auth", "none", "and a listener, in lower case: controller, external"),
        ("listener.name.external", "none", "and a listener, in lower case: controller, external"),
    ],
)
def test_what_is_wrong_is_refused_under_its_full_name(key: str, value: str, problem: str) -> None:
    text = refusals({key: value})
    assert text.startswith(f"{key}=")
    assert problem in text


def test_a_mistaken_password_is_not_shown() -> None:
    assert "s3cret" not in refusals({"listener.name.external.ssl.keystore.pasword": "s3cret"})
    assert "s3cret" not in repr(BrokerSettings.parse(TWO | {"listener.name.external.ssl.key.password": "s3cret"}))


def test_a_broker_may_have_settings_for_the_listener_of_controllers_elsewhere() -> None:
    values = {
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": "a:9093",
        "listener.name.controller.ssl.truststore.location": "ca.pem",
    }
    settings = BrokerSettings.parse(values)
    assert settings.for_listener("CONTROLLER").ssl_truststore_location == "ca.pem"


@pytest.mark.parametrize(
    "rest,found",
    [
        ("external.ssl.client.auth", ListenerKey("EXTERNAL", "", "ssl.client.auth")),
        ("external.plain.sasl.jaas.config", ListenerKey("EXTERNAL", "plain", "sasl.jaas.config")),
        ("external.scram-sha-256.sasl.jaas.config", ListenerKey("EXTERNAL", "scram-sha-256", "sasl.jaas.config")),
        ("a.b.ssl.client.auth", ListenerKey("A.B", "", "ssl.client.auth")),
        ("a.c.ssl.client.auth", ListenerKey("A", "", "c.ssl.client.auth")),
        ("b.ssl.client.auth", None),
    ],
)
def test_a_key_is_taken_apart_by_the_names_of_the_listeners(rest: str, found: ListenerKey | None) -> None:
    assert split_listener_key(rest, ["EXTERNAL", "A", "A.B"]) == found


def test_the_key_behind_the_prefix() -> None:
    assert base_key("listener.name.external.ssl.client.auth") == "ssl.client.auth"
    assert base_key("ssl.client.auth") is None


def test_a_change_at_run_time_goes_before_what_the_broker_was_started_with() -> None:
    key = "listener.name.external.ssl.keystore.location"
    config = BrokerConfig(BrokerSettings.parse(TWO), {}, {key: "newer.pem"})
    assert config.effective.for_listener("EXTERNAL").ssl_keystore_location == "newer.pem"
    assert config.effective.for_listener("INTERNAL").ssl_keystore_location == "internal.pem"
    described = {found.key: found for found in config.describe()}[key]
    assert (described.value, described.source) == ("newer.pem", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert [(found.value, found.source) for found in described.synonyms] == [
        ("newer.pem", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("external.pem", ConfigSource.STATIC_BROKER_CONFIG),
    ]
