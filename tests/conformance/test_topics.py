"""Topics: created, grown, deleted, described and made by themselves, through each admin client."""

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka import KafkaAdminClient
from kafka.admin import NewTopic as PureNewTopic

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.kcat import KCAT, run
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.kafka import start_class
from tests.support.patience import eventually_async


def partitions_of(broker: BrokerProcess, topic: str) -> int:
    """Partitions as a fresh client sees them; 0 for a topic that is not there."""
    found = admin_client(broker).list_topics(timeout=TIMEOUT_S).topics.get(topic)
    return 0 if found is None else len(found.partitions)


def error_code(failure: KafkaException) -> int:
    code: int = failure.args[0].code()
    return code


def test_confluent_creates_grows_and_deletes(broker: BrokerProcess, name: str) -> None:
    admin = admin_client(broker)
    admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)])[name].result(TIMEOUT_S)
    eventually(lambda: partitions_of(broker, name), lambda count: count == 3)
    admin.create_partitions([NewPartitions(name, 5)])[name].result(TIMEOUT_S)
    eventually(lambda: partitions_of(broker, name), lambda count: count == 5)
    admin.delete_topics([name])[name].result(TIMEOUT_S)
    eventually(lambda: partitions_of(broker, name), lambda count: count == 0)


def test_aiokafka_creates_grows_and_deletes(broker: BrokerProcess, name: str) -> None:
    async def partitions(admin: AIOKafkaAdminClient) -> int:
        (described,) = await admin.describe_topics([name])
        return len(described["partitions"])

    async def is_listed(admin: AIOKafkaAdminClient) -> bool:
        return name in await admin.list_topics()

    async def run_all() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic(name, num_partitions=3, replication_factor=1)])
            await eventually_async(lambda: partitions(admin), lambda count: count == 3)
            await eventually_async(lambda: is_listed(admin))
            await admin.create_partitions({name: AioNewPartitions(total_count=5)})
            await eventually_async(lambda: partitions(admin), lambda count: count == 5)
            await admin.delete_topics([name])
            await eventually_async(lambda: is_listed(admin), lambda listed: not listed)
        finally:
            await admin.close()

    asyncio.run(run_all())


def test_kafka_python_creates_grows_and_deletes(broker: BrokerProcess, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.create_topics([PureNewTopic(name, num_partitions=3, replication_factor=1)])
        eventually(lambda: name in admin.list_topics())
        admin.create_partitions({name: 5})
        eventually(lambda: len(admin.describe_topics([name])[0]["partitions"]), lambda count: count == 5)
        admin.delete_topics([name])
        eventually(lambda: name not in admin.list_topics())
    finally:
        admin.close()


@pytest.mark.kcat
@pytest.mark.skipif(KCAT is None, reason="the command kcat is not installed")
def test_kcat_lists_topics_and_brokers(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    listing = run(["-L", "-b", broker.bootstrap, "-t", name])
    assert f'topic "{name}" with 2 partitions' in listing
    assert all(node.address in listing for node in broker.nodes)
    assert "leader" in listing
    assert "isrs" in listing


def test_an_existing_topic_is_not_created_again(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with pytest.raises(KafkaException) as failure:
        create_topic(broker, name)
    assert error_code(failure.value) == KafkaError.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("bad", [".", "..", "with space", "slash/../../etc", "ä", "x" * 250])
def test_names_that_are_not_allowed_are_refused(broker: BrokerProcess, bad: str) -> None:
    with pytest.raises(KafkaException) as failure:
        create_topic(broker, bad)
    assert error_code(failure.value) == KafkaError.TOPIC_EXCEPTION


def test_partitions_cannot_be_taken_away(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=3)
    with pytest.raises(KafkaException) as failure:
        admin_client(broker).create_partitions([NewPartitions(name, 2)])[name].result(TIMEOUT_S)
    assert error_code(failure.value) == KafkaError.INVALID_PARTITIONS


def test_more_replicas_than_brokers_are_refused(broker: BrokerProcess, name: str) -> None:
    with pytest.raises(KafkaException) as failure:
        admin_client(broker).create_topics([NewTopic(name, 1, len(broker.nodes) + 1)])[name].result(TIMEOUT_S)
    assert error_code(failure.value) == KafkaError.INVALID_REPLICATION_FACTOR


def test_validate_only_creates_nothing(broker: BrokerProcess, name: str) -> None:
    admin = admin_client(broker)
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(TIMEOUT_S)
    assert partitions_of(broker, name) == 0


def test_an_unknown_topic_cannot_be_deleted(broker: BrokerProcess, name: str) -> None:
    with pytest.raises(KafkaException) as failure:
        admin_client(broker).delete_topics([name])[name].result(TIMEOUT_S)
    assert error_code(failure.value) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_created_again_starts_empty_with_a_new_id(broker: BrokerProcess, name: str) -> None:
    admin = admin_client(broker)
    ids = []
    for round_number in range(2):
        create_topic(broker, name)
        described = admin.describe_topics(TopicCollection([name]))[name].result(TIMEOUT_S)
        ids.append(str(described.topic_id))
        ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"%d" % round_number, partition=0)])
        (record,) = ConfluentClient().consume(broker.bootstrap, name, 1)
        assert (record.offset, record.value) == (0, b"%d" % round_number)
        admin.delete_topics([name])[name].result(TIMEOUT_S)
        eventually(lambda: partitions_of(broker, name), lambda count: count == 0)
    assert ids[0] != ids[1]


def test_description_tells_leader_replicas_and_isr(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    described = admin_client(broker).describe_topics(TopicCollection([name]))[name].result(TIMEOUT_S)
    assert described.name == name
    assert not described.is_internal
    assert [partition.id for partition in described.partitions] == [0, 1]
    ports = {node.node_id: node.port for node in broker.nodes}
    for partition in described.partitions:
        assert partition.leader.port == ports[partition.leader.id]
        assert partition.leader.id == partition.replicas[0].id, "the first replica is preferred"
        assert {node.id: node.port for node in partition.replicas} == ports
        assert {node.id for node in partition.isr} == set(ports)


def test_topics_are_made_when_a_producer_names_them(broker: BrokerProcess, name: str) -> None:
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"hello")])
    eventually(lambda: partitions_of(broker, name), lambda count: count == 1)


def test_topics_are_not_made_when_the_broker_forbids_it(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    directory = tmp_path_factory.mktemp("strict")
    with start_class()(directory, settings={"auto.create.topics.enable": "false"}) as strict:
        producer = Producer({"bootstrap.servers": strict.bootstrap, "message.timeout.ms": 3000})
        failures: list[object] = []
        producer.produce(name, b"v", on_delivery=lambda error, _: failures.append(error.code() if error else None))
        producer.flush(TIMEOUT_S)
        assert failures
        assert failures[0] in {KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._MSG_TIMED_OUT}
        assert partitions_of(strict, name) == 0


def test_the_cluster_describes_itself(broker: BrokerProcess) -> None:
    described = admin_client(broker).describe_cluster().result(TIMEOUT_S)
    assert {node.id: node.port for node in described.nodes} == {node.node_id: node.port for node in broker.nodes}
    assert described.controller.id in {node.node_id for node in broker.nodes}
    assert len(described.cluster_id) == 22
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        assert admin.describe_cluster()["cluster_id"] == described.cluster_id
    finally:
        admin.close()
