"""What a worker tells sinks of engines about itself and their configuration."""

from collections.abc import Mapping

import pytest

from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.models import TaskId
from connect.runtime.tasks.engine_facts import SinkFacts
from connect.settings import ConnectSettings


def facts(config: Mapping[str, str] | None = None, settings: Mapping[str, str] | None = None) -> SinkFacts:
    given = {"name": "lake", "connector.class": "SparkSink", "topics": "a,b", **(config or {})}
    return SinkFacts(TaskId("lake", 0), SinkConnectorConfig.parse(given), ConnectSettings.parse(settings or {}))


def test_clients_are_told_what_worker_and_connector_say_in_the_names_of_librdkafka() -> None:
    settings = {
        "bootstrap.servers": "k1:9092,k2:9092",
        "client.security.protocol": "SASL_PLAINTEXT",
        "consumer.sasl.username": "worker",
        "consumer.fetch.max.wait.ms": "7",
    }
    properties = facts({"consumer.override.sasl.username": "own"}, settings).consumer_properties
    assert properties["bootstrap.servers"] == "k1:9092,k2:9092"
    assert properties["client.id"] == "connector-consumer-lake-0"
    assert properties["security.protocol"] == "SASL_PLAINTEXT"
    assert properties["sasl.username"] == "own"
    assert properties["fetch.wait.max.ms"] == "7"


@pytest.mark.parametrize("family", ["producer", "admin"])
def test_each_kind_of_client_has_its_own_properties(family: str) -> None:
    given = facts({f"{family}.override.client.id": "mine"}, {f"{family}.socket.timeout.ms": "5000"})
    properties = given.producer_properties if family == "producer" else given.admin_properties
    assert (properties["client.id"], properties["socket.timeout.ms"]) == ("mine", "5000")
    assert given.consumer_properties["socket.timeout.ms"] != "5000"


@pytest.mark.parametrize(
    ("config", "settings", "group"),
    [
        ({}, {}, "connect-lake"),
        ({}, {"consumer.group.id": "of-the-worker"}, "of-the-worker"),
        ({"consumer.override.group.id": "own"}, {"consumer.group.id": "of-the-worker"}, "own"),
    ],
)
def test_the_group_is_named_after_the_connector_unless_somebody_says_otherwise(
    config: dict[str, str], settings: dict[str, str], group: str
) -> None:
    found = facts(config, settings)
    assert found.group == group
    assert "group.id" not in found.consumer_properties


def test_what_the_operator_says_about_the_engine_is_handed_on_in_full() -> None:
    settings = {"spark.master": "local[2]", "spark.caudal.data.dir": "/d"}
    assert facts(settings=settings).engine_properties == settings


@pytest.mark.parametrize(
    ("config", "known", "chosen"),
    [
        ({"topics": "b,a"}, [], ["a", "b"]),
        ({"topics": "a"}, ["a", "connect-redrive-lake", "c"], ["a", "connect-redrive-lake"]),
        ({"topics": "", "topics.regex": "[ab].*"}, ["b2", "c", "a1", "__b"], ["a1", "b2"]),
        ({"topics": "", "topics.regex": ".*"}, ["connect-redrive-lake", "__x", "a"], ["a", "connect-redrive-lake"]),
        ({"topics": "", "topics.regex": "a"}, ["ab", "ba"], []),
    ],
)
def test_topics_are_chosen_as_every_sink_does(config: dict[str, str], known: list[str], chosen: list[str]) -> None:
    assert facts(config).topics.chosen(known) == chosen
