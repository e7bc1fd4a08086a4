"""Limits of the proxy over real HTTP: too much, too slow, too strange, or gone in the middle."""

import base64
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.memory import resident_bytes
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess

MAX_BYTES: Final = 2_000_000
SETTINGS: Final = {
    "request.max.bytes": str(MAX_BYTES),
    "request.read.timeout.ms": "1000",
    "requests.max.bytes": "4000000",
    "produce.request.max.records": "100",
    "produce.in.flight.max.records": "200",
    "consumer.instances.max": "3",
    "streams.max": "20",
    "readers.max": "4",
    "consumer.untaken.max.bytes": "1000000",
}
V2: Final = "application/vnd.kafka.v2+json"
V2_JSON: Final = "application/vnd.kafka.json.v2+json"
NDJSON: Final = "application/x-ndjson"
VANISHING: Final = 100
MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class World:
    """A proxy with tight limits, and the broker behind it."""

    broker: BrokerProcess
    proxy: ProxyProcess
    client: httpx2.Client
    v3: str

    def gauges(self) -> dict[str, float]:
        """What is open and in flight."""
        text = self.client.get("/metrics").text
        found = re.findall(r"^caudal_rest_proxy_(\w+) ([0-9.e+]+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found if name != "readers_idle"}

    def post(self, path: str, body: Any, content_type: str = V2_JSON) -> httpx2.Response:
        """Send a body as it is, or as JSON."""
        content = body if isinstance(body, bytes) or not isinstance(body, dict | list) else json.dumps(body).encode()
        return self.client.post(path, content=content, headers={"Content-Type": content_type})

    def connect(self) -> socket.socket:
        """A connection of one's own."""
        parts = urlsplit(self.proxy.url)
        return socket.create_connection((parts.hostname, parts.port), timeout=30)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, registry: RegistryProcess) -> Iterator[World]:
    """Processes for this file alone."""
    directory = tmp_path_factory.mktemp("limits")
    with (
        BrokerProcess(directory / "broker") as broker,
        ProxyProcess(
            directory / "proxy", bootstrap=broker.bootstrap, registry=registry.url, settings=SETTINGS
        ) as proxy,
        httpx2.Client(base_url=proxy.url, timeout=40) as client,
    ):
        cluster_id = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        yield World(broker, proxy, client, f"/v3/clusters/{cluster_id}")
        assert proxy.is_running, proxy.log_tail()
        assert "Traceback" not in proxy.log_text()


@pytest.fixture
def topic(world: World, name: str) -> str:
    """A topic of the test's own."""
    create_topic(world.broker, name)
    return name


def payload(answer: httpx2.Response) -> tuple[int, int, str | None]:
    """Status, code and when to come again."""
    return answer.status_code, answer.json()["error_code"], answer.headers.get("retry-after")


# --- too much ---


def in_chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


@pytest.mark.parametrize("path", ["/topics/t", "{v3}/topics/t/records:batch", "/consumers/g", "{v3}/topics"])
@pytest.mark.parametrize("wrapped", [bytes, in_chunks], ids=["content-length", "chunked"])
def test_a_body_that_is_too_long_is_refused(world: World, path: str, wrapped: Callable[[bytes], Any]) -> None:
    content = wrapped(b'{"records":[{"value":"' + b"x" * MAX_BYTES + b'"}]}')
    content_type = "application/json" if "{v3}" in path else V2 if "consumers" in path else V2_JSON
    answer = world.client.post(path.format(v3=world.v3), content=content, headers={"Content-Type": content_type})
    assert payload(answer) == (413, 413, None)
    assert "request.max.bytes" in answer.json()["message"]


def test_a_record_of_a_stream_that_is_too_long_is_refused(world: World, topic: str) -> None:
    body = b'{"value":{"type":"JSON","data":"' + b"x" * MAX_BYTES + b'"}}'
    answer = world.client.post(
        f"{world.v3}/topics/{topic}/records", content=in_chunks(body), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error_code"]) == (200, 413)


def test_too_many_records_are_refused(world: World, topic: str) -> None:
    assert payload(world.post(f"/topics/{topic}", {"records": [{"value": 1}] * 101})) == (413, 413, None)
    assert world.post(f"/topics/{topic}", {"records": [{"value": 1}] * 100}).status_code == 200


def test_more_than_may_be_in_flight_gets_429(world: World, topic: str) -> None:
    body = {"records": [{"value": 1}] * 100}
    assert world.post(f"/topics/{topic}", body).status_code == 200
    os.kill(world.broker.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(2) as threads:
            first = [threads.submit(world.post, f"/topics/{topic}", body) for _ in range(2)]
            eventually(world.gauges, lambda found: found["records_in_flight"] == 200, pause_s=0.01)
            late = world.post(f"/topics/{topic}", {"records": [{"value": 1}]})
            os.kill(world.broker.pid, signal.SIGCONT)
            assert [item.result().status_code for item in first] == [200, 200]
    finally:
        os.kill(world.broker.pid, signal.SIGCONT)
    assert payload(late) == (429, 429, "1")
    assert "produce.in.flight.max.records=200" in late.json()["message"]
    assert world.gauges()["records_in_flight"] == 0


def test_too_many_instances_get_429(world: World) -> None:
    made = [world.post("/consumers/many", {"format": "json"}, V2) for _ in range(4)]
    assert [answer.status_code for answer in made] == [200, 200, 200, 429]
    assert payload(made[-1])[2] == "1"
    assert "consumer.instances.max" in made[-1].json()["message"]
    for answer in made[:3]:
        world.client.delete(f"/consumers/many/instances/{answer.json()['instance_id']}", headers={"Content-Type": V2})
    assert world.gauges()["consumer_instances"] == 0


def streaming(topic: str, world: World, start: str = "end") -> socket.socket:
    """A client of a live stream that has got its head."""
    connection = world.connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = f"GET /topics/{topic}/records?from={start} HTTP/1.1\r\nHost: x\r\nAccept: {NDJSON}\r\n\r\n"
    connection.sendall(head.encode())
    assert connection.recv(12).startswith(b"HTTP/1.1 200")
    return connection


def test_too_many_streams_get_429(world: World, topic: str) -> None:
    open_ones = [streaming(topic, world) for _ in range(20)]
    late = world.client.get(f"/topics/{topic}/records", headers={"Accept": NDJSON})
    assert payload(late) == (429, 429, "1")
    for connection in open_ones:
        connection.close()
    eventually(world.gauges, lambda found: found["streams"] == 0)
    streaming(topic, world).close()


def test_too_many_readers_get_429(world: World, topic: str) -> None:
    path = f"/topics/{topic}/partitions/0/records?offset=0&timeout="
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(world.client.get, f"{path}2000") for _ in range(4)]
        eventually(world.gauges, lambda found: found["readers"] == 4, pause_s=0.01)
        late = world.client.get(f"{path}0")
        assert [item.result().status_code for item in waiting] == [200] * 4
    assert payload(late) == (429, 429, "1")
    assert world.client.get(f"{path}0").status_code == 200


# --- too slow ---


@pytest.mark.parametrize(
    "path,content_type",
    [
        ("/topics/{topic}", V2_JSON),
        ("{v3}/topics/{topic}/records", "application/json"),
        ("{v3}/topics/{topic}/records:batch", "application/json"),
        ("{v3}/topics", "application/json"),
        ("/consumers/slow", V2),
    ],
)
def test_a_client_that_stops_in_the_middle_of_its_body_is_not_waited_for(
    world: World, topic: str, path: str, content_type: str
) -> None:
    with world.connect() as connection:
        line = f"POST {path.format(v3=world.v3, topic=topic)} HTTP/1.1\r\nHost: x\r\n"
        connection.sendall(f"{line}Content-Type: {content_type}\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert connection.recv(12) == b"HTTP/1.1 408"


@pytest.mark.parametrize(
    "path,content_type",
    [("/topics/{topic}", V2_JSON), ("{v3}/topics/{topic}/records:batch", "application/json"), ("/consumers/slow", V2)],
)
def test_bodies_that_are_not_sent_to_their_end_are_bounded_together(
    world: World, topic: str, path: str, content_type: str
) -> None:
    line = f"POST {path.format(v3=world.v3, topic=topic)} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\n"
    begun = f"{line}Content-Length: {MAX_BYTES}\r\n\r\n".encode() + b" " * (MAX_BYTES - 1)
    slow = [world.connect() for _ in range(3)]
    for connection in slow:
        connection.sendall(begun)
    assert sorted(connection.recv(12) for connection in slow) == [b"HTTP/1.1 408", b"HTTP/1.1 408", b"HTTP/1.1 429"]
    for connection in slow:
        connection.close()
    assert world.post(f"/topics/{topic}", {"records": [{"value": 1}]}).status_code == 200


def fill(world: World, topic: str, megabytes: int) -> None:
    """Records of 100 kB."""
    value = base64.b64encode(os.urandom(75_000)).decode()
    for _ in range(megabytes):
        assert world.post(f"/topics/{topic}", {"records": [{"value": value}] * 10}).status_code == 200


def test_clients_that_do_not_read_cost_little_memory_and_do_not_delay_others(world: World, topic: str) -> None:
    fill(world, topic, 20)
    before = resident_bytes(world.proxy.pid)
    idle = [streaming(topic, world, start="beginning") for _ in range(15)]
    grown = []
    for _ in range(10):
        assert world.post(f"/topics/{topic}", {"records": [{"value": 1}]}).status_code == 200
        grown.append(resident_bytes(world.proxy.pid) - before)
    # They asked for 15 times 20 MB, and each holds a chunk and what was fetched ahead of it.
    assert max(grown) < 150 * MEGABYTE
    eventually(world.gauges, lambda found: found["streams"] == 0)  # Who does not read on is let go.
    for connection in idle:
        connection.close()


def test_while_large_responses_are_not_read_other_reads_get_429(world: World, topic: str) -> None:
    fill(world, topic, 10)
    path = f"/topics/{topic}/partitions/0/records?offset=0"
    with world.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {V2_JSON}\r\n\r\n".encode())
        eventually(world.gauges, lambda found: found["untaken_bytes"] > MEGABYTE, pause_s=0.01)
        late = world.client.get(path)
        assert world.post(f"/topics/{topic}", {"records": [{"value": 1}]}).status_code == 200
    assert payload(late) == (429, 429, "1")
    eventually(world.gauges, lambda found: found["untaken_bytes"] == 0)
    assert len(world.client.get(path, headers={"Accept": V2_JSON}).json()) == 101


# --- gone ---


def open_descriptors(world: World) -> int:
    return len(list(Path(f"/proc/{world.proxy.pid}/fd").iterdir()))


def threads(world: World) -> int:
    return len(list(Path(f"/proc/{world.proxy.pid}/task").iterdir()))


def test_clients_that_vanish_leave_nothing_behind(world: World, topic: str) -> None:
    instance = world.post("/consumers/gone", {"format": "json"}, V2).json()["instance_id"]
    polled = f"/consumers/gone/instances/{instance}"
    world.post(f"{polled}/subscription", {"topics": [topic]}, V2)
    json_head = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    record, records = '{"value":{"type":"JSON","data":1}}', '{"records":[{"value":1}]}'
    v2_head = f"POST /topics/{topic} HTTP/1.1\r\nHost: x\r\nContent-Type: {V2_JSON}\r\n"
    heads = [
        f"{v2_head}Content-Length: 100\r\n\r\n{{",
        f"{v2_head}Content-Length: {len(records)}\r\n\r\n{records}",
        f"POST {world.v3}/topics/{topic}/records HTTP/1.1\r\nHost: x\r\n{json_head}{len(record):x}\r\n{record}\r\n",
        f"GET /topics/{topic}/records HTTP/1.1\r\nHost: x\r\nAccept: {NDJSON}\r\n\r\n",
        f"GET /topics/{topic}/records HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n",
        f"GET /topics/{topic}/partitions/0/records?offset=100000&timeout=2000 HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET {polled}/records?timeout=2000 HTTP/1.1\r\nHost: x\r\nAccept: {V2_JSON}\r\n\r\n",
        "GET /topics HTTP/1.1\r\nHost: x\r\n\r\n",
    ]

    def vanish() -> tuple[int, int]:
        before = world.gauges()
        for number in range(VANISHING):
            connection = world.connect()
            connection.sendall(heads[number % len(heads)].encode())
            if number % 3:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # with a reset
            connection.close()
        eventually(world.gauges, lambda now: now == before)
        return threads(world), open_descriptors(world)

    rounds = [vanish()]

    def growth() -> int:
        """What one more round leaves behind: pools of threads and of readers grow at first."""
        rounds.append(vanish())
        (threads_before, files_before), (threads_after, files_after) = rounds[-2:]
        return max(threads_after - threads_before, files_after - files_before)

    eventually(growth, lambda grown: grown <= VANISHING // 20)
    assert world.client.delete(polled, headers={"Content-Type": V2}).status_code == 204


# --- too strange ---

DEEP: Final = b"[" * 200_000 + b"]" * 200_000
HEADERS: Final = [{"name": "h", "value": "eA=="}] * 20_000
HOSTILE_V2: Final[dict[str, bytes]] = {
    "deep value": b'{"records":[{"value":' + DEEP + b"}]}",
    "deep key": b'{"records":[{"key":' + DEEP + b',"value":1}]}',
    "deep records": b'{"records":' + DEEP + b"}",
    "deep headers": b'{"records":[{"value":1,"headers":' + DEEP + b"}]}",
    "deep partition": b'{"records":[{"value":1,"partition":' + DEEP + b"}]}",
    "open brackets": b'{"records":' + b"[" * 500_000,
    "half surrogate in a header": b'{"records":[{"value":1,"headers":[{"name":"\\ud800","value":"eA=="}]}]}',
    "invalid UTF-8": b'{"records":[{"value":"\xff\xfe"}]}',
    "invalid UTF-8 in a name": b'{"\xff":1}',
    "NUL": b"\0\0\0",
    "huge partition": b'{"records":[{"value":1,"partition":2147483648}]}',
    "huger partition": b'{"records":[{"value":1,"partition":' + b"9" * 5000 + b"}]}",
    "negative partition": b'{"records":[{"value":1,"partition":-1}]}',
    "negative timestamp": b'{"records":[{"value":1,"timestamp":-1}]}',
    "huge timestamp": b'{"records":[{"value":1,"timestamp":9223372036854775808}]}',
    "huger timestamp": b'{"records":[{"value":1,"timestamp":1e400}]}',
    "strange timestamp": b'{"records":[{"value":1,"timestamp":"-99999-01-01T00:00:00Z"}]}',
    "too many headers": json.dumps({"records": [{"value": 1, "headers": HEADERS}]}).encode(),
    "headers that are no list": b'{"records":[{"value":1,"headers":{"a":1}}]}',
    "header of a list": b'{"records":[{"value":1,"headers":[[]]}]}',
    "not an object": b"[1]",
    "BOM": b'\xef\xbb\xbf{"records":[{"value":1}]}',
    "UTF-16": '{"records":[{"value":1}]}'.encode("utf-16"),
    "schema id": b'{"value_schema_id":-1,"records":[]}',
}
HOSTILE_V3: Final[dict[str, bytes]] = {
    "deep value": b'{"value":{"type":"JSON","data":' + DEEP + b"}}",
    "deep": b'{"value":' + b'{"value":' * 100_000 + b"1" + b"}" * 100_001,
    "deep headers": b'{"headers":' + DEEP + b"}",
    "half surrogate": b'{"headers":[{"name":"\\ud800","value":"eA=="}],"value":{"type":"JSON","data":1}}',
    "half surrogate in a string": b'{"value":{"type":"STRING","data":"\\ud800"}}',
    "half surrogate in a type": b'{"value":{"type":"\\ud800","data":1}}',
    "invalid UTF-8": b'{"value":{"type":"JSON","data":"\xff\xfe"}}',
    "NUL": b"\0\0\0",
    "huge partition": b'{"partition_id":2147483648,"value":{"type":"JSON","data":1}}',
    "negative partition": b'{"partition_id":-1,"value":{"type":"JSON","data":1}}',
    "negative timestamp": b'{"timestamp":"-0001-01-01T00:00:00Z","value":{"type":"JSON","data":1}}',
    "huge timestamp": b'{"timestamp":"9999999-01-01T00:00:00Z","value":{"type":"JSON","data":1}}',
    "timestamp of no day": b'{"timestamp":"2023-02-30T00:00:00Z","value":{"type":"JSON","data":1}}',
    "timestamp without end": b'{"timestamp":1e400,"value":{"type":"JSON","data":1}}',
    "too many headers": json.dumps({"headers": HEADERS, "value": {"type": "JSON", "data": 1}}).encode(),
    "schema id": b'{"value":{"schema_id":-1,"data":1}}',
    "huge schema id": b'{"value":{"schema_id":99999999999999999999,"data":1}}',
    "huge schema version": b'{"value":{"schema_version":99999999999999999999,"data":1}}',
    "NUL in a subject": b'{"value":{"subject":"a\\u0000b","schema_version":1,"data":1}}',
}


@pytest.mark.parametrize("content", HOSTILE_V2.values(), ids=HOSTILE_V2.keys())
def test_hostile_bodies_of_api_v2_are_refused(world: World, topic: str, content: bytes) -> None:
    answer = world.post(f"/topics/{topic}", content)
    assert 400 <= answer.status_code < 500, answer.text[:300]
    assert answer.json()["message"]


@pytest.mark.parametrize("content", HOSTILE_V3.values(), ids=HOSTILE_V3.keys())
def test_hostile_records_of_api_v3_are_refused(world: World, topic: str, content: bytes) -> None:
    answer = world.post(f"{world.v3}/topics/{topic}/records", content, "application/json")
    first = json.loads(answer.text.splitlines()[0])
    assert 400 <= int(str(first["error_code"])[:3]) < 500, answer.text[:300]
    assert first["message"]


@pytest.mark.parametrize("content", [*HOSTILE_V3.values()], ids=HOSTILE_V3.keys())
def test_hostile_entries_of_a_batch_are_refused(world: World, topic: str, content: bytes) -> None:
    entry = b'{"id":"1",' + content.lstrip()[1:]
    answer = world.post(f"{world.v3}/topics/{topic}/records:batch", b'{"entries":[' + entry + b"]}", "application/json")
    if answer.status_code == 207:
        assert not answer.json()["successes"]
        assert [400 <= int(str(item["error_code"])[:3]) < 500 for item in answer.json()["failures"]] == [True]
    else:
        assert 400 <= answer.status_code < 500, answer.text[:300]


STRANGE_BUT_TRUE: Final[dict[str, bytes]] = {
    "large numbers": b'{"records":[{"value":' + b"9" * 10_000 + b'},{"value":1e400},{"value":-0.0}]}',
    "NUL in text": b'{"records":[{"key":"a\\u0000b","value":"\\u0000"}]}',
    "half surrogate in JSON": b'{"records":[{"value":"\\ud800"}]}',
    "many headers": json.dumps({"records": [{"value": 1, "headers": HEADERS[:10_000]}]}).encode(),
    "a long header's name": json.dumps({"records": [{"value": 1, "headers": [{"name": "h" * 900_000}]}]}).encode(),
    "an empty header's name": b'{"records":[{"value":1,"headers":[{"name":"","value":""}]}]}',
}


@pytest.mark.parametrize("content", STRANGE_BUT_TRUE.values(), ids=STRANGE_BUT_TRUE.keys())
def test_strange_records_are_written_or_refused_but_never_a_failure(world: World, topic: str, content: bytes) -> None:
    answer = world.post(f"/topics/{topic}", content)
    assert answer.status_code < 500, answer.text[:300]
    assert answer.json()


@pytest.mark.parametrize(
    "path",
    [
        "/topics/%00/partitions/0/records?offset=0",
        "/topics/{topic}/partitions/99999999999/records?offset=0",
        "/topics/{topic}/partitions/0/records?offset=99999999999999999999",
        "/topics/{topic}/partitions/0/records?offset=-5",
        "/topics/{topic}/partitions/0/records?timestamp=%F0%9F%98%80",
        "/topics/{topic}/records?position=%00",
        "/topics/%ED%A0%80",
        "/topics/" + "x" * 10_000,
        "/consumers/%00/instances/%FF/records",
        "/consumers/g/instances/" + "x" * 10_000,
        "{v3}/topics/%FF%FE",
        "{v3}/consumer-groups/%00",
        "{v3}/consumer-groups/" + "g" * 40_000,
        "{v3}/topics/{topic}/partitions/0/records?offset=1e9",
        "/v3/clusters/%00/topics",
    ],
)
def test_hostile_paths_are_refused(world: World, topic: str, path: str) -> None:
    answer = world.client.get(path.format(topic=topic, v3=world.v3))
    assert 400 <= answer.status_code < 500, answer.text[:300]
    assert answer.json()["message"]
