"""Live streams of records over HTTP: lines of JSON and server-sent events, from their first record to their end."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess

NDJSON = {"accept": "application/x-ndjson"}
EVENTS = {"accept": "text/event-stream"}


@pytest.fixture(scope="module")
def quick(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    """A proxy with few streams, whose hearts beat fast."""
    settings = {"stream.heartbeat.ms": "100", "streams.max": "2"}
    directory = tmp_path_factory.mktemp("quick")
    with ProxyProcess(directory, bootstrap=broker.bootstrap, registry=registry.url, settings=settings) as process:
        yield process


@pytest.fixture
def api(quick: ProxyProcess) -> Iterator[httpx2.Client]:
    """A client of that proxy."""
    with httpx2.Client(base_url=quick.url, timeout=30) as client:
        yield client


@contextmanager
def lines(api: httpx2.Client, url: str, headers: dict[str, str] = NDJSON) -> Iterator[Iterator[str]]:
    """The lines of a stream, until the block is left."""
    with api.stream("GET", url, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].partition(";")[0] == headers["accept"]
        yield answer.iter_lines()


def records(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    """The next records of a stream of lines, without its heartbeats."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        if line := next(lines):
            found.append(json.loads(line))
    return found


def events(lines: Iterator[str], count: int) -> list[dict[str, str]]:
    """The next events that have data, by the names of their fields."""
    found: list[dict[str, str]] = []
    event: dict[str, str] = {}
    while len(found) < count:
        line = next(lines)
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = value
        elif not line:
            found += [event] if "data" in event else []
            event = {}
    return found


def produce(broker: BrokerProcess, topic: str, values: list[bytes], *, partition: int = 0) -> None:
    """Write records."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Values that are different from each other."""
    return [b'{"n":%d}' % number for number in range(first, first + count)]


def v3(api: httpx2.Client, topic: str) -> str:
    """Where API v3 tells a topic."""
    return f"/v3/clusters/{api.get('/v3/clusters').json()['data'][0]['cluster_id']}/topics/{topic}"


# --- what comes ---


def test_lines_are_the_records_of_a_page(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [b'{"n":\r\n 0}', b"[1]"])
    for url in (f"{v3(api, name)}/partitions/0/records?value_format=json", f"/topics/{name}/partitions/0/records?"):
        accept = {"accept": "application/json"}
        page = api.get(f"{url}&from=beginning", headers=accept).json()
        with lines(api, f"{url}&from=beginning&until=end") as received:
            assert list(map(json.loads, received)) == (page if isinstance(page, list) else page["data"])


def test_a_stream_brings_records_as_they_are_written(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(2))
    with lines(api, f"/topics/{name}/partitions/0/records?format=json") as received:
        for number in range(2, 5):
            produce(broker, name, numbered(1, number))
            [record] = records(received, 1)
            assert (record["offset"], record["value"]) == (number, {"n": number})


def test_a_stream_of_many_records_is_complete_and_in_order(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(20_000))
    for headers in (NDJSON, EVENTS):
        with lines(api, f"/topics/{name}/partitions/0/records?offset=5&until=end&format=json", headers) as received:
            if headers == NDJSON:
                numbers = [json.loads(line)["value"]["n"] for line in received]
            else:
                data = [event["data"] for event in events(received, 19_995)]
                numbers = [json.loads(text)["value"]["n"] for text in data]
        assert numbers == list(range(5, 20_000))


def test_a_record_that_cannot_be_read_does_not_end_a_stream(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, [b"1", b"\xff", b"3"])
    with lines(api, f"{v3(api, name)}/partitions/0/records?value_format=json&from=beginning") as received:
        first, bad, last = (record["value"] for record in records(received, 3))
    assert (first["data"], last["data"]) == (1, 3)
    assert (bad["type"], base64.b64decode(bad["data"]), bad["error_code"]) == ("BINARY", b"\xff", 42207)


def test_records_with_a_schema_are_read_by_it(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    schema = '{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'
    body = {"value_schema": schema, "records": [{"value": {"n": 1}}]}
    avro = {"content-type": "application/vnd.kafka.avro.v2+json"}
    produced = api.post(f"/topics/{name}", content=json.dumps(body), headers=avro).json()
    produce(broker, name, [b"no schema"])
    with lines(api, f"{v3(api, name)}/partitions/0/records?value_format=avro&from=beginning") as received:
        first, second = (record["value"] for record in records(received, 2))
    assert first == {"type": "AVRO", "data": {"n": 1}, "schema_id": produced["value_schema_id"]}
    assert (second["type"], second["error_code"]) == ("BINARY", 42207)


def test_a_stream_whose_registry_is_gone_ends_with_the_position_of_what_it_could_not_read(
    broker: BrokerProcess, tmp_path: Path, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, [b"\x00\x00\x00\x00\x01\x02"])
    process = ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry="http://127.0.0.1:1")
    url = f"/topics/{name}/partitions/0/records?format=avro&from=beginning"
    with process as proxy, httpx2.Client(base_url=proxy.url, timeout=30) as api, lines(api, url) as received:
        [last] = records(received, 1)
        assert (last["error_code"], last["position"]) == (503, "0:0")


def test_streams_without_records_say_that_they_live(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    url = f"/topics/{name}/partitions/0/records"
    with lines(api, url) as received:
        assert [next(received), next(received)] == ["", ""]
    with lines(api, url, EVENTS) as received:
        assert [next(received) for _ in range(5)] == ["retry: 1000", "id: 0:0", "", ": heartbeat", ""]


# --- where it begins and ends ---


def test_a_stream_ends_after_as_many_records_as_were_asked_for(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(10))
    with lines(api, f"/topics/{name}/partitions/0/records?offset=2&max_records=3") as received:
        assert [json.loads(line)["offset"] for line in received] == [2, 3, 4]


def test_a_stream_until_the_end_has_what_was_there_when_it_began(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name, partitions=3)
    assert api.get(f"/topics/{name}/records?until=end", headers=NDJSON).content == b""
    produce(broker, name, numbered(3))
    produce(broker, name, numbered(2), partition=2)
    answer = api.get(f"/topics/{name}/records?until=end", headers=NDJSON)
    received = [json.loads(line) for line in answer.text.splitlines() if line]
    assert sorted((record["partition"], record["offset"]) for record in received) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (2, 0),
        (2, 1),
    ]


def test_a_stream_until_the_end_passes_what_is_no_record(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    for end in (Producer.commit_transaction, Producer.abort_transaction):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{name}-{end.__name__}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(name, end.__name__, partition=0)
        assert producer.flush(30) == 0
        end(producer, 30)
    answer = api.get(f"/topics/{name}/partitions/0/records?until=end&format=string", headers=NDJSON)
    received = [json.loads(line) for line in answer.text.splitlines() if line]
    assert [record["value"] for record in received] == ["commit_transaction"]


def test_a_browser_resumes_exactly_where_it_was_cut_off(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    for partition in (0, 1):
        produce(broker, name, numbered(50), partition=partition)
    seen: list[tuple[int, int]] = []
    headers, url = dict(EVENTS), f"/topics/{name}/records?from=beginning&format=json"
    for count in (1, 30, 7, 62):
        with lines(api, url, headers) as received:
            found = events(received, count)
        headers["last-event-id"] = found[-1]["id"]
        places = [json.loads(event["data"]) for event in found]
        seen += [(place["partition"], place["offset"]) for place in places]
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(50)]
    assert headers["last-event-id"] == "0:50,1:50"


def test_a_position_resumes_a_stream_of_lines(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    for partition in (0, 1):
        produce(broker, name, numbered(5), partition=partition)
    # Partition 1 was not there when the position was taken.
    with lines(api, f"/topics/{name}/records?position=0:4&max_records=6") as received:
        places = [(record["partition"], record["offset"]) for record in records(received, 6)]
    assert sorted(places) == [(0, 4), *((1, offset) for offset in range(5))]


@pytest.mark.parametrize(
    ("headers", "query", "status", "message"),
    [
        ({"last-event-id": "here"}, "", 400, "'here'"),
        ({"last-event-id": "1:0"}, "", 400, "must name partition 0 and no other"),
        ({}, "position=0:9999999999999999999999", 400, "Position"),
        ({}, "position=0:7", 400, "Offset 7 is out of range"),
        ({}, "position=0:1&offset=1", 400, "offset and position"),
        ({}, "offset=7", 400, "begins at 0 and ends at 2"),
        ({}, "until=noon", 400, "Parameter until 'noon'"),
        ({}, "format=xml", 400, "Parameter format 'xml'"),
    ],
)
def test_streams_that_cannot_begin_are_refused(
    api: httpx2.Client,
    broker: BrokerProcess,
    name: str,
    headers: dict[str, str],
    query: str,
    status: int,
    message: str,
) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(2))
    answer = api.get(f"/topics/{name}/partitions/0/records?{query}", headers={**EVENTS, **headers})
    assert answer.status_code == status
    assert message in answer.json()["message"]


def test_one_offset_for_all_partitions_is_refused(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    answer = api.get(f"/topics/{name}/records?offset=0", headers=NDJSON)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert "position" in answer.json()["message"]


def test_a_stream_of_a_topic_gets_the_partitions_that_are_added(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    with lines(api, f"/topics/{name}/records") as received:
        admin_client(broker).create_partitions([NewPartitions(name, 2)])[name].result()
        produce(broker, name, numbered(2), partition=1)
        assert [(record["partition"], record["offset"]) for record in records(received, 2)] == [(1, 0), (1, 1)]


# --- how it ends ---


def test_a_stream_of_a_deleted_topic_says_so(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(1))
    with lines(api, f"/topics/{name}/partitions/0/records?from=beginning") as received:
        assert records(received, 1)
        admin_client(broker).delete_topics([name])[name].result()
        [last] = records(received, 1)
        assert (last["error_code"], last["position"]) == (40401, "0:1")
        assert list(received) == []


def test_streams_end_with_the_reason_when_the_proxy_stops(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(1))
    proxy = ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url).start()
    url = f"{proxy.url}/topics/{name}/partitions/0/records?from=beginning"
    with httpx2.Client(timeout=30) as api, lines(api, url) as plain, lines(api, url, EVENTS) as browser:
        assert records(plain, 1)
        assert events(browser, 1)
        stopping = threading.Thread(target=proxy.stop)
        stopping.start()
        assert records(plain, 1)[0]["error_code"] == 503
        [last] = events(browser, 1)
        assert last["event"] == "end"
        assert json.loads(last["data"])["position"] == "0:1"
        assert list(plain) == list(browser) == []
        stopping.join()


def test_a_client_that_vanishes_frees_its_place(
    api: httpx2.Client, quick: ProxyProcess, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    url = f"/topics/{name}/partitions/0/records"
    threads = 0
    for _ in range(5):
        with lines(api, url), lines(api, url, EVENTS):
            refused = api.get(url, headers=NDJSON)
            assert (refused.status_code, refused.json()["error_code"]) == (429, 429)
            assert "streams.max" in refused.json()["message"]
            assert refused.headers["retry-after"]
        eventually(lambda: api.get(f"{url}?until=end", headers=NDJSON).status_code, lambda status: status == 200)
        threads = threads or thread_count(quick)
    # Each of the streams had several threads of its connections; those that read are kept for the next.
    eventually(lambda: thread_count(quick), lambda count: count <= threads + 4)


def test_a_client_that_does_not_read_holds_the_stream_back(
    api: httpx2.Client, quick: ProxyProcess, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, [bytes(1000)] * 60_000)
    before = resident_bytes(quick)
    with socket.create_connection(("127.0.0.1", quick.port)) as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"GET /topics/{name}/partitions/0/records?from=beginning HTTP/1.1\r\nhost: x\r\n"
        idle.sendall(f"{head}accept: application/x-ndjson\r\n\r\n".encode())
        assert idle.recv(1000).startswith(b"HTTP/1.1 200")
        # Another client reads all of it in the meantime: the proxy had the time to do the same here.
        answer = api.get(f"/topics/{name}/partitions/0/records?until=end", headers=NDJSON)
        assert answer.content.count(b"\n") >= 60_000
        assert resident_bytes(quick) - before < 30_000_000
    eventually(lambda: api.get(f"/topics/{name}/records?until=end&from=end", headers=NDJSON).status_code == 200)


def test_a_stream_survives_a_restart_of_the_broker(tmp_path: Path, registry: RegistryProcess, name: str) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        create_topic(broker, name)
        produce(broker, name, numbered(100))
        proxy = ProxyProcess(tmp_path / "proxy", bootstrap=broker.bootstrap, registry=registry.url)
        url = f"/topics/{name}/partitions/0/records?from=beginning&format=json"
        with proxy, httpx2.Client(base_url=proxy.url, timeout=30) as api, lines(api, url) as received:
            seen = records(received, 100)
            for round_, kill in ((1, False), (2, True)):
                broker.restart(kill=kill)
                produce(broker, name, numbered(100, round_ * 100))
                seen += records(received, 100)
    assert [record["value"]["n"] for record in seen] == list(range(300))


def thread_count(process: ProxyProcess) -> int:
    """How many threads a process has."""
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))


def resident_bytes(process: ProxyProcess) -> int:
    """How much memory a process takes."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * 4096
