"""Streams of records: through a client library, and through requests of about a megabyte."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.benchmarks.measure import GB, MB, Row, Sizes, Stopwatch, best_of_three
from tests.benchmarks.raw_client import RawClient, fetch_request, produce_request
from tests.support.admin import admin_client, create_topic
from tests.support.broker import BrokerProcess

RECORDS_PER_MEGABYTE = 1_000
RECORD_BYTES = 1_000
BATCH_BYTES = RECORDS_PER_MEGABYTE * (RECORD_BYTES + 8)
PARTITIONS = 6
LARGE_RECORDS = 900
"""Records of a request as producers send them: a little less than their usual limit of a megabyte."""
CONNECTIONS = (1, 4, 16)


def end_offset(broker: BrokerProcess, topic: str, partition: int = 0) -> int:
    """Where a partition ends."""
    wanted = TopicPartition(topic, partition)
    (found,) = admin_client(broker).list_offsets({wanted: OffsetSpec.latest()}).values()
    offset: int = found.result(60).offset
    return offset


def big_requests(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """Produce and fetch about a megabyte per request with the cheapest client there is."""
    topic = "bench-big"
    create_topic(broker, topic)
    count = max(4, sizes.stream_bytes // BATCH_BYTES)
    request = produce_request(topic, 0, records=RECORDS_PER_MEGABYTE, record_bytes=RECORD_BYTES)
    with RawClient(broker.bootstrap) as client:
        client.repeat(request, 2, in_flight=1)
        produced = best_of_three(broker.pid, lambda: client.repeat(request, count, in_flight=2))
    written = count * len(request)
    assert end_offset(broker, topic) == (3 * count + 2) * RECORDS_PER_MEGABYTE
    fetches = [fetch_request(topic, 0, n * RECORDS_PER_MEGABYTE, max_bytes=BATCH_BYTES) for n in range(count)]
    with RawClient(broker.bootstrap) as client:
        fetched = best_of_three(broker.pid, lambda: client.run(iter(fetches), in_flight=2))
    received = client.bytes_received // 3
    assert received >= count * RECORDS_PER_MEGABYTE * RECORD_BYTES
    how = "raw socket, 2 in flight, best of 3"
    return [
        _stream_row("produce, ~1 MB requests", written, produced, "≤ 0.8 CPU-s/GB", f"{how}, acks=1"),
        _stream_row("fetch, ~1 MB answers", received, fetched, "≤ 0.5 CPU-s/GB", how),
    ]


def large_requests_on_several_connections(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """Produce requests of 900 KB from several clients at once, each to a partition of its own."""
    topic = "bench-connections"
    create_topic(broker, topic, partitions=max(CONNECTIONS))
    requests = [
        produce_request(topic, partition, records=LARGE_RECORDS, record_bytes=RECORD_BYTES)
        for partition in range(max(CONNECTIONS))
    ]
    rows = []
    for connections in CONNECTIONS:
        count = max(2, sizes.stream_bytes // len(requests[0]) // connections)
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(broker.bootstrap)) for _ in range(connections)]
            watch = best_of_three(broker.pid, partial(_send_all, list(zip(clients, requests, strict=False)), count))
        written = connections * count * len(requests[0])
        how = f"raw sockets, {connections} connections, 2 in flight each, best of 3, acks=1"
        rows.append(_stream_row(f"produce, 900 KB requests, {connections} connections", written, watch, "", how))
    return rows


def _send_all(pairs: list[tuple[RawClient, bytes]], count: int) -> None:
    """Let each client send its request `count` times, all at once."""
    with ThreadPoolExecutor(len(pairs)) as pool:
        for sent in [pool.submit(client.repeat, request, count, in_flight=2) for client, request in pairs]:
            sent.result()


def _stream_row(what: str, size: int, watch: Stopwatch, aim: str, how: str) -> Row:
    rate = size / watch.seconds / MB
    cost = watch.cpu_seconds / size * GB
    result = f"{rate:,.0f} MB/s, {cost:.2f} CPU-s/GB"
    return Row(what=what, result=result, aim=aim, how=f"{how}; {watch.note()}")


def library(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """Produce and consume with confluent-kafka."""
    rows = []
    for record_bytes in (100, 1_000):
        topic = f"bench-{record_bytes}"
        create_topic(broker, topic, partitions=PARTITIONS)
        rows.append(_produce(broker, topic, record_bytes, sizes.messages))
        rows.append(_consume(broker, topic, record_bytes, sizes.messages))
    return rows


def _produce(broker: BrokerProcess, topic: str, record_bytes: int, count: int) -> Row:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 5,
            "acks": 1,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    value = bytes(record_bytes)
    with Stopwatch(broker.pid) as watch:
        for number in range(count):
            producer.produce(topic, value, partition=number % PARTITIONS)
            if not number % 1_000:
                producer.poll(0)
        remaining = producer.flush(120)
    assert remaining == 0
    return _library_row(f"produce {record_bytes} B", count, record_bytes, watch, "confluent-kafka, acks=1, linger 5 ms")


def _consume(broker: BrokerProcess, topic: str, record_bytes: int, count: int) -> Row:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 1,
            "queued.min.messages": 1_000_000,
        }
    )
    with Stopwatch(broker.pid) as watch:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        found = 0
        while found < count:
            messages = consumer.consume(min(10_000, count - found), timeout=30)
            assert messages, f"only {found} of {count} messages came"
            found += len(messages)
    consumer.close()
    return _library_row(f"fetch {record_bytes} B", count, record_bytes, watch, "confluent-kafka, assigned partitions")


def _library_row(what: str, count: int, record_bytes: int, watch: Stopwatch, how: str) -> Row:
    payload = count * record_bytes
    rate = f"{count / watch.seconds / 1000:,.0f} k/s, {payload / watch.seconds / MB:,.0f} MB/s"
    cost = f"{watch.cpu_seconds / payload * GB:.2f} CPU-s/GB, broker {watch.cpu_seconds / watch.seconds:.0%} of a core"
    return Row(what=what, result=f"{rate}, {cost}", how=f"{how}; client-bound; {watch.note()}")
