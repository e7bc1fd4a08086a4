"""What a small request costs the broker, and how long a record takes from one client to the other."""

import multiprocessing
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.measure import MB, Row, Sizes, Stopwatch, best_of_three, percentile
from tests.benchmarks.raw_client import RawClient, fetch_request, produce_request
from tests.benchmarks.throughput import LARGE_RECORDS, RECORD_BYTES, end_offset
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

_STAMP = struct.Struct(">d")
BULK_PRODUCERS = (1, 4)


def small_requests(broker: BrokerProcess, sizes: Sizes, *, topic: str = "bench-small") -> list[Row]:
    """Produce requests of one record of 100 B, and fetches of one."""
    create_topic(broker, topic)
    request = produce_request(topic, 0, records=1, record_bytes=100)
    fetch = fetch_request(topic, 0, 0, max_bytes=1)
    return [
        _small(broker, "small produce, pipelined", request, sizes.small_requests, 32, "≤ 25 µs", topic),
        _small(broker, "small produce, one in flight", request, sizes.small_requests // 3, 1, "≤ 80 µs", topic),
        _small(broker, "small fetch, pipelined", fetch, sizes.small_requests, 32, "", None),
        _small(broker, "small fetch, one in flight", fetch, sizes.small_requests // 3, 1, "", None),
    ]


def _small(
    broker: BrokerProcess, what: str, request: bytes, count: int, in_flight: int, aim: str, topic: str | None
) -> Row:
    before = end_offset(broker, topic) if topic else 0
    with RawClient(broker.bootstrap) as client:
        client.repeat(request, min(count, 500), in_flight=in_flight)
        watch = best_of_three(broker.pid, lambda: client.repeat(request, count, in_flight=in_flight))
    if topic:
        assert end_offset(broker, topic) == before + 3 * count + min(count, 500)
    cost = watch.cpu_seconds / count * 1e6
    result = f"{cost:.1f} µs of broker CPU, {count / watch.seconds / 1000:.1f} k requests/s"
    how = f"raw socket, 1 connection, {in_flight} in flight, best of 3; {watch.note()}"
    return Row(what=what, result=result, aim=aim, how=how)


def beside_bulk(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """How long a small request takes while other clients produce as much as they can."""
    create_topic(broker, "bench-beside")
    create_topic(broker, "bench-bulk", partitions=max(BULK_PRODUCERS))
    request = produce_request("bench-beside", 0, records=1, record_bytes=100)
    rows = []
    for producers in (0, *BULK_PRODUCERS):
        waits: list[float] = []
        os.sync()  # a disk that cannot keep up with earlier writes would be measured instead
        with _bulk_producers(broker, producers) as received, RawClient(broker.bootstrap) as client:
            client.repeat(request, 20, in_flight=1)
            before, started = received(), time.perf_counter()
            for _ in range(sizes.latency_messages // 4):
                begun = time.perf_counter()
                client.repeat(request, 1, in_flight=1)
                waits.append(time.perf_counter() - begun)
                time.sleep(0.002)
            rate = (received() - before) * LARGE_RECORDS * RECORD_BYTES / (time.perf_counter() - started) / MB
        p50, p99 = (percentile(waits, share) * 1000 for share in (0.5, 0.99))
        what = f"small produce beside {producers} bulk producers" if producers else "small produce, alone"
        result = f"p50 {p50:.2f} ms, p99 {p99:.2f} ms" + (f"; bulk {rate:,.0f} MB/s" if producers else "")
        how = f"raw sockets, 1 record of 100 B every 2 ms, n={len(waits)}; bulk: 900 KB requests, 2 in flight each"
        rows.append(Row(what=what, result=result, how=how))
    return rows


@contextmanager
def _bulk_producers(broker: BrokerProcess, count: int) -> Iterator[Callable[[], int]]:
    """Processes that produce large requests until the block ends; gives how many have been answered so far."""
    context = multiprocessing.get_context("spawn")
    answered = [context.Value("L", 0, lock=False) for _ in range(count)]
    processes = [
        context.Process(target=_produce_bulk, args=(broker.bootstrap, partition, counter, os.getpid()))
        for partition, counter in enumerate(answered)
    ]
    for process in processes:
        process.start()
    deadline = time.monotonic() + 60
    while any(counter.value < 5 for counter in answered) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        yield lambda: sum(counter.value for counter in answered)
    finally:
        for process in processes:
            process.kill()
            process.join(30)


def _produce_bulk(bootstrap: str, partition: int, answered: "Synchronized[int]", parent: int) -> None:
    os.nice(19)  # what is measured is the broker, not how long the small client waits for a core of its own
    request = produce_request("bench-bulk", partition, records=LARGE_RECORDS, record_bytes=RECORD_BYTES)
    with RawClient(bootstrap) as client:
        while os.getppid() == parent:
            client.repeat(request, 4, in_flight=2)
            answered.value += 4


def latency(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """From produce() to the consumer's hands, 200 records a second."""
    topic = "bench-latency"
    create_topic(broker, topic)
    waits: list[float] = []
    is_listening = threading.Event()
    consumer = threading.Thread(target=_listen, args=(broker, topic, sizes.latency_messages, waits, is_listening))
    consumer.start()
    is_listening.wait(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "acks": "all"})
    with Stopwatch(broker.pid) as watch:
        for _ in range(sizes.latency_messages):
            producer.produce(topic, _STAMP.pack(time.perf_counter()), partition=0)
            producer.poll(0.005)
        producer.flush(30)
        consumer.join(30)
    p50, p99, p999 = (percentile(waits, share) * 1000 for share in (0.5, 0.99, 0.999))
    result = f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, p99.9 {p999:.2f} ms"
    how = f"confluent-kafka, both ends in one process, 200/s, n={len(waits)}; {watch.note()}"
    return [Row(what="end to end latency", result=result, aim="p99 < 2 ms", how=how)]


def _listen(broker: BrokerProcess, topic: str, count: int, waits: list[float], ready: threading.Event) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.poll(0.5)
    ready.set()
    deadline = time.monotonic() + 120
    while len(waits) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            waits.append(time.perf_counter() - _STAMP.unpack(message.value() or b"")[0])
    consumer.close()
