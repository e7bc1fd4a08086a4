import socket

import pytest

from core_broker.service.properties import from_environment
from core_broker.service.settings import LONG_MAX, SettingsError
from core_broker.settings import BrokerSettings, GroupSettings, Listener, TopicSettings
from core_broker.settings.cluster import RACK_AWARE_SELECTOR


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
        ({"listeners": "SSL://h:1"}, "a server needs a certificate"),
        ({"advertised_listeners": "OTHER://h:1"}, "OTHER must also be one of listeners"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "a host that clients can connect to"),
        ({"inter_broker_listener_name": "OTHER"}, "must be one of PLAINTEXT"),
        ({"sasl_kerberos_service_name": "kafka"}, "GSSAPI"),
        ({"zookeeper_connect": "h:2181"}, "there is no ZooKeeper"),
        ({"max_connections_per_ip_overrides": "10.0.0.7"}, "address:count pairs"),
        ({"group_min_session_timeout_ms": "2000000"}, "at most group.max.session.timeout.ms=1800000"),
        ({"process_roles": "worker"}, "must be one or more of broker, controller"),
        ({"process_roles": ""}, "must be one or more of broker, controller"),
        ({"controller_quorum_voters": "localhost:9093"}, "must be id@host:port"),
        ({"controller_quorum_voters": "1@a:b:9093"}, "must be id@host:port"),
        ({"controller_quorum_voters": "1@a:9093,1@b:9093"}, "must contain each node once"),
        ({"controller_quorum_bootstrap_servers": "localhost"}, "must be host:port"),
        ({"controller_listener_names": ""}, "must be not empty"),
        ({"broker_heartbeat_interval_ms": "9000"}, "must be less than broker.session.timeout.ms=9000"),
        ({"replica_lag_time_max_ms": "499"}, "must be at most replica.lag.time.max.ms=499"),
        ({"replica_socket_timeout_ms": "499"}, "must be at most replica.socket.timeout.ms=499"),
        ({"replica_selector_class": "org.example.Nearest"}, "RackAwareReplicaSelector"),
        (
            {"inter_broker_listener_name": "PLAINTEXT", "security_inter_broker_protocol": "PLAINTEXT"},
            "must not be set together with security.inter.broker.protocol",
        ),
        ({"security_inter_broker_protocol": "TLS"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"transaction_two_phase_commit_enable": "true"}, "must be false"),
        ({"connections_max_reauth_ms": "-1"}, "must be at least 0"),
        ({"sasl_server_max_receive_size": "0"}, "must be at least 1"),
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


# -- clusters ----------------------------------------------------------------------------------------------------------

BOTH = "PLAINTEXT://:9092,CONTROLLER://:9093"
CLIENTS = "listeners=PLAINTEXT://:9092"
VOTERS = "1@a:9093,2@b:9093,3@c:9093"


@pytest.mark.parametrize(
    "values",
    [
        {"node.id": "2", "listeners": BOTH, "controller.quorum.voters": VOTERS},
        {"listeners": BOTH, "controller.quorum.bootstrap.servers": "a:9093,b:9093"},
        {"listeners": BOTH, "controller.quorum.voters": VOTERS, "controller.quorum.bootstrap.servers": "a:9093"},
        {"process.roles": "controller", "listeners": "CONTROLLER://:9093", "controller.quorum.voters": VOTERS},
        {"process.roles": "broker", "node.id": "4", "controller.quorum.voters": VOTERS},
        {"process.roles": "broker", "controller.quorum.bootstrap.servers": "a:9093"},
        {"listeners": BOTH, "advertised.listeners": "PLAINTEXT://a:9092,CONTROLLER://a:9093"},
        {"controller.quorum.auto.join.enable": "true", "replica.selector.class": RACK_AWARE_SELECTOR},
    ],
)
def test_every_node_of_a_cluster_is_accepted(values: dict[str, str]) -> None:
    BrokerSettings.parse(values)


@pytest.mark.parametrize(
    "values,problem",
    [
        (
            {"process.roles": "broker"},
            "controller.quorum.bootstrap.servers=: must be host:port of the controllers, because process.roles=broker",
        ),
        (
            {"process.roles": "broker", "controller.quorum.voters": VOTERS},
            f"controller.quorum.voters={VOTERS}: must not contain node.id=1, because process.roles=broker",
        ),
        (
            {"process.roles": "broker", "controller.quorum.bootstrap.servers": "a:9093", "listeners": BOTH},
            f"listeners={BOTH}: must not contain controller.listener.names if process.roles=broker: CONTROLLER",
        ),
        (
            {
                "process.roles": "broker",
                "controller.quorum.bootstrap.servers": "a:9093",
                "controller.quorum.auto.join.enable": "true",
            },
            "controller.quorum.auto.join.enable=true: needs process.roles to contain controller",
        ),
        (
            {
                "process.roles": "broker",
                "controller.quorum.bootstrap.servers": "a:9093",
                "controller.listener.names": "ODD",
            },
            "controller.listener.names=ODD: listener.security.protocol.map must contain the protocol of ODD",
        ),
        (
            {"node.id": "4", "listeners": BOTH, "controller.quorum.voters": VOTERS},
            f"controller.quorum.voters={VOTERS}: must contain node.id=4, because process.roles has the controller",
        ),
        (
            {"controller.quorum.voters": VOTERS},
            f"{CLIENTS}: must contain controller.listener.names, because process.roles has the controller: CONTROLLER",
        ),
        (
            {"process.roles": "controller", "listeners": BOTH},
            f"listeners={BOTH}: must contain only controller.listener.names if process.roles=controller: CONTROLLER",
        ),
        (
            {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "CONTROLLER://a:9093"},
            "advertised.listeners=CONTROLLER://a:9093: CONTROLLER must also be one of listeners",
        ),
    ],
)
def test_roles_that_contradict_the_quorum_or_the_listeners_are_refused(values: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        BrokerSettings.parse(values)
    assert str(caught.value).splitlines() == [problem]


def test_roles_are_both_unless_set() -> None:
    both = BrokerSettings()
    assert (both.is_broker, both.is_controller) == (True, True)
    broker = BrokerSettings(process_roles=("broker",))
    assert (broker.is_broker, broker.is_controller) == (True, False)


@pytest.mark.parametrize(
    "servers", ["a:9093,b:9093", "localhost:9093,other:9093", "other:9093", "localhost:9095", "other.localhost:9093"]
)
def test_a_node_that_is_given_other_controllers_joins_their_cluster(servers: str) -> None:
    settings = BrokerSettings.parse({"listeners": BOTH, "controller.quorum.bootstrap.servers": servers})
    assert not settings.forms_cluster


@pytest.mark.parametrize("host", ["localhost", "[::1]", "node-1", socket.gethostname(), f"{socket.gethostname()}.svc"])
def test_a_node_that_names_only_itself_forms_a_cluster(host: str) -> None:
    values = {"listeners": "PLAINTEXT://:9092,CONTROLLER://node-1:9093"}
    assert BrokerSettings.parse({**values, "controller.quorum.bootstrap.servers": f"{host}:9093"}).forms_cluster


def test_a_node_is_known_by_its_advertised_controller_listener() -> None:
    advertised = "PLAINTEXT://public:9092,CONTROLLER://public:19093"
    values = {"listeners": BOTH, "advertised.listeners": advertised}
    assert BrokerSettings.parse({**values, "controller.quorum.bootstrap.servers": "public:19093"}).forms_cluster


def test_a_host_for_clients_may_be_that_of_several_nodes() -> None:
    values = {"listeners": BOTH, "advertised.listeners": "PLAINTEXT://shared:9092"}
    assert not BrokerSettings.parse({**values, "controller.quorum.bootstrap.servers": "shared:9093"}).forms_cluster


def test_a_voter_is_this_node_by_its_id_alone() -> None:
    own = {"listeners": BOTH, "controller.quorum.voters": "1@elsewhere:19093"}
    assert BrokerSettings.parse(own).forms_cluster
    assert not BrokerSettings.parse({**own, "controller.quorum.voters": VOTERS}).forms_cluster


def test_only_controllers_form_a_cluster() -> None:
    assert BrokerSettings().forms_cluster
    assert not BrokerSettings(process_roles=("broker",)).forms_cluster


def test_addresses_of_the_quorum_are_the_bootstrap_servers_or_else_the_voters() -> None:
    settings = BrokerSettings(controller_quorum_voters=("1@a:9093", "2@[::1]:9095"))
    assert settings.static_voters == ((1, "a", 9093), (2, "::1", 9095))
    assert settings.quorum_servers == (("a", 9093), ("::1", 9095))
    assert settings.replace(controller_quorum_bootstrap_servers=("[fe80::1]:1",)).quorum_servers == (("fe80::1", 1),)


def test_controller_listener_is_the_first_of_its_names_that_this_node_has() -> None:
    assert BrokerSettings().controller_listener is None
    values = {
        "listeners": "PLAINTEXT://:9092,ONE://:1,TWO://:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ONE:PLAINTEXT,TWO:PLAINTEXT",
        "controller.listener.names": "three, two, one",
    }
    settings = BrokerSettings.parse(values)
    assert settings.controller_listener == Listener("TWO", "", 2)
    assert settings.broker_listeners == (Listener("PLAINTEXT", "", 9092),)


@pytest.mark.parametrize(
    "listeners,chosen,expected",
    [
        ("PLAINTEXT://:9092", None, "PLAINTEXT"),
        ("OUT://:9093,PLAINTEXT://:9092", None, "PLAINTEXT"),
        ("OUT://:9093,IN://:9092", None, "OUT"),
        ("OUT://:9093,IN://:9092", "in", "IN"),
    ],
)
def test_brokers_meet_on_the_listener_that_is_chosen_for_them(listeners: str, chosen: str, expected: str) -> None:
    values = {
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,IN:PLAINTEXT,OUT:PLAINTEXT",
    }
    settings = BrokerSettings.parse(values | ({"inter.broker.listener.name": chosen} if chosen else {}))
    assert settings.inter_broker_listener == expected


def test_defaults_of_a_cluster_are_kafkas() -> None:
    settings = BrokerSettings()
    assert settings.controller_quorum_election_timeout_ms == 1000
    assert settings.controller_quorum_election_backoff_max_ms == 1000
    assert settings.controller_quorum_fetch_timeout_ms == 2000
    assert settings.controller_quorum_request_timeout_ms == 2000
    assert settings.controller_quorum_retry_backoff_ms == 20
    assert settings.controller_quorum_fetch_max_bytes == 1_048_576
    assert settings.controller_quorum_fetch_snapshot_max_bytes == 1_048_576
    assert not settings.controller_quorum_auto_join_enable
    assert settings.broker_heartbeat_interval_ms == 2000
    assert settings.broker_session_timeout_ms == 9000
    assert settings.initial_broker_registration_timeout_ms == 60_000
    assert settings.metadata_max_idle_interval_ms == 500
    assert settings.replica_lag_time_max_ms == 30_000
    assert settings.replica_fetch_max_bytes == 1_048_576
    assert settings.replica_fetch_response_max_bytes == 10_485_760
    assert settings.replica_fetch_wait_max_ms == 500
    assert settings.replica_fetch_backoff_ms == 1000
    assert settings.replica_socket_timeout_ms == 30_000
    assert settings.replica_socket_receive_buffer_bytes == 65_536
    assert settings.leader_imbalance_check_interval_seconds == 300


def test_settings_that_kafka_has_removed_are_accepted_and_named_at_the_start() -> None:
    values = {"leader.imbalance.per.broker.percentage": "9", "controlled.shutdown.max.retries": "2"}
    BrokerSettings.parse(values)
    assert BrokerSettings.ignored(values).keys() == values.keys()


def test_a_setting_without_effect_is_still_checked() -> None:
    with pytest.raises(SettingsError, match="whole number"):
        TopicSettings.parse({"local.retention.ms": "many"})
