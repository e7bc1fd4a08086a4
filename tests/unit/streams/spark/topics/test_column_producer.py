from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from kafka.partitioner.default import murmur2

from core_broker.client.admin import Admin
from core_broker.client.errors import Rejected
from core_broker.client.settings import ClientSettings
from streams.spark.topics.column_producer import ANY_PARTITION, ColumnProducer, NotSent
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes


@pytest.fixture
def cluster(broker: BrokerProcess) -> ClientSettings:
    """Settings that reach a running broker."""
    return ClientSettings(bootstrap_servers=broker.bootstrap, properties={"log_level": "0"})


@pytest.fixture
def topic(cluster: ClientSettings, name: str) -> str:
    """A topic of this test's own, with four partitions, that keeps records of any age."""
    Admin(cluster).create_topic(name, partitions=4, configs={"retention.ms": "-1"})
    return name


@pytest.fixture
def producer(cluster: ClientSettings) -> Iterator[ColumnProducer]:
    """A producer for the running broker."""
    made = ColumnProducer(cluster)
    yield made
    made.close()


def consumed(cluster: ClientSettings, topic: str, count: int, partitions: int = 1) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    messages = consumer.consume(count, 30)
    consumer.close()
    return messages


def test_columns_become_records(cluster: ClientSettings, topic: str, producer: ColumnProducer) -> None:
    headers = [[("a", b"1"), ("b", None)], None]
    producer.send(topic, [b"v", None], keys=[None, b"k"], partitions=[0, 0], headers=headers)
    producer.flush()
    found = [(message.key(), message.value(), message.headers()) for message in consumed(cluster, topic, 2)]
    assert found == [(None, b"v", headers[0]), (b"k", None, None)]


def test_each_record_may_have_a_topic_of_its_own(
    broker: BrokerProcess, cluster: ClientSettings, name: str, producer: ColumnProducer
) -> None:
    create_topic(broker, f"{name}-a")
    create_topic(broker, f"{name}-b")
    producer.send([f"{name}-a", f"{name}-b", f"{name}-a"], [b"1", b"2", b"3"])
    producer.flush()
    assert [message.value() for message in consumed(cluster, f"{name}-a", 2)] == [b"1", b"3"]
    assert [message.value() for message in consumed(cluster, f"{name}-b", 1)] == [b"2"]


def test_keys_go_where_java_puts_them(
    broker: BrokerProcess, cluster: ClientSettings, name: str, producer: ColumnProducer
) -> None:
    create_topic(broker, name, partitions=10)
    keys = [b"a", b"b", b"foobar"]
    producer.send(name, keys, keys=keys, partitions=[ANY_PARTITION] * 3)
    producer.flush()
    found = {message.key(): message.partition() for message in consumed(cluster, name, 3, partitions=10)}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 10 for key in keys}


def test_more_records_than_the_queue_holds_are_sent(cluster: ClientSettings, topic: str) -> None:
    small = ClientSettings(
        bootstrap_servers=cluster.bootstrap_servers, properties={"queue.buffering.max.messages": "100"}
    )
    producer = ColumnProducer(small)
    producer.send(topic, [b"%d" % number for number in range(5000)], partitions=[0] * 5000)
    producer.flush()
    producer.close()
    assert [message.value() for message in consumed(cluster, topic, 5000)] == [b"%d" % number for number in range(5000)]


def test_a_record_that_is_refused_is_told_with_its_topic_and_the_reason(
    broker: BrokerProcess, name: str, producer: ColumnProducer
) -> None:
    create_topic(broker, name, configs={"max.message.bytes": "1000"})
    with pytest.raises(NotSent, match=f"could not be written to topic {name}: .*too large") as caught:
        producer.send(name, [b"small", bytes(5000)])
        producer.flush()
    assert caught.value.topic == name
    assert isinstance(caught.value.reason, Rejected)


def test_a_missing_partition_raises_not_sent(cluster: ClientSettings, topic: str, producer: ColumnProducer) -> None:
    with pytest.raises(NotSent, match=f"could not be written to topic {topic}: .*partition"):
        producer.send(topic, [b"1"], partitions=[99])
        producer.flush()
