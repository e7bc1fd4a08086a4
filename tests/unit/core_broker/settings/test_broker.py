import socket

import pytest

from core_broker.service.properties import from_environment
from core_broker.service.settings import LONG_MAX, SettingsError
from core_broker.settings import BrokerSettings, GroupSettings, Listener, TopicSettings


def reasons(**values: str) -> str:
    with pytest.raises(SettingsError) as caught:
        BrokerSettings.parse({key.replace("_", "."): value for key, value in values.items()})
    return str(caught.value)


def test_every_setting_has_help() -> None:
    classes = (BrokerSettings, TopicSettings, GroupSettings)
    assert [key for cls in classes for key in cls.DEFINITIONS if not cls.help_of(key)] == []


def test_every_default_is_accepted_by_its_own_definition() -> None:
    for cls in (BrokerSettings, TopicSettings, GroupSettings):
        texts = {key: d.text(d.default) for key, d in cls.DEFINITIONS.items()}
        assert cls.parse({key: text for key, text in texts.items() if text}) == cls()


def test_defaults_are_kafkas() -> None:
    settings = BrokerSettings()
    assert settings.log_segment_bytes == 1 << 30
    assert settings.log_flush_interval_messages == LONG_MAX
    assert settings.group_initial_rebalance_delay_ms == 3000
    assert settings.message_max_bytes == 1_048_588
    assert settings.offsets_topic_replication_factor == 3
    assert settings.fetch_max_bytes == 57_671_680


def test_environment_of_kafkas_own_image_is_accepted() -> None:
    environment = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_NUM_NETWORK_THREADS": "3",
    }
    values = from_environment(environment, "KAFKA_")
    settings = BrokerSettings.parse(values)
    assert settings.broker_listeners == (Listener("PLAINTEXT", "0.0.0.0", 9092),)
    assert set(BrokerSettings.ignored(values)) == {
        "share.coordinator.state.topic.replication.factor",
        "num.network.threads",
    }


def test_node_id_may_be_called_broker_id() -> None:
    assert BrokerSettings.parse({"broker.id": "7"}).node_id == 7


@pytest.mark.parametrize(
    "text,expected",
    [
        ("PLAINTEXT://:0", [Listener("PLAINTEXT", "", 0)]),
        ("plaintext://[::1]:9092", [Listener("PLAINTEXT", "::1", 9092)]),
        ("IN://a:1, OUT://b:2", [Listener("IN", "a", 1), Listener("OUT", "b", 2)]),
    ],
)
def test_listeners_are_read(text: str, expected: list[Listener]) -> None:
    protocols = "IN:PLAINTEXT,OUT:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    settings = BrokerSettings.parse({"listeners": text, "listener.security.protocol.map": protocols})
    assert list(settings.listeners) == expected
    assert settings.text_of("listeners") == ",".join(map(str, expected))


@pytest.mark.parametrize(
    "values,reason",
    [
        ({"listeners": "localhost:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://h:99999"}, "NAME://host:port"),
        ({"listeners": ""}, "NAME://host:port"),
        ({"listeners": "A://h:1,A://h:2"}, "each listener once"),
        ({"listeners": "PLAINTEXT://h:1,SSL://h:1"}, "its own port"),
        ({"listeners": "ODD://h:1"}, "listener.security.protocol.map must contain the protocol of ODD"),
        ({"listeners": "CONTROLLER://h:1"}, "not one of controller.listener.names"),
        ({"listeners": "SSL://h:1"}, "security is not supported yet"),
        ({"advertised_listeners": "OTHER://h:1"}, "OTHER must also be one of listeners"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "a host that clients can connect to"),
        ({"inter_broker_listener_name": "OTHER"}, "must be one of PLAINTEXT"),
        ({"sasl_enabled_mechanisms": "PLAIN"}, "security is not supported yet"),
        ({"zookeeper_connect": "h:2181"}, "there is no ZooKeeper"),
        ({"max_connections_per_ip_overrides": "10.0.0.7"}, "address:count pairs"),
        ({"group_min_session_timeout_ms": "2000000"}, "at most group.max.session.timeout.ms=1800000"),
        ({"process_roles": "broker"}, "must be broker,controller"),
        ({"process_roles": "controller"}, "must be broker,controller"),
        ({"controller_quorum_voters": "localhost:9093"}, "must be id@host:port"),
        ({"controller_quorum_bootstrap_servers": "localhost"}, "must be host:port"),
        ({"security_inter_broker_protocol": "SASL_SSL"}, "must be PLAINTEXT"),
        ({"transaction_two_phase_commit_enable": "true"}, "must be false"),
        ({"connections_max_reauth_ms": "60000"}, "security is not supported yet"),
        ({"sasl_server_max_receive_size": "60000"}, "security is not supported yet"),
    ],
)
def test_wrong_listeners_and_contradictions_are_refused(values: dict[str, str], reason: str) -> None:
    assert reason in reasons(**values)


def test_addresses_of_registries_are_checked() -> None:
    assert "http://" in reasons(confluent_schema_registry_url="localhost:8081")
    settings = BrokerSettings.parse({"confluent.schema.registry.url": "http://a:8081, https://b:8081/"})
    assert settings.confluent_schema_registry_url == ("http://a:8081", "https://b:8081/")


def test_credentials_for_the_registry_must_be_there_and_are_never_told() -> None:
    assert "user:password" in reasons(confluent_basic_auth_credentials_source="USER_INFO")
    assert "******" in reasons(confluent_basic_auth_user_info="no-colon")
    assert "s3cret" not in repr(BrokerSettings.parse({"confluent.basic.auth.user.info": "broker:s3cret"}))


def test_a_node_of_a_cluster_of_several_is_refused_rather_than_started_as_a_cluster_of_its_own() -> None:
    text = reasons(node_id="2", controller_quorum_voters="1@a:9093,2@b:9093,3@c:9093")
    assert text.startswith("controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093: only node.id=2 is allowed")
    assert "this node is the whole cluster" in text


CONTROLLER = "PLAINTEXT://:9092,CONTROLLER://:9093"


@pytest.mark.parametrize(
    "servers", ["a:9093,b:9093", "localhost:9093,other:9093", "other:9093", "localhost:9095", "other.localhost:9093"]
)
def test_controllers_of_other_nodes_are_refused(servers: str) -> None:
    text = reasons(listeners=CONTROLLER, controller_quorum_bootstrap_servers=servers)
    assert text.startswith(f"controller.quorum.bootstrap.servers={servers}: only the controller listener of this node")


@pytest.mark.parametrize("host", ["localhost", "[::1]", "node-1", socket.gethostname(), f"{socket.gethostname()}.svc"])
def test_the_node_itself_may_be_named_as_the_only_controller(host: str) -> None:
    values = {"listeners": CONTROLLER, "advertised.listeners": "PLAINTEXT://node-1:9092"}
    settings = BrokerSettings.parse({**values, "controller.quorum.bootstrap.servers": f"{host}:9093"})
    assert settings.controller_quorum_bootstrap_servers == (f"{host}:9093",)


def test_settings_that_wait_for_replication_are_accepted_and_named_at_the_start() -> None:
    values = {"replica.lag.time.max.ms": "9", "num.replica.fetchers": "2", "controlled.shutdown.enable": "true"}
    BrokerSettings.parse(values)
    assert BrokerSettings.ignored(values).keys() == values.keys()


def test_a_setting_without_effect_is_still_checked() -> None:
    assert "whole number" in reasons(num_replica_fetchers="many")
