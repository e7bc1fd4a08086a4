import pytest

from core_broker.client.consumer import Consumer
from core_broker.client.errors import NotFound, Unreachable
from core_broker.client.producer import Producer
from core_broker.client.records import IncomingRecord, OutgoingRecord
from core_broker.client.settings import ClientSettings

pytestmark = pytest.mark.processes


def read_until(consumer: Consumer, count: int) -> list[IncomingRecord]:
    records: list[IncomingRecord] = []
    for _ in range(100):
        records += consumer.read(count - len(records), timeout_ms=100)
        if len(records) >= count:
            return records
    raise AssertionError(f"only {len(records)} of {count} records came")


def test_record_comes_back_as_it_was_sent(cluster: ClientSettings, topic: str) -> None:
    sent = OutgoingRecord(
        topic=topic,
        key=b"k",
        value=None,
        headers=(("a", b"1"), ("a", b"2"), ("none", None)),
        partition=2,
        timestamp_ms=1_700_000_000_000,
    )
    with Producer(cluster) as producer:
        producer.send(sent)
    with Consumer(cluster) as consumer:
        consumer.assign({(topic, 2): 0})
        (record,) = read_until(consumer, 1)
    assert (record.key, record.value, record.headers) == (b"k", None, sent.headers)
    assert (record.topic, record.partition, record.offset) == (topic, 2, 0)
    assert (record.timestamp_ms, record.timestamp_type) == (1_700_000_000_000, "CreateTime")


def test_reading_begins_at_the_given_offset_and_notes_the_end(cluster: ClientSettings, topic: str) -> None:
    with Producer(cluster) as producer:
        for number in range(5):
            producer.send(OutgoingRecord(topic=topic, value=str(number).encode(), partition=0))
    with Consumer(cluster) as consumer:
        consumer.assign({(topic, 0): 3})
        assert [record.value for record in read_until(consumer, 2)] == [b"3", b"4"]
        for _ in range(100):
            if consumer.ended:
                break
            consumer.read(1, timeout_ms=100)
        assert consumer.ended == {(topic, 0)}
        assert consumer.bounds(topic, 0) == (0, 5)
        assert consumer.assigned() == [(topic, 0)]


def test_topic_that_is_not_there_is_not_found(cluster: ClientSettings) -> None:
    with Consumer(cluster) as consumer, pytest.raises(NotFound):
        consumer.partitions_of("never-made")


def test_silent_cluster_is_unreachable(nowhere: ClientSettings) -> None:
    with Consumer(nowhere) as consumer, pytest.raises(Unreachable):
        consumer.partitions_of("any")
