"""A running broker under hostile connections: it lives, its memory stays bounded, and others are served meanwhile."""

import random
import selectors
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer

from core_broker.protocol.fields import Message, encode
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.hostile import mutate
from tests.support.memory import resident_bytes
from tests.support.messages import MessageFactory, message_classes
from tests.support.wire import WireConnection, frame, request_body, sized

MIB = 1024 * 1024
FRAMES = 12_000
CONNECTIONS_AT_ONCE = 100


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of its own: what hostile requests create or change must not reach other tests."""
    with BrokerProcess(tmp_path_factory.mktemp("target"), settings={"num.partitions": "1"}) as process:
        warm_up(process)
        yield process


def warm_up(process: BrokerProcess) -> None:
    """Let the broker compile its codecs and create its internal topics before memory is measured."""
    assert round_trip(process, "warm-up", b"ready") == [b"ready"]


def round_trip(process: BrokerProcess, topic: str, *values: bytes) -> list[bytes]:
    """Produce and consume as a normal client does."""
    producer = Producer({"bootstrap.servers": process.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": process.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        return [message.value() or b"" for message in consumer.consume(len(values), timeout=30)]
    finally:
        consumer.close()


def advertised(process: BrokerProcess) -> list[tuple[type[Message], int]]:
    """Every request of every version that the broker says it knows."""
    requests = {cls.API_KEY: cls for cls in message_classes() if cls.__name__.endswith("Request")}
    with WireConnection(process.bootstrap) as connection:
        apis = connection.request(ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys
    return [
        (cls, version)
        for api in apis
        for cls in [requests[api.api_key]]
        for version in range(max(api.min_version, cls.VERSIONS[0]), min(api.max_version, cls.VERSIONS[1]) + 1)
    ]


def hostile_frames(process: BrokerProcess, count: int) -> Iterator[bytes]:
    """Mutated requests of all kinds; sometimes the length or the header is what lies."""
    known = advertised(process)
    factory = MessageFactory(seed=11)
    chance = factory.random
    for number in range(count):
        cls, version = known[number % len(known)]
        body = request_body(factory.make(cls, version), version)
        header = len(body) - len(encode(cls(), version)) if chance.random() < 0.1 else 14
        hostile = sized(body[:header] + mutate(chance, body[header:]))
        if chance.random() < 0.1:
            hostile = struct.pack(">i", chance.choice((-1, 0, 7, 2**31 - 1, len(body) * 2))) + body
        yield hostile


def attack(process: BrokerProcess, frames: list[bytes]) -> Counter[str]:
    """Send each frame on its own connection and see what becomes of it."""
    outcomes: Counter[str] = Counter()
    selector = selectors.DefaultSelector()
    with ExitStack() as stack:
        for data in frames:
            connection = stack.enter_context(WireConnection(process.bootstrap))
            try:
                connection.send(data)
                connection.socket.shutdown(socket.SHUT_WR)
            except OSError:
                outcomes["closed"] += 1
                continue
            selector.register(connection.socket, selectors.EVENT_READ, data)
        deadline = time.monotonic() + 1.0
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(0.1):
                outcomes[drain(key.fileobj, selector)] += 1
        outcomes["waiting"] += len(selector.get_map() or {})
        selector.close()
    return outcomes


def drain(connection: object, selector: selectors.BaseSelector) -> str:
    assert isinstance(connection, socket.socket)
    try:
        data = connection.recv(65536)
    except OSError:
        data = b""
    selector.unregister(connection)
    return "answered" if data else "closed"


@pytest.mark.timeout(180)
def test_thousands_of_hostile_frames_neither_stop_nor_fatten_the_broker(target: BrokerProcess) -> None:
    frames = list(hostile_frames(target, FRAMES))
    before = resident_bytes(target.pid)
    outcomes: Counter[str] = Counter()
    for start in range(0, FRAMES, CONNECTIONS_AT_ONCE):
        outcomes += attack(target, frames[start : start + CONNECTIONS_AT_ONCE])
    assert target.is_running
    assert outcomes["closed"] > FRAMES / 10
    assert outcomes["answered"] > FRAMES / 100
    assert resident_bytes(target.pid) - before < 150 * MIB
    assert round_trip(target, "after-hostile-frames", b"still", b"here") == [b"still", b"here"]


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 3, 2**31 - 1, 101 * MIB])
def test_a_frame_length_that_cannot_be_closes_the_connection(target: BrokerProcess, length: int) -> None:
    with WireConnection(target.bootstrap) as connection:
        connection.send(struct.pack(">i", length) + b"\x00\x12\x00\x00")
        assert connection.is_closed_by_peer()
    assert target.is_running


@pytest.mark.parametrize("key,version", [(999, 0), (-1, 0), (3, 99), (1, -1), (4, 0)])
def test_an_unknown_api_or_version_closes_the_connection(target: BrokerProcess, key: int, version: int) -> None:
    with WireConnection(target.bootstrap) as connection:
        connection.send(sized(struct.pack(">hhih", key, version, 1, -1) + bytes(16)))
        assert connection.is_closed_by_peer()


def test_noise_closes_the_connection(target: BrokerProcess) -> None:
    chance = random.Random(5)
    for _ in range(50):
        with WireConnection(target.bootstrap) as connection:
            try:
                connection.send(sized(chance.randbytes(chance.randint(8, 200))))
            except OSError:
                continue
            assert connection.is_closed_by_peer()


def test_an_http_client_at_the_wrong_door_is_shown_out(target: BrokerProcess) -> None:
    with WireConnection(target.bootstrap) as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.is_closed_by_peer()


def test_a_corrupt_batch_is_answered_with_an_error_and_the_connection_goes_on(target: BrokerProcess) -> None:
    """CVE-2026-35554: a client that reuses a buffer too early sends records whose checksum is wrong."""
    batch = build_batch([Record(-1, 1, b"k", b"v")])
    batch[-1] ^= 1
    with WireConnection(target.bootstrap) as connection:
        for _ in range(2):
            partition = PartitionProduceData(index=0, records=bytes(batch))
            request = ProduceRequest(
                acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="warm-up", partition_data=[partition])]
            )
            answer = connection.request(request, 9, ProduceResponse)
            assert answer.responses[0].partition_responses[0].error_code == 2


def test_announced_but_unsent_frames_take_no_memory(target: BrokerProcess) -> None:
    """CVE-2022-34917"""
    before = resident_bytes(target.pid)
    with ExitStack() as stack:
        for _ in range(300):
            connection = stack.enter_context(WireConnection(target.bootstrap))
            connection.send(struct.pack(">i", 90 * MIB) + b"\x00\x00\x00\x09")
        assert round_trip(target, "beside-announced-frames", b"served") == [b"served"]
        assert resident_bytes(target.pid) - before < 100 * MIB


def test_frames_that_arrive_byte_by_byte_are_understood_and_delay_nobody(target: BrokerProcess) -> None:
    with WireConnection(target.bootstrap) as slow:
        request = frame(ApiVersionsRequest(client_software_name="slow", client_software_version="1"), 3)
        for position in range(len(request)):
            slow.send(request[position : position + 1])
            if position == len(request) // 2:
                assert round_trip(target, "beside-slow-sender", b"served") == [b"served"]
        assert struct.unpack_from(">i", slow.receive())[0] == 1


def test_a_reader_that_never_reads_costs_no_memory_and_delays_nobody(target: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": target.bootstrap, "linger.ms": 5})
    for _ in range(32):
        producer.produce("big-answers", random.Random(1).randbytes(900_000))
    assert producer.flush(60) == 0
    before = resident_bytes(target.pid)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=32 * MIB)
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=32 * MIB,
        topics=[FetchTopic(topic="big-answers", partitions=[partition])],
    )
    with ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(WireConnection(target.bootstrap, receive_buffer_bytes=4096))
            for number in range(20):
                connection.send(frame(request, 11, correlation_id=number))
        for number in range(3):
            assert round_trip(target, f"beside-deaf-readers-{number}", b"served") == [b"served"]
        assert resident_bytes(target.pid) - before < 200 * MIB
    assert target.is_running


def test_many_half_open_connections_are_let_go(target: BrokerProcess) -> None:
    for _ in range(500):
        WireConnection(target.bootstrap).socket.close()
    assert round_trip(target, "after-half-open", b"served") == [b"served"]


def test_connections_over_the_limit_are_closed_and_the_others_live(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"max.connections.per.ip": "20"}
    with BrokerProcess(tmp_path_factory.mktemp("limited"), settings=settings) as process, ExitStack() as stack:
        connections = [stack.enter_context(WireConnection(process.bootstrap)) for _ in range(30)]
        alive = [connection for connection in connections if answers(connection)]
        assert len(alive) == 20
        alive.pop().socket.close()
        # A place that became free is given away.
        eventually(lambda: answers(stack.enter_context(WireConnection(process.bootstrap))))
        assert all(answers(connection) for connection in alive)


def test_idle_connections_are_closed(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"connections.max.idle.ms": "1000"}
    with BrokerProcess(tmp_path_factory.mktemp("idle"), settings=settings) as process:
        with WireConnection(process.bootstrap) as connection:
            assert answers(connection)
            assert connection.is_closed_by_peer()
        with WireConnection(process.bootstrap) as half_frame:
            half_frame.send(b"\x00\x00")
            assert half_frame.is_closed_by_peer()


def answers(connection: WireConnection) -> bool:
    try:
        return connection.request(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
    except OSError:
        return False
