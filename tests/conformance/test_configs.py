"""Configs of topics and brokers: described, altered, refused with a reason."""

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource as PureConfigResource
from kafka.admin import ConfigResourceType as PureConfigResourceType

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.model import TIMEOUT_S
from tests.support.patience import eventually_async

BROKER_WIDE = {ConfigSource.STATIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG}
DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def describe(broker: BrokerProcess, resource: ConfigResource) -> dict[str, ConfigEntry]:
    (found,) = admin_client(broker).describe_configs([resource]).values()
    entries: dict[str, ConfigEntry] = found.result(TIMEOUT_S)
    return entries


def topic(name: str, *changes: ConfigEntry) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=list(changes) or None)


def change(key: str, value: str | None, operation: AlterConfigOpType = AlterConfigOpType.SET) -> ConfigEntry:
    return ConfigEntry(key, value, incremental_operation=operation)


def alter(broker: BrokerProcess, resource: ConfigResource) -> None:
    (done,) = admin_client(broker).incremental_alter_configs([resource]).values()
    done.result(TIMEOUT_S)


def await_value(broker: BrokerProcess, name: str, key: str, expected: str) -> None:
    """Whichever broker is asked knows of a change in a moment."""
    eventually(lambda: describe(broker, topic(name))[key].value, lambda value: value == expected)


@pytest.fixture(scope="module")
def new_topic_configs(broker: BrokerProcess) -> dict[str, ConfigEntry]:
    create_topic(broker, "a-new-topic")
    return describe(broker, topic("a-new-topic"))


@pytest.mark.parametrize("key", DEFAULTS)
def test_a_new_topic_has_kafkas_defaults(new_topic_configs: dict[str, ConfigEntry], key: str) -> None:
    entry = new_topic_configs[key]
    assert entry.value == DEFAULTS[key]
    assert entry.is_default or ConfigSource(entry.source) in BROKER_WIDE


def test_configs_given_at_creation_are_kept(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.ms": "12345", "cleanup.policy": "compact"})
    found = describe(broker, topic(name))
    assert found["retention.ms"].value == "12345"
    assert ConfigSource(found["retention.ms"].source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert found["cleanup.policy"].value == "compact"


def test_configs_are_altered_one_by_one(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.ms": "1000"})
    alter(broker, topic(name, change("segment.ms", "5000"), change("max.message.bytes", "2000000")))
    await_value(broker, name, "retention.ms", "1000")
    await_value(broker, name, "segment.ms", "5000")
    alter(broker, topic(name, change("segment.ms", None, AlterConfigOpType.DELETE)))
    await_value(broker, name, "segment.ms", DEFAULTS["segment.ms"])
    await_value(broker, name, "max.message.bytes", "2000000")


def test_lists_can_be_appended_to_and_subtracted_from(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    alter(broker, topic(name, change("cleanup.policy", "compact", AlterConfigOpType.APPEND)))
    await_value(broker, name, "cleanup.policy", "delete,compact")
    alter(broker, topic(name, change("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)))
    await_value(broker, name, "cleanup.policy", "compact")


@pytest.mark.parametrize(
    "key,value",
    [
        ("retention.ms", "soon"),
        ("cleanup.policy", "shred"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("compression.type", "rar"),
        ("max.message.bytes", "-5"),
        ("no.such.config", "1"),
        ("preallocate", "perhaps"),
    ],
)
def test_bad_values_are_refused_and_the_reason_names_them(
    broker: BrokerProcess, name: str, key: str, value: str
) -> None:
    create_topic(broker, name)
    with pytest.raises(KafkaException) as failure:
        alter(broker, topic(name, change(key, value)))
    error = failure.value.args[0]
    assert error.code() == KafkaError.INVALID_CONFIG
    assert key in error.str()
    with pytest.raises(KafkaException) as failure:
        create_topic(broker, f"{name}-2", configs={key: value})
    assert failure.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_the_older_alter_replaces_everything(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.ms": "1000", "segment.ms": "2000"})
    resource = ConfigResource(ResourceType.TOPIC, name, set_config={"retention.ms": "3000"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        (done,) = admin_client(broker).alter_configs([resource]).values()
    done.result(TIMEOUT_S)
    await_value(broker, name, "retention.ms", "3000")
    await_value(broker, name, "segment.ms", DEFAULTS["segment.ms"])


def test_aiokafka_alters_and_describes(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)

    async def described(admin: AIOKafkaAdminClient) -> str:
        (answer,) = await admin.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, name)])
        value: str = {entry[0]: entry[1] for entry in answer.resources[0][4]}["retention.ms"]
        return value

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            changed = AioConfigResource(AioConfigResourceType.TOPIC, name, configs={"retention.ms": "777"})
            await admin.alter_configs([changed])
            await eventually_async(lambda: described(admin), lambda value: value == "777")
        finally:
            await admin.close()

    asyncio.run(run())
    await_value(broker, name, "retention.ms", "777")


def test_kafka_python_alters_and_describes(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.alter_configs([PureConfigResource(PureConfigResourceType.TOPIC, name, {"retention.ms": "888"})])
        resource = PureConfigResource(PureConfigResourceType.TOPIC, name)
        eventually(lambda: "888" in str(admin.describe_configs([resource])))
    finally:
        admin.close()
    await_value(broker, name, "retention.ms", "888")


def test_the_broker_describes_its_own_configs(broker: BrokerProcess) -> None:
    node = next(iter(admin_client(broker).list_topics(timeout=TIMEOUT_S).brokers))
    found = describe(broker, ConfigResource(ResourceType.BROKER, str(node)))
    assert found["log.segment.bytes"].value == "1073741824"
    assert found["group.initial.rebalance.delay.ms"].value == "0"
    assert not found["group.initial.rebalance.delay.ms"].is_default


def test_a_broker_config_is_changed_while_it_runs(broker: BrokerProcess) -> None:
    node = next(iter(admin_client(broker).list_topics(timeout=TIMEOUT_S).brokers))
    for operation, expected in ((AlterConfigOpType.SET, "987654"), (AlterConfigOpType.DELETE, "1048588")):
        entry = change("message.max.bytes", "987654", operation)
        alter(broker, ConfigResource(ResourceType.BROKER, str(node), incremental_configs=[entry]))
        resource = ConfigResource(ResourceType.BROKER, str(node))
        eventually(lambda: describe(broker, resource)["message.max.bytes"].value, lambda value: value == expected)  # noqa: B023


def test_an_unknown_topic_has_no_configs(broker: BrokerProcess, name: str) -> None:
    with pytest.raises(KafkaException) as failure:
        describe(broker, topic(name))
    assert failure.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
