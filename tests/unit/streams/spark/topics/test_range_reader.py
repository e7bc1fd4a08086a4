import gc
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer as LibraryProducer
from confluent_kafka import TopicPartition

from core_broker.client.admin import Admin
from core_broker.client.errors import NotFound, Unreachable
from core_broker.client.producer import Producer
from core_broker.client.reader import OffsetOutOfRange
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings
from streams.spark.topics.range_reader import RangeReader, RecordColumns
from tests.support.admin import admin_client, create_topic, eventually
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
def reader(cluster: ClientSettings) -> Iterator[RangeReader]:
    """A reader of committed records of the running broker."""
    made = RangeReader(cluster, isolation_level="read_committed")
    yield made
    made.close()


def send(cluster: ClientSettings, topic: str, values: list[bytes | None]) -> None:
    with Producer(cluster) as producer:
        for value in values:
            producer.send(OutgoingRecord(topic=topic, value=value, partition=0))


def numbered(count: int, first: int = 0) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, first + count)]


def batches(
    reader: RangeReader, topic: str, start: int, end: int, *, rows_max: int = 1000, bytes_max: int = 1 << 20
) -> list[RecordColumns]:
    place = (topic, 0)
    return list(reader.read(place, start, end, rows_max=rows_max, bytes_max=bytes_max, timeout_ms=20_000))


def offsets(reader: RangeReader, topic: str, start: int, end: int) -> list[int]:
    return [offset for columns in batches(reader, topic, start, end) for offset in columns.offsets]


def transaction(cluster: ClientSettings, topic: str, values: list[bytes | None], *, commits: bool) -> None:
    """Records of a transaction, and its marker behind them."""
    producer = LibraryProducer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(30)
    if commits:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def test_a_range_is_read_as_columns(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    with Producer(cluster) as producer:
        producer.send(OutgoingRecord(topic=topic, partition=0, key=b"k", value=b"v", timestamp_ms=1234))
        headers = (("a", b"1"), ("a", None))
        producer.send(OutgoingRecord(topic=topic, partition=0, value=None, timestamp_ms=5678, headers=headers))
    (columns,) = batches(reader, topic, 0, 2)
    assert columns == ([b"k", None], [b"v", None], [0, 1], [1234, 5678], [0, 0], [None, headers])


def test_records_without_headers_have_no_column_of_them(
    cluster: ClientSettings, topic: str, reader: RangeReader
) -> None:
    send(cluster, topic, [b"1"])
    assert batches(reader, topic, 0, 1)[0].headers is None


def test_the_time_of_the_append_is_told_apart(broker: BrokerProcess, name: str, reader: RangeReader) -> None:
    create_topic(broker, name, configs={"message.timestamp.type": "LogAppendTime"})
    send(ClientSettings(bootstrap_servers=broker.bootstrap), name, [b"1"])
    (columns,) = batches(reader, name, 0, 1)
    assert columns.timestamp_types == [1]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read(cluster: ClientSettings, topic: str, reader: RangeReader, codec: str) -> None:
    producer = LibraryProducer(
        {"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec, "linger.ms": 20}
    )
    for number in range(100):
        producer.produce(topic, b"%d" % number * 10, partition=0)
    producer.flush(30)
    found = [value for columns in batches(reader, topic, 0, 100) for value in columns.values]
    assert found == [b"%d" % number * 10 for number in range(100)]


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(0, 10, range(10)), (3, 7, range(3, 7)), (9, 10, [9]), (4, 4, []), (10, 10, [])]
)
def test_only_what_is_in_the_range_is_read(
    cluster: ClientSettings, topic: str, reader: RangeReader, start: int, end: int, expected: list[int]
) -> None:
    send(cluster, topic, numbered(10))
    assert offsets(reader, topic, start, end) == list(expected)


def test_ranges_that_follow_each_other_and_ranges_that_do_not(
    cluster: ClientSettings, topic: str, reader: RangeReader
) -> None:
    send(cluster, topic, numbered(30))
    for start, end in ((0, 10), (10, 11), (11, 25), (5, 8), (8, 30), (0, 30)):
        assert offsets(reader, topic, start, end) == list(range(start, end))


def test_a_range_that_came_later_than_its_reader_is_read(
    cluster: ClientSettings, topic: str, reader: RangeReader
) -> None:
    for start in (0, 5, 10):
        send(cluster, topic, numbered(5, start))
        assert offsets(reader, topic, start, start + 5) == list(range(start, start + 5))


def test_batches_have_no_more_rows_than_allowed(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    send(cluster, topic, numbered(1000))
    sizes = [len(columns.offsets) for columns in batches(reader, topic, 0, 1000, rows_max=300)]
    assert sizes == [300, 300, 300, 100]


def test_batches_have_about_as_many_bytes_as_allowed(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    send(cluster, topic, [bytes(10_000)] * 1000)
    found = batches(reader, topic, 0, 1000, bytes_max=100_000)
    # Before the first it is not known how large they are.
    assert max(len(columns.offsets) for columns in found[1:]) <= 11
    assert [offset for columns in found for offset in columns.offsets] == list(range(1000))


def test_records_of_aborted_transactions_are_not_read(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    transaction(cluster, topic, numbered(3), commits=False)  # 0 to 2, and the marker at 3
    transaction(cluster, topic, numbered(2), commits=True)  # 4 and 5, and the marker at 6
    send(cluster, topic, numbered(1))
    assert offsets(reader, topic, 0, 8) == [4, 5, 7]


def test_who_reads_uncommitted_reads_aborted_records(cluster: ClientSettings, topic: str) -> None:
    transaction(cluster, topic, numbered(3), commits=False)
    reader = RangeReader(cluster, isolation_level="read_uncommitted")
    assert offsets(reader, topic, 0, 4) == [0, 1, 2]
    reader.close()


def test_a_range_of_nothing_but_gaps_ends(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    transaction(cluster, topic, numbered(3), commits=False)
    for start, end in ((0, 4), (0, 3), (1, 2), (3, 4), (2, 4)):
        assert offsets(reader, topic, start, end) == []


def test_a_range_that_ends_in_a_marker_ends_and_the_next_goes_on(
    cluster: ClientSettings, topic: str, reader: RangeReader
) -> None:
    transaction(cluster, topic, numbered(2), commits=True)
    assert offsets(reader, topic, 0, 3) == [0, 1]
    assert offsets(reader, topic, 3, 3) == []
    transaction(cluster, topic, numbered(2), commits=False)
    assert offsets(reader, topic, 3, 6) == []
    send(cluster, topic, numbered(1))
    assert offsets(reader, topic, 6, 7) == [6]


def test_gaps_that_compaction_left_are_passed_over(broker: BrokerProcess, name: str, reader: RangeReader) -> None:
    quickly = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    create_topic(broker, name, configs=quickly)
    cluster = ClientSettings(bootstrap_servers=broker.bootstrap)

    def written_and_read() -> tuple[int, list[int]]:
        with Producer(cluster) as producer:
            producer.send(OutgoingRecord(topic=name, partition=0, key=b"k", value=b"v"))
        end = Admin(cluster).offsets([(name, 0)], "latest")[name, 0]
        fresh = RangeReader(cluster, isolation_level="read_committed")
        found = offsets(fresh, name, 0, end)
        fresh.close()
        return end, found

    end, found = eventually(written_and_read, lambda answer: len(answer[1]) < answer[0] - 1, pause_s=0.3)
    assert found[-1] == end - 1
    assert offsets(reader, name, 0, found[0]) == []
    again = offsets(reader, name, 0, end)  # More may have gone in the meantime.
    assert again[-1] == end - 1
    assert set(again) <= set(found)


@pytest.mark.parametrize("start", [0, 50])
def test_missing_offsets_raise_out_of_range(
    broker: BrokerProcess, cluster: ClientSettings, topic: str, reader: RangeReader, start: int
) -> None:
    send(cluster, topic, numbered(10))
    admin_client(broker).delete_records([TopicPartition(topic, 0, 5)])[TopicPartition(topic, 0)].result(30)
    with pytest.raises(OffsetOutOfRange, match=f"offset {start} is not in partition 0") as caught:
        offsets(reader, topic, start, 60)
    assert (caught.value.place, caught.value.offset) == ((topic, 0), start)
    assert offsets(reader, topic, 5, 10) == [5, 6, 7, 8, 9]


def test_a_missing_topic_raises_not_found(cluster: ClientSettings, name: str, reader: RangeReader) -> None:
    with pytest.raises(NotFound, match=f"partition 0 of topic {name} does not exist"):
        offsets(reader, name, 0, 1)


def test_a_time_out_raises_unreachable(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    send(cluster, topic, numbered(5))
    with pytest.raises(Unreachable, match=r"no record of partition 0 .* within 4000 ms; expected offsets 5 to 8"):
        list(reader.read((topic, 0), 0, 9, rows_max=10, bytes_max=1000, timeout_ms=4_000))
    send(cluster, topic, numbered(4, 5))
    assert offsets(reader, topic, 5, 9) == [5, 6, 7, 8]


def test_the_collector_runs_again_afterwards(cluster: ClientSettings, topic: str, reader: RangeReader) -> None:
    send(cluster, topic, numbered(5))
    for _ in reader.read((topic, 0), 0, 5, rows_max=2, bytes_max=1000, timeout_ms=10_000):
        assert gc.isenabled()
    assert gc.isenabled()
