"""What a small request costs the broker, and how long a record takes from one client to the other."""

import struct
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.measure import Row, Sizes, Stopwatch, best_of_three, percentile
from tests.benchmarks.raw_client import RawClient, fetch_request, produce_request
from tests.benchmarks.throughput import end_offset
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

_STAMP = struct.Struct(">d")


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
