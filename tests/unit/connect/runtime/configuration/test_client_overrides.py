"""Properties of Java's clients become librdkafka's, where the worker's policy allows them."""

import pytest

from connect.api.config import Problem
from connect.api.errors import ConfigError
from connect.runtime.configuration import client_overrides
from connect.runtime.configuration.client_overrides import to_librdkafka
from connect.settings import ConnectSettings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def problems_of(settings: ConnectSettings, config: dict[str, str]) -> list[Problem]:
    kinds = client_overrides.FAMILIES
    return [problem for kind in kinds for problem in client_overrides.problems(kind, settings, config)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"acks": "all", "linger.ms": "5"}, {"acks": "all", "linger.ms": "5"}),
        ({"delivery.timeout.ms": "9"}, {"message.timeout.ms": "9"}),
        ({"max.request.size": "9"}, {"message.max.bytes": "9"}),
        ({"fetch.max.wait.ms": "9"}, {"fetch.wait.max.ms": "9"}),
        ({"sasl.mechanism": "PLAIN"}, {"sasl.mechanisms": "PLAIN"}),
        ({"compression.zstd.level": "3"}, {"compression.level": "3"}),
        ({"buffer.memory": "1", "max.block.ms": "2", "max.poll.records": "3", "metric.reporters": "x"}, {}),
        ({"key.serializer": "x", "value.deserializer": "y", "interceptor.classes": "z", "confluent.a": "b"}, {}),
        ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
        ({"auto.offset.reset": "latest"}, {"auto.offset.reset": "latest"}),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"},
            {"partition.assignment.strategy": "range"},
        ),
        (
            {
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor, "
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            },
            {"partition.assignment.strategy": "range"},
        ),
        (
            {"sasl.jaas.config": f'{PLAIN} username="anna" password="a \\"b\\" c=d;";'},
            {"sasl.username": "anna", "sasl.password": 'a "b" c=d;'},
        ),
        (
            {"sasl.jaas.config": "x.ScramLoginModule required username='u' password=p;"},
            {"sasl.username": "u", "sasl.password": "p"},
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem", "ssl.truststore.password": ""},
            {"ssl.ca.location": "/ca.pem"},
        ),
        (
            {"ssl.keystore.type": "pem", "ssl.keystore.location": "/k.pem", "ssl.key.password": "x"},
            {"ssl.certificate.location": "/k.pem", "ssl.key.location": "/k.pem", "ssl.key.password": "x"},
        ),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/k.p12", "ssl.keystore.password": "x"},
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "x"},
        ),
        ({"ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
    ],
)
def test_names_and_values_are_to_librdkafka(given: dict[str, str], expected: dict[str, str]) -> None:
    assert to_librdkafka(given.items()) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.truststore.location": "/a.jks"}, "use PEM files"),
        ({"ssl.keystore.location": "/a.jks", "ssl.keystore.type": "JKS"}, "use PEM files"),
        ({"ssl.truststore.location": "/a.p12", "ssl.truststore.type": "PKCS12"}, "use PEM files"),
        ({"sasl.jaas.config": "x.OAuthBearerLoginModule required;"}, "only PLAIN and SCRAM"),
        ({"sasl.jaas.config": f"{PLAIN} username=hush;"}, "must name username and password"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_do(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        to_librdkafka(given.items())
    assert message in str(raised.value)
    assert "hush" not in str(raised.value)


SETTINGS = ConnectSettings.parse(
    {
        "producer.acks": "1",
        "producer.delivery.timeout.ms": "1000",
        "consumer.max.poll.records": "50",
        "admin.client.id": "me",
    }
)


def test_a_connectors_overrides_win_over_the_workers() -> None:
    config = {"producer.override.acks": "all", "consumer.override.fetch.min.bytes": "7", "acks": "0"}
    assert client_overrides.producer_properties(SETTINGS, config) == {"acks": "all", "message.timeout.ms": "1000"}
    assert client_overrides.consumer_properties(SETTINGS, config) == {"fetch.min.bytes": "7"}
    assert client_overrides.admin_properties(SETTINGS, config) == {"client.id": "me"}


@pytest.mark.parametrize(
    ("settings", "config", "expected"),
    [
        (ConnectSettings(), {}, 500),
        (SETTINGS, {}, 50),
        (SETTINGS, {"consumer.override.max.poll.records": "7"}, 7),
    ],
)
def test_the_sink_reads_max_poll_records(settings: ConnectSettings, config: dict[str, str], expected: int) -> None:
    assert client_overrides.max_poll_records(settings, config) == expected


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "١"])
def test_max_poll_records_is_a_number_from_1(text: str) -> None:
    with pytest.raises(ConfigError, match=r"consumer\.override\.max\.poll\.records: must be at least 1"):
        client_overrides.max_poll_records(ConnectSettings(), {"consumer.override.max.poll.records": text})


CONFIG = {
    "producer.override.acks": "all",
    "consumer.override.sasl.jaas.config": f"{PLAIN} username=u password=p;",
    "admin.override.security.protocol": "SASL_SSL",
    "acks": "x",
}


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ({"connector.client.config.override.policy": "All"}, []),
        (
            {"connector.client.config.override.policy": "None"},
            [
                "producer.override.acks",
                "consumer.override.sasl.jaas.config",
                "admin.override.security.protocol",
            ],
        ),
        ({"connector.client.config.override.policy": "Principal"}, ["producer.override.acks"]),
        (
            {
                "connector.client.config.override.policy": "Allowlist",
                "connector.client.config.override.allowlist": "acks, security.protocol",
            },
            ["consumer.override.sasl.jaas.config"],
        ),
    ],
)
def test_the_policy_decides_what_may_be_overridden(policy: dict[str, str], refused: list[str]) -> None:
    problems = problems_of(ConnectSettings.parse(policy), CONFIG)
    assert [problem.key for problem in problems] == refused


def test_a_refusal_is_told_in_kafkas_words() -> None:
    settings = ConnectSettings.parse({"connector.client.config.override.policy": "Principal"})
    (problem,) = problems_of(settings, CONFIG)
    message = "The 'Principal' policy does not allow 'acks' to be overridden in the connector configuration."
    assert problem.message == message


def test_an_override_that_cannot_work_is_a_problem_of_its_key() -> None:
    config = {"consumer.override.ssl.truststore.location": "/a.jks"}
    (problem,) = problems_of(ConnectSettings(), config)
    assert problem.key == "consumer.override.ssl.truststore.location"
