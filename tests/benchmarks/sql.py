"""SQL over topics: rows per second of queries that catch up, the way of one record, and pull queries by key."""

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx2
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.benchmarks.measure import AS_DELIVERED, Row, Sizes
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.streams_service import StreamsService

_KEYS: Final = 5_000
_PARTITIONS: Final = 2
_PATIENCE_S: Final = 600.0
_RATE: Final = 100
_WARM_SECONDS: Final = 5.0
_LOOKUPS: Final = 2_000
_STREAM: Final = """CREATE STREAM PAGEVIEWS (USER_ID STRING KEY, NUMBER BIGINT, PAGE STRING, SENT DOUBLE)
    WITH (KAFKA_TOPIC = 'pageviews', VALUE_FORMAT = 'JSON');"""
_QUERIES: Final = {
    "filter": "CREATE STREAM FILTERED AS SELECT USER_ID, NUMBER, SENT FROM PAGEVIEWS WHERE NUMBER >= 0;",
    "count by key": """CREATE TABLE COUNTED AS SELECT USER_ID, COUNT(*) AS N, MAX(SENT) AS SENT
        FROM PAGEVIEWS GROUP BY USER_ID;""",
    "windowed count": """CREATE TABLE WINDOWED AS SELECT USER_ID, COUNT(*) AS N, MAX(SENT) AS SENT
        FROM PAGEVIEWS WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY USER_ID;""",
}
_SINKS: Final = {"filter": "FILTERED", "count by key": "COUNTED", "windowed count": "WINDOWED"}


def sql(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """One query after the other, each with the whole machine."""
    with (
        BrokerProcess(directory / "sql-broker", settings=AS_DELIVERED) as broker,
        StreamsService(directory / "sql", bootstrap=broker.bootstrap, settings={"spark.driver.memory": "1g"}) as server,
    ):
        create_topic(broker, "pageviews", partitions=_PARTITIONS)
        fill(broker.bootstrap, sizes.spark_rows)
        server.ksql(_STREAM)
        server.ksql("CREATE STREAM WARM AS SELECT * FROM PAGEVIEWS WHERE NUMBER < 0; TERMINATE ALL;")
        for name, statement in _QUERIES.items():
            yield from _query(broker, server, name, statement, sizes)
        yield _lookups(server)


def _query(broker: BrokerProcess, server: StreamsService, name: str, statement: str, sizes: Sizes) -> Iterator[Row]:
    began = time.monotonic()
    server.ksql(statement)
    taken = _until_read(broker, server, began)
    rows = sizes.spark_rows
    yield Row(
        what=f"SQL, {name}: rows per second",
        result=f"{rows / taken:,.0f}",
        aim="100,000 without state, 50,000 with",
        how=f"{rows:,} JSON records of {_PARTITIONS} partitions, from the statement to the last committed offset: "
        f"{taken:.1f} s",
    )
    waits = _latencies(broker.bootstrap, _SINKS[name], sizes.spark_latency_seconds)
    yield Row(
        what=f"SQL, {name}: from record to committed result",
        result=f"p50 {statistics.median(waits):.2f} s, p95 {_p95(waits):.2f} s",
        aim="p95 below 0.6 s without state, 1.5 s with",
        how=f"{_RATE} records a second, read with read_committed; {len(waits)} results",
    )
    server.ksql("TERMINATE ALL;")


def fill(bootstrap: str, rows: int) -> None:
    """Write records as fast as they are taken."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for number in range(rows):
        while len(producer) > 150_000:
            producer.poll(0.01)
        producer.produce("pageviews", _value(number, 0.0), f"user-{number % _KEYS}")
    if producer.flush(_PATIENCE_S):
        raise RuntimeError("the broker did not take all records")


def _value(number: int, sent: float) -> bytes:
    return json.dumps({"NUMBER": number, "PAGE": f"page-{number % 100}", "SENT": sent}).encode()


def _until_read(broker: BrokerProcess, server: StreamsService, began: float) -> float:
    query = server.ksql("SHOW QUERIES;")[0]["queries"][0]["id"]
    group = f"_streams-default_{query}"
    ends = _ends(broker.bootstrap)
    while _committed(broker.bootstrap, group) < ends:
        if time.monotonic() > began + _PATIENCE_S:
            raise RuntimeError(f"{query} did not come to the end\n{server.engine_log()}")
        time.sleep(0.1)
    return time.monotonic() - began


def _ends(bootstrap: str) -> int:
    return _sum(bootstrap, "unused", lambda consumer, place: consumer.get_watermark_offsets(place, timeout=30)[1])


def _committed(bootstrap: str, group: str) -> int:
    def offset(consumer: Consumer, place: TopicPartition) -> int:
        return max(0, consumer.committed([place], timeout=30)[0].offset)

    return _sum(bootstrap, group, offset)


def _sum(bootstrap: str, group: str, ask: Callable[[Consumer, TopicPartition], int]) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return sum(ask(consumer, TopicPartition("pageviews", partition)) for partition in range(_PARTITIONS))
    finally:
        consumer.close()


def _latencies(bootstrap: str, topic: str, seconds: float) -> list[float]:
    stopping = threading.Event()
    sender = threading.Thread(target=_send, args=(bootstrap, stopping), daemon=True)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{topic}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "latest",
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.subscribe([topic])
    consumer.poll(5)
    sender.start()
    waits: list[float] = []
    began = time.monotonic()
    while time.monotonic() < began + _WARM_SECONDS + seconds:
        message = consumer.poll(0.1)
        sent = _sent(message)
        if sent and time.monotonic() > began + _WARM_SECONDS:
            waits.append(time.monotonic() - sent)
    stopping.set()
    sender.join(30)
    consumer.close()
    if not waits:
        raise RuntimeError(f"no results came to {topic}")
    return waits


def _sent(message: Message | None) -> float:
    value = message.value() if message is not None and message.error() is None else None
    return float(json.loads(value)["SENT"]) if value else 0.0


def _send(bootstrap: str, stopping: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    began, sent = time.monotonic(), 0
    while not stopping.wait(0.01):
        while sent < (time.monotonic() - began) * _RATE:
            producer.produce("pageviews", _value(sent, time.monotonic()), f"user-{sent % _KEYS}")
            sent += 1
        producer.poll(0)
    producer.flush(30)


def _lookups(server: StreamsService) -> Row:
    waits = []
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        for number in range(_LOOKUPS):
            body = {"sql": f"SELECT * FROM COUNTED WHERE USER_ID = 'user-{number % _KEYS}';"}
            began = time.perf_counter()
            answer = client.post("/query-stream", json=body)
            waits.append(time.perf_counter() - began)
            answer.raise_for_status()
            if len(answer.text.splitlines()) != 2:
                raise RuntimeError(f"not one row: {answer.text}")
    waits = waits[_LOOKUPS // 10 :]
    return Row(
        what="SQL, pull query by key",
        result=f"p50 {statistics.median(waits) * 1000:.1f} ms, p95 {_p95(waits) * 1000:.1f} ms",
        aim="well under 10 ms",
        how=f"{_LOOKUPS} requests over one HTTP/1.1 connection, {_KEYS:,} keys",
    )


def _p95(waits: list[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.95)]
