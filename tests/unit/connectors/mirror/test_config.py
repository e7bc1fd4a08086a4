"""Options of the three connectors, and the properties of their clients."""

from collections.abc import Mapping

import pytest

from connect.api.errors import ConfigError, ConnectError
from connect.testing.contexts import FakeConnectorContext
from connectors.mirror.checkpoint_source import MirrorCheckpointConnector
from connectors.mirror.clusters import Role, client_settings, given_properties
from connectors.mirror.config import MirrorCheckpointConfig, MirrorSourceConfig, Side
from connectors.mirror.heartbeat_source import MirrorHeartbeatConnector
from connectors.mirror.source import MirrorSourceConnector, format_partitions, parse_partitions

LEAST = {
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:2",
}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def config(changes: Mapping[str, str] | None = None) -> MirrorSourceConfig:
    return MirrorSourceConfig.parse({**LEAST, **(changes or {})})


@pytest.mark.parametrize(
    ("location", "topic"), [("source", "mm2-offset-syncs.eu.internal"), ("target", "mm2-offset-syncs.us.internal")]
)
def test_the_topic_of_offset_syncs_is_named_after_the_other_cluster(location: str, topic: str) -> None:
    assert config({"offset-syncs.topic.location": location}).offset_syncs_topic == topic


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"target.cluster.alias": "us"}, "target.cluster.alias"),
        ({"topics": "("}, "topics"),
        ({"replication.policy.class": "com.example.Mine"}, "replication.policy.class"),
        ({"offset-syncs.topic.location": "moon"}, "offset-syncs.topic.location"),
        ({"exactly.once.support": "required", "consumer.isolation.level": "read_uncommitted"}, "isolation.level"),
        ({"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"}, "emit.offset-syncs.enabled"),
    ],
)
def test_what_cannot_work_is_refused(changes: Mapping[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        config(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"emit.checkpoints.enabled": "false"},
        {"emit.offset-syncs.enabled": "false"},
    ],
)
def test_checkpoints_without_a_purpose_are_refused(changes: Mapping[str, str]) -> None:
    with pytest.raises(ConfigError, match="MirrorCheckpointConnector can't run"):
        MirrorCheckpointConfig.parse({**LEAST, **changes})


@pytest.mark.parametrize(
    ("side", "role", "properties"),
    [
        (
            "source",
            "consumer",
            {"security.protocol": "SSL", "fetch.min.bytes": "3", "isolation.level": "read_committed"},
        ),
        ("source", "admin", {"security.protocol": "SSL"}),
        ("source", "producer", {"security.protocol": "SSL"}),
        ("target", "consumer", {"fetch.min.bytes": "2"}),
        ("target", "producer", {"acks": "all"}),
    ],
)
def test_properties_of_clients_are_gathered(side: Side, role: Role, properties: Mapping[str, str]) -> None:
    options = config(
        {
            "source.cluster.security.protocol": "SSL",
            "consumer.fetch.min.bytes": "2",
            "consumer.poll.timeout.ms": "100",
            "consumer.override.fetch.min.bytes": "9",
            "source.consumer.fetch.min.bytes": "3",
            "source.consumer.isolation.level": "read_committed",
            "target.producer.acks": "all",
        }
    )
    assert given_properties(options, side, role) == properties


def test_names_of_java_become_those_of_the_library() -> None:
    settings = client_settings(
        config({"source.cluster.sasl.mechanism": "PLAIN", "source.consumer.fetch.max.wait.ms": "7"}),
        "source",
        "consumer",
    )
    assert settings.bootstrap_servers == "a:1"
    assert settings.properties["sasl.mechanisms"] == "PLAIN"
    assert settings.properties["fetch.wait.max.ms"] == "7"


def test_java_key_stores_are_refused_by_their_key() -> None:
    options = config({"source.cluster.ssl.truststore.location": "/x.jks"})
    (problem, *_) = MirrorSourceConnector.validate(options)
    assert "ssl.truststore.location" in problem.message


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        ({}, ["key.converter", "value.converter", "header.converter"]),
        ({"key.converter": BYTES, "value.converter": "JsonConverter"}, ["value.converter", "header.converter"]),
        (dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES), []),
    ],
)
def test_converters_that_change_bytes_are_warned_of(given: Mapping[str, str], warned: list[str]) -> None:
    assert [advice.key for advice in MirrorSourceConnector.advise(config(given))] == warned


def test_partitions_of_a_task_are_written_as_mirror_maker_does() -> None:
    places = [("a-b", 0), ("a", 12)]
    assert format_partitions(places) == "a-b-0,a-12"
    assert parse_partitions(format_partitions(places)) == places


@pytest.mark.parametrize("connector", [MirrorSourceConnector, MirrorCheckpointConnector, MirrorHeartbeatConnector])
def test_what_is_disabled_has_no_tasks(
    connector: type[MirrorSourceConnector | MirrorCheckpointConnector | MirrorHeartbeatConnector],
) -> None:
    disabled = connector(connector.config_class.parse({**LEAST, "enabled": "false"}), FakeConnectorContext())
    disabled.start()
    assert disabled.task_configs(3) == []
    disabled.stop()


@pytest.mark.parametrize(
    ("partition", "offset", "is_right"),
    [
        ({"cluster": "us", "topic": "t", "partition": 0}, {"offset": 5}, True),
        ({"nonsense": 1}, None, True),
        ({"cluster": "us", "topic": "t"}, {"offset": 5}, False),
        ({"topic": "t", "partition": 0}, {"offset": 5}, False),
        ({"cluster": "us", "topic": "t", "partition": -1}, {"offset": 5}, False),
        ({"cluster": "us", "topic": "t", "partition": 0}, {"offset": "5"}, False),
        ({"cluster": "us", "topic": "t", "partition": 0}, {}, False),
    ],
)
def test_offsets_are_changed_by_hand_if_they_make_sense(
    partition: dict[str, object], offset: dict[str, object] | None, is_right: bool
) -> None:
    connector = MirrorSourceConnector(config(), FakeConnectorContext())
    try:
        connector.alter_offsets([(partition, offset)])
        assert is_right
    except ConnectError:
        assert not is_right
