"""What keeps a node from connecting to others is reported at the start, with the key to set."""

from collections.abc import Mapping

import pytest

from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerSettings

CLUSTER = {
    "process.roles": "broker",
    "listeners": "INTERNAL://127.0.0.1:9092",
    "inter.broker.listener.name": "INTERNAL",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def problems(values: Mapping[str, str]) -> list[str]:
    """Keys and reasons, of a broker that connects to controllers elsewhere."""
    try:
        BrokerSettings.parse({**CLUSTER, **values})
    except SettingsError as error:
        return [f"{problem.key}: {problem.reason}" for problem in error.problems]
    return []


def of_controllers(protocol: str, **more: str) -> dict[str, str]:
    """A broker whose own listener is in plain text, and the controllers' is not."""
    keys = {f"listener.name.controller.{key.replace('_', '.')}": value for key, value in more.items()}
    return {"listener.security.protocol.map": f"INTERNAL:PLAINTEXT,CONTROLLER:{protocol}", **keys}


def test_plain_text_needs_nothing() -> None:
    assert problems(of_controllers("PLAINTEXT")) == []


def test_tls_needs_to_know_whom_to_trust() -> None:
    assert problems(of_controllers("SSL")) == [
        (
            "listener.name.controller.ssl.truststore.location: must be set: the authorities that certificates of other "
            "nodes come from (CONTROLLER uses SSL)"
        )
    ]
    assert problems(of_controllers("SSL", ssl_truststore_location="/trusted.pem")) == []


def test_stores_of_a_listener_that_only_others_have_are_checked() -> None:
    found = of_controllers("SSL", ssl_truststore_location="/trusted.pem", ssl_keystore_key="PEM")
    assert [problem.partition(":")[0] for problem in problems(found)] == ["listener.name.controller.ssl.keystore.key"]


def test_a_broker_with_tls_needs_to_trust_the_other_brokers() -> None:
    found = problems(
        {
            "listener.security.protocol.map": "INTERNAL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.location": "/own.pem",
        }
    )
    assert [problem.partition(":")[0] for problem in found] == ["listener.name.internal.ssl.truststore.location"]


def test_a_node_without_others_needs_to_trust_no_one() -> None:
    BrokerSettings.parse(
        {
            "listeners": "SECURE://127.0.0.1:9092",
            "listener.security.protocol.map": "SECURE:SSL",
            "ssl.keystore.location": "/own.pem",
        }
    )


def test_the_first_node_of_a_cluster_needs_what_it_needs_when_others_join() -> None:
    with pytest.raises(SettingsError) as refusal:
        BrokerSettings.parse(
            {
                "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_node="secret";',
            }
        )
    assert [problem.key for problem in refusal.value.problems] == ["listener.name.controller.plain.sasl.jaas.config"]
    assert "must contain username and password" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_sasl_needs_a_mechanism_that_there_is() -> None:
    assert problems(of_controllers("SASL_PLAINTEXT")) == [
        (
            "sasl.mechanism.controller.protocol: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, "
            "because CONTROLLER uses SASL_PLAINTEXT"
        )
    ]


@pytest.mark.parametrize(
    ("mechanism", "login", "reason"),
    [
        ("PLAIN", None, "must contain username and password, by which this node logs in at others"),
        ("PLAIN", f'{PLAIN_LOGIN} username="node";', "must contain username and password"),
        ("PLAIN", f'{SCRAM_LOGIN} username="node" password="secret";', "must name the login module of PLAIN"),
        ("SCRAM-SHA-512", f'{SCRAM_LOGIN} username="node"', "semicolon"),
    ],
)
def test_sasl_needs_credentials(mechanism: str, login: str | None, reason: str) -> None:
    values = of_controllers("SASL_PLAINTEXT") | {"sasl.mechanism.controller.protocol": mechanism}
    key = f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config"
    if login is not None:
        values[key] = login
    (found,) = problems(values)
    assert found.startswith(f"{key}: ")
    assert reason in found
    assert "secret" not in found


def test_sasl_with_credentials_is_complete() -> None:
    values = of_controllers("SASL_PLAINTEXT") | {
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
        "listener.name.controller.scram-sha-512.sasl.jaas.config": f'{SCRAM_LOGIN} username="node" password="secret";',
    }
    assert problems(values) == []


def test_a_token_for_controllers_comes_from_a_file() -> None:
    values = of_controllers("SASL_PLAINTEXT") | {"sasl.mechanism.controller.protocol": "OAUTHBEARER"}
    assert [found.partition(":")[0] for found in problems(values)] == [
        "listener.name.controller.oauthbearer.sasl.oauthbearer.token.endpoint.url"
    ]
    values |= {"sasl.oauthbearer.token.endpoint.url": "file:///token"}
    assert problems(values) == []
