"""Records written by each client are read, unchanged, by every other."""

import pytest

from core_broker.service.clock import SystemClock
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.clients.all import INSTALLED
from tests.support.clients.model import Client, Received, Sent

T0 = SystemClock().now_ms() - 3_600_000
"""An hour ago: what is older than a week would be deleted by the retention of its topic."""
PLAIN = [
    Sent(key=b"k1", value=b"first", partition=0),
    Sent(key=b"k2", value=b"second", partition=0),
    Sent(key=b"k3", value="ümläut €".encode(), partition=0),
    Sent(key=b"k4", value=b"with headers", headers=(("h1", b"v1"), ("h2", b"v2"), ("h1", b"again")), partition=0),
]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def content(records: list[Received]) -> list[tuple[bytes | None, bytes | None, object]]:
    return [(record.key, record.value, record.headers) for record in records]


def sent_content(records: list[Sent]) -> list[tuple[bytes | None, bytes | None, object]]:
    return [(record.key, record.value, record.headers) for record in records]


def test_each_reads_what_the_other_wrote(broker: BrokerProcess, name: str, writer: Client, reader: Client) -> None:
    writer.produce(broker.bootstrap, name, PLAIN)
    records = reader.consume(broker.bootstrap, name, len(PLAIN))
    assert content(records) == sent_content(PLAIN)
    assert [record.offset for record in records] == [0, 1, 2, 3]


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_batches_are_read_by_every_client(
    broker: BrokerProcess, name: str, client: Client, codec: str
) -> None:
    if codec not in client.codecs:
        pytest.skip(f"{client.name} cannot write {codec} here")
    records = [Sent(value=b"%04d " % number * 40, partition=0) for number in range(200)]
    client.produce(broker.bootstrap, name, records, codec=codec)
    for reader in INSTALLED:
        if codec in reader.codecs:
            found = reader.consume(broker.bootstrap, name, len(records))
            assert [record.value for record in found] == [record.value for record in records], reader.name
    stored = broker.stored_bytes(name)
    assert (stored < 20_000) == (codec != "none"), f"{stored} bytes are stored"


def test_null_and_empty_values_and_keys_are_kept_apart(broker: BrokerProcess, name: str, client: Client) -> None:
    records = [
        Sent(key=b"tombstone", value=None, partition=0),
        Sent(key=b"full", value=b"v", partition=0),
    ]
    if client.name != "kcat":  # kcat cannot say "empty but not null"
        records += [Sent(key=None, value=b"", partition=0), Sent(key=b"", value=b"x", partition=0)]
    client.produce(broker.bootstrap, name, records)
    assert content(client.consume(broker.bootstrap, name, len(records))) == sent_content(records)


def test_timestamps_of_the_producer_are_kept(broker: BrokerProcess, name: str, client: Client) -> None:
    if not client.sets_timestamps:
        pytest.skip(f"{client.name} cannot set timestamps")
    times = [T0 + 5, T0 + 3, T0 + 9, T0]
    client.produce(broker.bootstrap, name, [Sent(value=b"v", timestamp_ms=ms, partition=0) for ms in times])
    assert [record.timestamp_ms for record in client.consume(broker.bootstrap, name, 4)] == times


def test_keys_decide_the_partition(broker: BrokerProcess, name: str, client: Client) -> None:
    create_topic(broker, name, partitions=6)
    client.produce(broker.bootstrap, name, [Sent(key=b"key-%d" % (n % 20), value=b"%d" % n) for n in range(200)])
    found = client.consume(broker.bootstrap, name, 200)
    homes: dict[bytes | None, set[int]] = {}
    for record in found:
        homes.setdefault(record.key, set()).add(record.partition)
    assert len(found) == 200
    assert all(len(partitions) == 1 for partitions in homes.values())
    assert len({min(partitions) for partitions in homes.values()}) > 1


def test_a_large_record_comes_back_whole(broker: BrokerProcess, name: str, client: Client) -> None:
    value = b"0123456789abcdef" * 56_000
    client.produce(broker.bootstrap, name, [Sent(value=value, partition=0)])
    assert client.consume(broker.bootstrap, name, 1)[0].value == value


def test_thousands_of_records_keep_their_order(broker: BrokerProcess, name: str, client: Client) -> None:
    records = [Sent(value=b"%06d" % number, partition=0) for number in range(5_000)]
    client.produce(broker.bootstrap, name, records)
    found = client.consume(broker.bootstrap, name, len(records))
    assert [record.value for record in found] == [record.value for record in records]
    assert [record.offset for record in found] == list(range(5_000))
