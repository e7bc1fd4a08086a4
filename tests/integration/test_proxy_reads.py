"""Pages of a partition over HTTP, without a consumer instance: what confluent-kafka wrote, from anywhere on."""

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka import Producer, TopicPartition

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess

BINARY = "application/vnd.kafka.binary.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
FOREVER = {"retention.ms": "-1"}
"""For topics whose records have times of long ago."""


@pytest.fixture
def api(proxy: ProxyProcess) -> Iterator[httpx2.Client]:
    """A client of the proxy."""
    with httpx2.Client(base_url=proxy.url, timeout=30) as client:
        yield client


@pytest.fixture
def v3(api: httpx2.Client, name: str) -> str:
    """Where API v3 tells the topic that is named like the test."""
    cluster = api.get("/v3/clusters").json()["data"][0]["cluster_id"]
    return f"/v3/clusters/{cluster}/topics/{name}"


def produce(broker: BrokerProcess, topic: str, values: list[Any], **attributes: Any) -> None:
    """Write records to partition 0, all with the same attributes."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value, partition=0, **attributes)
    assert producer.flush(30) == 0


def numbered(count: int) -> list[bytes]:
    """Values that are different from each other."""
    return [b'{"n":%d}' % number for number in range(count)]


def offsets(page: list[dict[str, Any]]) -> list[int]:
    """The offsets of records."""
    return [record["offset"] for record in page]


# --- v2 ---


def test_a_page_has_the_records_from_an_offset_on(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=FOREVER)
    produce(broker, name, [b"one", b"two", b"three"], key=b"k", timestamp=1_700_000_000_000)
    answer = api.get(f"/topics/{name}/partitions/0/records?offset=1&timeout=5000&max_bytes=1024")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == BINARY
    assert answer.json() == [
        {
            "topic": name,
            "key": "aw==",
            "value": base64.b64encode(value).decode(),
            "partition": 0,
            "offset": offset,
            "timestamp": 1_700_000_000_000,
        }
        for offset, value in ((1, b"two"), (2, b"three"))
    ]


def test_the_accept_header_chooses_the_format(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [b'{"a": [1,\n 2]}'], key=b'"k"')
    answer = api.get(f"/topics/{name}/partitions/0/records?offset=0", headers={"accept": JSON})
    assert answer.headers["content-type"] == JSON
    assert (answer.json()[0]["key"], answer.json()[0]["value"]) == ("k", {"a": [1, 2]})


def test_headers_and_missing_keys_and_values_are_included(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [None], headers=[("trace", b"\x00\xff"), ("trace", None)])
    [record] = api.get(f"/topics/{name}/partitions/0/records?offset=0").json()
    assert (record["key"], record["value"]) == (None, None)
    assert record["headers"] == [{"name": "trace", "value": "AP8="}, {"name": "trace", "value": None}]


def test_a_record_that_cannot_be_decoded_keeps_its_place(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [b"1", b"\xff not JSON", b"3"], key=b'"k"')
    page = api.get(f"/topics/{name}/partitions/0/records?offset=0", headers={"accept": JSON}).json()
    assert [record["value"] for record in page] == [1, None, 3]
    assert page[1]["error_code"] == 42207
    assert "offset 1" in page[1]["message"]
    assert (page[1]["key"], base64.b64decode(page[1]["value_raw"])) == ("k", b"\xff not JSON")


def test_links_lead_through_all_records_once(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(1000))
    url, read = f"/topics/{name}/partitions/0/records?offset=0&max_records=137&timeout=0", []
    while page := (answer := api.get(url)).json():
        assert len(page) <= 137
        read += offsets(page)
        url = answer.links["next"]["url"]
    assert read == list(range(1000))


def test_pages_are_bounded_by_bytes_and_have_one_record_at_least(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, [bytes(100)] * 10)
    sizes: dict[int, list[int]] = {250: [0, 1], 100: [0], 1: [0]}
    for max_bytes, expected in sizes.items():
        page = api.get(f"/topics/{name}/partitions/0/records?offset=0&max_bytes={max_bytes}").json()
        assert offsets(page) == expected
    # What was left over is read by the page that goes on there.
    assert offsets(api.get(f"/topics/{name}/partitions/0/records?offset=1&max_bytes=350").json()) == [1, 2, 3]


def test_a_page_at_the_end_waits_for_the_next_record(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [b"before"])
    later = threading.Timer(0.5, produce, (broker, name, [b"after"]))
    later.start()
    page = api.get(f"/topics/{name}/partitions/0/records?offset=1&timeout=20000").json()
    later.join()
    assert offsets(page) == [1]


def test_a_page_at_the_end_is_empty_when_the_time_is_over(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    for _ in range(2):  # by a new reader, and by the one that stopped there
        answer = api.get(f"/topics/{name}/partitions/0/records?offset=0&timeout=10")
        assert (answer.status_code, answer.json()) == (200, [])


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("offset=4", 40002, "begins at 0 and ends at 3"),
        ("", 40002, "Missing mandatory parameter 'offset'"),
        ("offset=-1", 400, "Parameter offset '-1'"),
        ("offset=99999999999999999999", 400, "Parameter offset"),
        ("offset=0&timestamp=5", 400, "offset and timestamp"),
        ("timestamp=yesterday", 400, "Parameter timestamp 'yesterday'"),
        ("timestamp=9999999999999999", 400, "Parameter timestamp"),
        ("from=middle", 400, "Parameter from 'middle': Input should be 'beginning' or 'end'"),
        ("offset=0&timeout=999999999", 400, "Parameter timeout"),
        ("offset=0&max_bytes=0", 400, "Parameter max_bytes"),
        ("offset=0&max_records=0", 400, "Parameter max_records"),
        ("offset=0&isolation_level=some", 400, "Parameter isolation_level 'some'"),
        ("position=0:1", 400, "Parameter position"),
    ],
)
def test_wrong_parameters_are_refused(
    api: httpx2.Client, broker: BrokerProcess, name: str, query: str, code: int, message: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(3))
    answer = api.get(f"/topics/{name}/partitions/0/records?{query}")
    assert (answer.status_code, answer.json()["error_code"]) == (400, code)
    assert message in answer.json()["message"]


def test_what_is_not_there_is_not_found(api: httpx2.Client, broker: BrokerProcess, name: str, v3: str) -> None:
    create_topic(broker, name)
    codes = {
        f"/topics/{name}-not/partitions/0/records?offset=0": 40401,
        "/topics/a%20b%00/partitions/0/records?offset=0": 404,
        "/topics/a%20b/partitions/0/records?offset=0": 40401,
        f"/topics/{name}/partitions/1/records?offset=0": 40402,
        f"/topics/{name}/partitions/x/records?offset=0": 404,
        f"{v3}-not/partitions/0/records": 40403,
        f"{v3}/partitions/7/records": 40403,
        f"/v3/clusters/other/topics/{name}/partitions/0/records": 404,
    }
    for path, code in codes.items():
        answer = api.get(path)
        assert (answer.status_code, answer.json()["error_code"]) == (404, code), path


@pytest.mark.parametrize("accept", ["application/xml", "application/vnd.kafka.other.v2+json"])
def test_media_types_that_cannot_be_answered_are_refused(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str, accept: str
) -> None:
    create_topic(broker, name)
    for path in (f"/topics/{name}/partitions/0/records?offset=0", f"{v3}/partitions/0/records", f"{v3}/records"):
        answer = api.get(path, headers={"accept": accept})
        assert (answer.status_code, answer.json()["error_code"]) == (406, 406)


# --- v3 ---


def test_a_page_of_v3_tells_records_types_and_bounds(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str
) -> None:
    create_topic(broker, name, configs=FOREVER)
    produce(broker, name, numbered(3), key=b"key", headers=[("h", b"1")], timestamp=1_700_000_000_000)
    url = f"{v3}/partitions/0/records?offset=1&max_records=1&key_format=string&value_format=json"
    page = api.get(url).json()
    assert page["kind"] == "KafkaRecordList"
    assert page["data"] == [
        {
            "partition_id": 0,
            "offset": 1,
            "timestamp": 1_700_000_000_000,
            "timestamp_type": "CreateTime",
            "headers": [{"name": "h", "value": "MQ=="}],
            "key": {"type": "STRING", "data": "key"},
            "value": {"type": "JSON", "data": {"n": 1}},
        }
    ]
    assert (page["beginning_offset"], page["next_offset"], page["end_offset"]) == (0, 2, 3)
    assert page["metadata"]["self"] == f"{api.base_url}".rstrip("/") + url
    following = api.get(page["metadata"]["next"]).json()
    assert following["data"][0]["value"] == {"type": "JSON", "data": {"n": 2}}


def test_parts_of_v3_that_cannot_be_read_are_binary_with_the_reason(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, [b"\x00nope", None], key=b"\xff")
    url = f"{v3}/partitions/0/records?key_format=string&value_format=avro"
    first, second = api.get(url).json()["data"]
    assert (first["value"]["type"], first["value"]["data"]) == ("BINARY", "AG5vcGU=")
    assert first["value"]["error_code"] == first["key"]["error_code"] == 42207
    assert (first["key"]["data"], second["value"]) == ("/w==", None)


def test_a_time_leads_to_the_first_record_of_it_or_later(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str
) -> None:
    create_topic(broker, name, configs=FOREVER)
    for timestamp in (1_700_000_000_000, 1_700_000_005_000):
        produce(broker, name, [b"x"], timestamp=timestamp)
    expected = {
        "1700000000000": [0, 1],
        "1700000000001": [1],
        "2023-11-14T22:13:20.001Z": [1],
        "2023-11-14T23:13:25%2B01:00": [1],
        "2200-01-01T00:00:00": [],
    }
    for moment, found in expected.items():
        page = api.get(f"{v3}/partitions/0/records?timestamp={moment}&timeout_ms=0").json()
        assert (offsets(page["data"]), page["next_offset"]) == (found, 2), moment


def test_from_chooses_the_beginning_or_the_end(api: httpx2.Client, broker: BrokerProcess, name: str, v3: str) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(2))
    expected: dict[str, list[int]] = {"": [0, 1], "&from=beginning": [0, 1], "&from=end": []}
    for query, found in expected.items():
        page = api.get(f"{v3}/partitions/0/records?timeout_ms=0{query}").json()
        assert (offsets(page["data"]), page["next_offset"]) == (found, 2)


# --- transactions, compaction, deleted records ---


def transaction(broker: BrokerProcess, topic: str, values: list[bytes]) -> Producer:
    """An open transaction that has written these values."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-{values[0]!r}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0
    return producer


def test_records_of_open_and_aborted_transactions_are_not_seen_unless_asked_for(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str
) -> None:
    create_topic(broker, name)
    transaction(broker, name, [b"aborted"]).abort_transaction(30)
    transaction(broker, name, [b"committed"]).commit_transaction(30)
    is_open = transaction(broker, name, [b"open"])
    committed = api.get(f"{v3}/partitions/0/records?value_format=string&timeout_ms=0").json()
    everything = api.get(
        f"{v3}/partitions/0/records?value_format=string&timeout_ms=0&isolation_level=read_uncommitted"
    ).json()
    assert [record["value"]["data"] for record in committed["data"]] == ["committed"]
    assert [record["value"]["data"] for record in everything["data"]] == ["aborted", "committed", "open"]
    is_open.commit_transaction(30)
    rest = api.get(committed["metadata"]["next"].replace("timeout_ms=0", "timeout_ms=20000")).json()
    assert [record["value"]["data"] for record in rest["data"]] == ["open"]


def test_records_that_were_deleted_are_out_of_range_and_the_error_has_the_bounds(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str
) -> None:
    create_topic(broker, name)
    produce(broker, name, numbered(5))
    [deleted] = admin_client(broker).delete_records([TopicPartition(name, 0, 3)]).values()
    deleted.result()
    answer = api.get(f"{v3}/partitions/0/records?offset=0")
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40002)
    assert "Offset 0 is out of range" in answer.json()["message"]
    assert "begins at 3 and ends at 5" in answer.json()["message"]
    page = api.get(f"{v3}/partitions/0/records?from=beginning").json()
    assert (offsets(page["data"]), page["beginning_offset"]) == ([3, 4], 3)


def test_pages_lead_over_the_holes_of_a_compacted_topic(
    api: httpx2.Client, broker: BrokerProcess, name: str, v3: str
) -> None:
    quickly = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    create_topic(broker, name, configs=quickly)
    kept: list[int] = []
    for attempt in range(100):
        produce(broker, name, numbered(10), key=b"same")
        read, url = [], f"{v3}/partitions/0/records?timeout_ms=100&max_records=7"
        while data := (page := api.get(url).json())["data"]:
            read += offsets(data)
            url = page["metadata"]["next"]
        assert read == sorted(set(read))
        assert read[-1] == (attempt + 1) * 10 - 1
        kept = read
        if len(kept) < (attempt + 1) * 10:
            break
    assert len(kept) < kept[-1] + 1, "nothing was compacted"


def test_a_topic_that_was_deleted_between_two_pages_is_not_found(
    api: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    url = f"/topics/{name}/partitions/0/records?offset=0&timeout=0"
    assert api.get(url).json() == []
    admin_client(broker).delete_topics([name])[name].result()
    answer = api.get(url)
    assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)


# --- limits and faults ---


def test_reads_beyond_the_limit_get_429(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path, name: str
) -> None:
    create_topic(broker, name)
    limited = ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url, settings={"readers.max": "1"})
    url = f"/topics/{name}/partitions/0/records?offset=0"
    with limited as proxy, httpx2.Client(base_url=proxy.url, timeout=30) as api:
        with httpx2.Client(base_url=proxy.url, timeout=30) as waiting, pytest.raises(httpx2.ReadTimeout):
            waiting.get(f"{url}&timeout=60000", timeout=httpx2.Timeout(30, read=1))
        # The client that went is forgotten; until then, there is no reader for another one.
        while (answer := api.get(f"{url}&timeout=0")).status_code != 200:
            assert answer.status_code == 429
            assert "readers.max" in answer.json()["message"]
            assert int(answer.headers["retry-after"]) >= 1


def test_a_cluster_that_is_down_is_reported_with_its_address(
    registry: RegistryProcess, tmp_path: Path, name: str
) -> None:
    process = ProxyProcess(tmp_path, bootstrap="127.0.0.1:1", registry=registry.url)
    with process as proxy, httpx2.Client(base_url=proxy.url, timeout=30) as api:
        for accept in ("*/*", "text/event-stream"):
            answer = api.get(f"/topics/{name}/partitions/0/records?offset=0", headers={"accept": accept})
            assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
            assert "127.0.0.1:1" in answer.json()["message"]
            assert answer.headers["retry-after"]


def test_pages_go_on_after_a_restart_of_the_broker(tmp_path: Path, registry: RegistryProcess, name: str) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        create_topic(broker, name)
        produce(broker, name, numbered(3))
        proxy = ProxyProcess(tmp_path / "proxy", bootstrap=broker.bootstrap, registry=registry.url)
        with proxy, httpx2.Client(base_url=proxy.url, timeout=30) as api:
            url = f"/topics/{name}/partitions/0/records?timeout=20000&max_records=2&offset="
            assert offsets(api.get(f"{url}0").json()) == [0, 1]
            broker.restart()
            produce(broker, name, numbered(1))
            rest: list[int] = []
            while len(rest) < 2:
                answer = api.get(f"{url}{2 + len(rest)}")
                rest += offsets(answer.json()) if answer.status_code == 200 else []
            assert rest == [2, 3]


def test_a_page_that_waits_is_answered_when_the_proxy_stops(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path, name: str
) -> None:
    create_topic(broker, name)
    proxy = ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url).start()
    url = f"{proxy.url}/topics/{name}/partitions/0/records?offset=0&timeout=60000"
    answers: list[httpx2.Response] = []
    waiting = threading.Thread(target=lambda: answers.append(httpx2.get(url, timeout=60)))
    waiting.start()
    with httpx2.Client(base_url=proxy.url, timeout=30) as api:
        in_work = "caudal_rest_proxy_http_requests_in_work 2"
        eventually(lambda: in_work in api.get("/metrics").text)
    proxy.stop()
    waiting.join()
    assert (answers[0].status_code, answers[0].json()) == (200, [])


def test_reads_are_counted(api: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    def count() -> float:
        lines = api.get("/metrics").text.splitlines()
        wanted = 'caudal_rest_proxy_records_consumed_total{format="jsonschema",how="page"} '
        return sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))

    create_topic(broker, name)
    produce(broker, name, numbered(4))
    before = count()
    api.get(
        f"/topics/{name}/partitions/0/records?offset=0",
        headers={"accept": "application/vnd.kafka.jsonschema.v2+json"},
    )
    assert count() - before == 4


def test_the_document_tells_how_reads_are_answered(api: httpx2.Client) -> None:
    paths = json.loads(api.get("/openapi.json").content)["paths"]
    operation = paths["/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/records"]["get"]
    content = operation["responses"]["200"]["content"]
    assert set(content) == {"application/json", "application/x-ndjson", "text/event-stream"}
    assert all("example" in content[media_type] for media_type in ("application/x-ndjson", "text/event-stream"))
    assert "429" in operation["responses"]
