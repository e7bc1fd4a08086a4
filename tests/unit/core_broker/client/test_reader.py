from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from core_broker.client.producer import Producer
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord, OutgoingRecord
from core_broker.client.settings import ClientSettings

pytestmark = pytest.mark.processes


@pytest.fixture
def reader(cluster: ClientSettings) -> Iterator[Reader]:
    """A reader of the running broker."""
    with Reader(cluster) as made:
        yield made


def send(cluster: ClientSettings, topic: str, values: list[bytes], partition: int = 0) -> None:
    with Producer(cluster) as producer:
        for value in values:
            producer.send(OutgoingRecord(topic=topic, value=value, partition=partition))


def read_until(reader: Reader, count: int) -> list[IncomingRecord]:
    records: list[IncomingRecord] = []
    while len(records) < count:
        records += reader.read(count - len(records), timeout_ms=100)
    return records


def test_reads_what_is_there_without_waiting_for_more(cluster: ClientSettings, topic: str, reader: Reader) -> None:
    send(cluster, topic, [b"1", b"2", b"3"])
    reader.start({(topic, 0): 1})
    records = reader.read(1000, timeout_ms=60_000)
    assert [record.value for record in records] == [b"2", b"3"]
    assert reader.positions == {(topic, 0): 3}
    assert reader.is_at_end((topic, 0))


def test_what_exceeds_the_bytes_is_read_next(cluster: ClientSettings, topic: str, reader: Reader) -> None:
    send(cluster, topic, [bytes(10)] * 5)
    reader.start({(topic, 0): 0})
    sizes = []
    while reader.positions[topic, 0] < 5:
        sizes.append(len(reader.read(1000, timeout_ms=1000, bytes_max=25)))
        assert reader.is_at_end((topic, 0)) == (reader.positions[topic, 0] == 5)
    assert [size for size in sizes if size] == [2, 2, 1]


def test_one_record_is_read_however_large_unless_there_is_one_already(
    cluster: ClientSettings, topic: str, reader: Reader
) -> None:
    send(cluster, topic, [bytes(10)])
    reader.start({(topic, 0): 0})
    reader.peek(timeout_ms=10_000)
    assert reader.read(1, timeout_ms=100, bytes_max=1, at_least_one=False) == []
    assert len(reader.read(1, timeout_ms=100, bytes_max=1)) == 1


def test_an_offset_that_is_not_there_is_an_error_and_no_jump(
    cluster: ClientSettings, topic: str, reader: Reader
) -> None:
    send(cluster, topic, [b"1"])
    reader.start({(topic, 0): 5})
    with pytest.raises(OffsetOutOfRange, match="offset 5 is not in partition 0") as caught:
        reader.peek(timeout_ms=10_000)
    assert (caught.value.place, caught.value.offset) == ((topic, 0), 5)


def test_partitions_can_be_added(cluster: ClientSettings, topic: str, reader: Reader) -> None:
    send(cluster, topic, [b"0"])
    send(cluster, topic, [b"3"], partition=3)
    reader.start({(topic, 0): 0})
    reader.add({(topic, 3): 0})
    assert {record.value for record in read_until(reader, 2)} == {b"0", b"3"}


def test_a_start_forgets_what_was_read_before(cluster: ClientSettings, topic: str, reader: Reader) -> None:
    send(cluster, topic, [b"1", b"2"])
    reader.start({(topic, 0): 0})
    read_until(reader, 1)
    reader.start({(topic, 0): 0})
    assert [record.value for record in read_until(reader, 2)] == [b"1", b"2"]


def test_a_header_that_is_no_text_does_not_hide_its_record(cluster: ClientSettings, topic: str, reader: Reader) -> None:
    class NoText(str):
        __slots__ = ()

        def encode(self, *_: object, **__: object) -> bytes:
            return b"\xff"

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    headers = [("good", b"0"), (NoText("name"), b"1")]
    for sent in [producer.send(topic, b"value", headers=headers, partition=0) for _ in range(100)]:
        sent.get(30)
    producer.close()
    reader.start({(topic, 0): 0})
    assert [record.value for record in read_until(reader, 100)] == [b"value"] * 100
