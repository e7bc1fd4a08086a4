"""Produce in API v3, over HTTP: records one by one, as a stream in both directions, in batches."""

import base64
import json
import os
import re
import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest

from schema_registry.formats.schema import SchemaType
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import Received
from tests.support.kafka import start_class
from tests.support.protobuf_messages import message_classes
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import confluent, context
from tests.support.serde_schemas import EXAMPLES, Example

TYPES = {"avro": "AVRO", "json": "JSONSCHEMA", "protobuf": "PROTOBUF"}
AVRO = '{"type":"record","name":"P","fields":[{"name":"a","type":"int"}]}'


class Api:
    """The proxy's API for one topic."""

    def __init__(self, client: httpx2.Client, cluster_id: str, topic: str) -> None:
        self.client = client
        self.cluster_id = cluster_id
        self.topic = topic
        self.path = f"/v3/clusters/{cluster_id}/topics/{topic}/records"

    def post(self, body: object, *, query: str = "", **headers: str) -> httpx2.Response:
        """Send a body; bytes as they are, anything else as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(
            self.path + query, content=content, headers={"Content-Type": "application/json", **headers}
        )

    def produce(self, record: object, *, query: str = "") -> dict[str, Any]:
        """What became of one record."""
        answer = self.post(record, query=query)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        payload: dict[str, Any] = json.loads(answer.content)
        return payload

    def produce_all(self, records: Sequence[object], *, separator: str = "") -> list[dict[str, Any]]:
        """What became of several records in one body."""
        body = separator.join(json.dumps(record) for record in records)
        answer = self.post(body.encode())
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def batch(self, *entries: object) -> httpx2.Response:
        """The answer to a batch."""
        return self.client.post(f"{self.path}:batch", json={"entries": entries})

    def stream(self, *, query: str = "") -> "Stream":
        """An open request."""
        return Stream(self.client.base_url.host, self.client.base_url.port or 80, self.path + query)


class Stream:
    """A request whose body is sent bit by bit while its answer is read."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.socket = socket.create_connection((host, port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = [f"POST {path} HTTP/1.1", "Host: proxy", "Content-Type: application/json", "Transfer-Encoding: chunked"]
        self.socket.sendall("\r\n".join([*head, "", ""]).encode())
        self.response = HTTPResponse(self.socket, method="POST")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.response.close()
        self.socket.close()

    def send(self, part: bytes | object) -> None:
        """Send a chunk: bytes as they are, anything else as JSON."""
        content = part if isinstance(part, bytes) else json.dumps(part).encode()
        self.socket.sendall(b"%x\r\n%s\r\n" % (len(content), content))

    def finish(self) -> None:
        """End the body."""
        self.socket.sendall(b"0\r\n\r\n")

    def status(self) -> int:
        """The status, once it is there."""
        self.response.begin()
        return self.response.status

    def answer(self) -> dict[str, Any]:
        """The next line of the answer."""
        line = self.response.readline()
        assert line, "the answer is over"
        payload: dict[str, Any] = json.loads(line)
        return payload

    def is_over(self) -> bool:
        """Whether the answer has ended as it should."""
        return self.response.read() == b""

    def vanish(self) -> None:
        """Reset the connection, as a process that is killed does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.response.close()
        self.socket.close()


@pytest.fixture(scope="module")
def client(proxy: ProxyProcess) -> Iterator[httpx2.Client]:
    """A client of the proxy for all tests."""
    with httpx2.Client(base_url=proxy.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def cluster_id(broker: BrokerProcess) -> str:
    """The id of the cluster, as Kafka's own client tells it."""
    return _cluster_id(broker)


def _cluster_id(broker: BrokerProcess) -> str:
    return str(admin_client(broker).describe_cluster().result(30).cluster_id)


@pytest.fixture
def api(client: httpx2.Client, broker: BrokerProcess, cluster_id: str, name: str) -> Api:
    """The API for a topic with three partitions."""
    create_topic(broker, name, partitions=3, configs={"retention.ms": "-1"})
    return Api(client, cluster_id, name)


@pytest.fixture(scope="module")
def strict_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that makes no topics by itself."""
    settings = {"auto.create.topics.enable": "false"}
    with start_class()(tmp_path_factory.mktemp("strict-broker"), settings=settings) as process:
        yield process


@pytest.fixture(scope="module")
def strict_proxy(
    strict_broker: BrokerProcess, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    """A proxy whose streams end soon, and that takes few records at a time."""
    settings = {
        "streaming.connection.max.duration.ms": "700",
        "streaming.connection.max.duration.grace.period.ms": "700",
        "streaming.connection.idle.timeout.ms": "600",
        "produce.in.flight.max.records": "1",
        "producer.linger.ms": "500",
    }
    directory = tmp_path_factory.mktemp("strict-proxy")
    bootstrap = strict_broker.bootstrap
    with ProxyProcess(directory, bootstrap=bootstrap, registry=registry.url, settings=settings) as process:
        yield process


@pytest.fixture
def strict(strict_proxy: ProxyProcess, strict_broker: BrokerProcess, name: str) -> Iterator[Api]:
    """The API of the strict proxy for a topic."""
    create_topic(strict_broker, name)
    with httpx2.Client(base_url=strict_proxy.url, timeout=60) as client:
        yield Api(client, _cluster_id(strict_broker), name)


def read(broker: BrokerProcess, topic: str, count: int) -> list[Received]:
    """The records of a topic, by confluent-kafka."""
    return ConfluentClient().consume(broker.bootstrap, topic, count)


def string(data: str | None) -> dict[str, Any]:
    """A record with a text."""
    return {"partition_id": 0, "value": {"type": "STRING", "data": data}}


def codes(answers: Sequence[dict[str, Any]]) -> list[int]:
    """The codes of answers."""
    return [answer["error_code"] for answer in answers]


# --- one record ---


@pytest.mark.parametrize(("charset", "status"), [("UTF-8", 200), ('"iso-8859-1"', 200), ("DEADBEEF", 400)])
def test_charsets_must_be_known(api: Api, charset: str, status: int) -> None:
    answer = api.post({"value": string("a")}, **{"Content-Type": f"application/json; charset={charset}"})
    assert answer.status_code == status


def test_who_waits_for_leave_to_stream_gets_it(api: Api) -> None:
    url = api.client.base_url
    head = f"POST {api.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    record = b'{"value":{"type":"STRING","data":"a"}}'
    with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(record), record))
        response = HTTPResponse(connection, method="POST")
        response.begin()
        assert json.loads(response.read())["error_code"] == 200


def test_a_record_is_answered_with_its_place_and_sizes(api: Api, broker: BrokerProcess) -> None:
    payload = api.produce(
        {
            "partition_id": 2,
            "timestamp": "2026-01-31T12:00:00.123Z",
            "headers": [{"name": "a", "value": "MQ=="}, {"name": "a", "value": "Mg=="}, {"name": "b", "value": "/w=="}],
            "key": {"type": "BINARY", "data": "a2V5AA=="},
            "value": {"type": "JSON", "data": {"z": 1.50, "a": ["é"]}},
        }
    )
    assert payload == {
        "error_code": 200,
        "cluster_id": api.cluster_id,
        "topic_name": api.topic,
        "partition_id": 2,
        "offset": 0,
        "timestamp": "2026-01-31T12:00:00.123Z",
        "key": {"type": "BINARY", "size": 4},
        "value": {"type": "JSON", "size": len('{"z":1.5,"a":["é"]}'.encode())},
    }
    (record,) = read(broker, api.topic, 1)
    assert (record.partition, record.key, record.value) == (2, b"key\0", '{"z":1.5,"a":["é"]}'.encode())
    assert record.headers == (("a", b"1"), ("a", b"2"), ("b", b"\xff"))
    assert record.timestamp_ms == 1_769_860_800_123


PLAIN: dict[str, tuple[dict[str, Any], bytes | None]] = {
    "binary": ({"type": "BINARY", "data": base64.b64encode(bytes(range(256))).decode()}, bytes(range(256))),
    "empty binary": ({"type": "BINARY", "data": ""}, b""),
    "string": ({"type": "STRING", "data": "é {}\n"}, "é {}\n".encode()),
    "empty string": ({"type": "STRING", "data": ""}, b""),
    "json": ({"type": "JSON", "data": ["}", '\\"{']}, b'["}","\\\\\\"{"]'),
    "null binary": ({"type": "BINARY", "data": None}, None),
    "null string": ({"type": "STRING", "data": None}, None),
    "null json": ({"type": "JSON", "data": None}, None),
    "no data": ({"type": "BINARY"}, None),
}


@pytest.mark.parametrize(("data", "expected"), PLAIN.values(), ids=PLAIN)
def test_keys_and_values_without_schemas(
    api: Api, broker: BrokerProcess, data: dict[str, Any], expected: bytes | None
) -> None:
    payload = api.produce({"key": data, "value": data})
    assert payload["error_code"] == 200, payload
    assert (
        payload["value"] == payload["key"] == {"type": data["type"], "size": -1 if expected is None else len(expected)}
    )
    (record,) = read(broker, api.topic, 1)
    assert (record.key, record.value) == (expected, expected)


@pytest.mark.parametrize("record", [{}, {"key": None, "value": None, "headers": None, "unknown": 1}])
def test_a_record_may_be_empty(api: Api, broker: BrokerProcess, record: dict[str, Any]) -> None:
    payload = api.produce(record)
    assert payload["error_code"] == 200
    assert not payload.keys() & {"key", "value"}
    (received,) = read(broker, api.topic, 1)
    assert (received.key, received.value, received.headers) == (None, None, ())


def check_decoded(registry: RegistryProcess, example: Example, topic: str, record: Received) -> None:
    """Confluent's deserializers, which have not seen the schema as text, read the value."""
    with confluent(registry.url) as client:
        if example.definition.schema_type is SchemaType.PROTOBUF:
            message = message_classes({"order.proto": example.definition.text})[example.record_name]
            order = client.protobuf_deserializer(message)(record.value, context(topic))
            assert {"id": order.id, "note": order.note} == example.value
        elif example.definition.schema_type is SchemaType.AVRO:
            assert client.avro_deserializer()(record.value, context(topic)) == example.value
        else:
            deserialize = client.json_deserializer(example.definition.text)
            assert deserialize(record.value, context(topic)) == example.value


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_schema_is_registered_by_its_text_and_then_named_in_other_ways(
    api: Api, broker: BrokerProcess, registry: RegistryProcess, kind: str
) -> None:
    example, subject = EXAMPLES[kind], f"{api.topic}-value"
    first = api.produce({"value": {"type": TYPES[kind], "schema": example.definition.text, "data": example.view}})
    assert first["error_code"] == 200, first
    described = first["value"]
    assert described["type"] == TYPES[kind]
    assert (described["subject"], described["schema_version"]) == (subject, 1)
    for named in ({"schema_id": described["schema_id"]}, {"schema_version": 1}, {"subject": subject}, {}):
        payload = api.produce({"value": {**named, "data": example.view}})
        assert payload.get("value") == described, payload
    records = read(broker, api.topic, 5)
    assert len({record.value for record in records}) == 1
    check_decoded(registry, example, api.topic, records[0])


@pytest.mark.parametrize(("strategy", "subject"), [("RECORD_NAME", "P"), ("TOPIC_RECORD_NAME", "{topic}-P")])
def test_subjects_are_named_by_the_strategy(api: Api, strategy: str, subject: str) -> None:
    value = {"type": "AVRO", "schema": AVRO, "subject_name_strategy": strategy, "data": {"a": 1}}
    assert api.produce({"value": value})["value"]["subject"] == subject.format(topic=api.topic)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_null_by_a_schema_is_a_tombstone(api: Api, broker: BrokerProcess, kind: str) -> None:
    value = {"type": TYPES[kind], "schema": EXAMPLES[kind].definition.text, "data": None}
    payload = api.produce({"key": {"type": "STRING", "data": "k"}, "value": value})
    assert (payload["error_code"], payload["value"]["size"]) == (200, -1)
    assert [record.value for record in read(broker, api.topic, 1)] == [None]


def test_numbers_as_times_count_seconds(api: Api, broker: BrokerProcess) -> None:
    payload = api.produce({**string("a"), "timestamp": 1.5})
    assert payload["timestamp"] == "1970-01-01T00:00:01.500Z"
    assert api.produce({**string("b"), "timestamp": 1})["timestamp"] == "1970-01-01T00:00:01Z"
    assert [record.timestamp_ms for record in read(broker, api.topic, 2)] == [1500, 1000]


@pytest.mark.parametrize("query", ["?acks=all", "?acks=-1", "?acks=1", "?idempotence=false"])
def test_guarantees_are_chosen_per_request(api: Api, query: str) -> None:
    assert api.produce(string("a"), query=query)["offset"] == 0
    with api.stream(query=query) as stream:
        stream.send(string("b"))
        assert stream.status() == 200
        assert stream.answer()["offset"] == 1


def test_without_acknowledgement_the_offset_is_minus_one(api: Api, broker: BrokerProcess) -> None:
    assert api.produce(string("a"), query="?acks=0")["offset"] == -1
    assert [record.value for record in read(broker, api.topic, 1)] == [b"a"]


# --- bad records ---

BAD: dict[str, tuple[object, int]] = {
    "base64": ({"value": {"type": "BINARY", "data": "fooba"}}, 400),
    "number as bytes": ({"key": {"type": "BINARY", "data": 1}}, 400),
    "number as text": ({"value": {"type": "STRING", "data": 1}}, 400),
    "unknown type": ({"value": {"type": "XML", "data": 1}}, 400),
    "type in lower case": ({"value": {"type": "json", "data": 1}}, 400),
    "binary with subject": ({"key": {"type": "BINARY", "subject": "foobar"}}, 400),
    "binary with strategy": ({"key": {"type": "BINARY", "subject_name_strategy": "TOPIC_NAME"}}, 400),
    "binary with schema": ({"key": {"type": "BINARY", "schema": '{"type":"string"}'}}, 400),
    "binary with schema id": ({"key": {"type": "BINARY", "schema_id": 1}}, 400),
    "binary with schema version": ({"key": {"type": "BINARY", "schema_version": 1}}, 400),
    "avro with schema version": ({"key": {"type": "AVRO", "schema_version": 1}}, 400),
    "avro with schema id": ({"key": {"type": "AVRO", "schema_id": 1}}, 400),
    "avro without schema": ({"key": {"type": "AVRO"}}, 400),
    "subject and strategy": ({"key": {"subject": "foobar", "subject_name_strategy": "TOPIC_NAME"}}, 400),
    "unknown strategy": ({"key": {"subject_name_strategy": "TOPIC"}}, 400),
    "id and version": ({"key": {"schema_id": 1, "schema_version": 1}}, 400),
    "schema and id": ({"key": {"schema": '{"type":"string"}', "schema_id": 1}}, 400),
    "schema and version": ({"key": {"schema": '{"type":"string"}', "schema_version": 1}}, 400),
    "schema without type": ({"key": {"schema": '{"type":"string"}'}}, 400),
    "strategy and version": ({"key": {"subject_name_strategy": "RECORD_NAME", "schema_version": 1}}, 400),
    "strategy and latest": ({"key": {"subject_name_strategy": "RECORD_NAME"}}, 400),
    "data that does not fit": ({"key": {"type": "AVRO", "schema": '"string"', "data": 1}}, 400),
    "header": ({"headers": [{"name": "a", "value": "!"}]}, 400),
    "header without name": ({"headers": [{"value": "MQ=="}]}, 400),
    "headers": ({"headers": {"a": "MQ=="}}, 400),
    "timestamp": ({"timestamp": "yesterday"}, 400),
    "timestamp without zone": ({"timestamp": "2026-01-31T12:00:00"}, 400),
    "timestamp in milliseconds": ({"timestamp": 1_769_860_800_123}, 400),
    "negative timestamp": ({"timestamp": -5}, 400),
    "negative partition": ({"partition_id": -1}, 40402),
    "huge partition": ({"partition_id": 2**40}, 40402),
    "unknown partition": ({"partition_id": 3}, 40402),
    "partition of another type": ({"partition_id": [0]}, 400),
    "key of another type": ({"key": "text"}, 400),
}


@pytest.mark.parametrize(("bad", "code"), BAD.values(), ids=BAD)
def test_a_bad_record_is_an_error_in_the_body_and_does_not_stop_others(
    api: Api, bad: dict[str, Any], code: int
) -> None:
    alone = api.produce(bad)
    assert alone["error_code"] == code, alone
    assert set(alone) == {"error_code", "message"}
    answers = api.produce_all([bad, string("a"), bad, string("b")])
    assert codes(answers) == [code, 200, code, 200]
    assert [answers[1]["offset"], answers[3]["offset"]] == [0, 1]


def test_schemas_that_the_registry_does_not_have(api: Api) -> None:
    for named in ({"schema_id": 999_999}, {"schema_version": 7}, {"subject": "nobody"}, {}):
        payload = api.produce({"value": {**named, "data": 1}})
        assert 400 <= payload["error_code"] // (100 if payload["error_code"] > 999 else 1) < 500, payload


MALFORMED: dict[str, bytes] = {
    "a word": b"record",
    "a number": b"17",
    "an array": b'[{"value":null}]',
    "half a record": b'{"value":{"type":"STRING","data":"x',
    "no JSON inside": b'{"value":{"type":"STRING" "data":"x"}}',
    "no UTF-8": b'{"value":{"type":"\xff"}}',
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_json_ends_the_answer_after_an_error(api: Api, bad: bytes) -> None:
    good = json.dumps(string("a")).encode()
    answer = api.post(good + b"\n" + bad + b"\n" + good)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert (answer.status_code, codes(lines)) == (200, [200, 400])
    assert codes([json.loads(line) for line in api.post(bad).text.splitlines()]) == [400]
    assert api.produce(string("b"))["offset"] == 1


@pytest.mark.parametrize("data", [b"[" * 50_000 + b"]" * 50_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000])
def test_a_record_that_nests_too_deep_is_refused(api: Api, data: bytes) -> None:
    answer = api.post(b'{"value":{"type":"JSON","data":' + data + b"}}" + json.dumps(string("a")).encode())
    assert codes([json.loads(line) for line in answer.text.splitlines()])[0] == 400


@pytest.mark.parametrize("body", [b"", b" \r\n"])
def test_a_body_without_records_is_refused(api: Api, body: bytes) -> None:
    answer = api.post(body)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42206)


def test_a_topic_that_does_not_exist(strict: Api) -> None:
    payload = Api(strict.client, strict.cluster_id, "no-such-topic").produce(string("a"))
    assert payload == {"error_code": 40403, "message": "This server does not host this topic-partition."}


@pytest.mark.parametrize("topic", ["%00", "a%2Fb", "..", "x" * 250, "%ff"])
def test_a_topic_that_cannot_exist(client: httpx2.Client, cluster_id: str, topic: str) -> None:
    answer = client.post(f"/v3/clusters/{cluster_id}/topics/{topic}/records", json=string("a"))
    assert (answer.status_code, answer.json()["error_code"]) in ((404, 40403), (404, 404))


@pytest.mark.parametrize("path", ["records", "records:batch"])
def test_another_cluster_is_not_found(api: Api, path: str) -> None:
    answer = api.client.post(f"/v3/clusters/another/topics/{api.topic}/{path}", json=string("a"))
    assert (answer.status_code, answer.json()) == (
        404,
        {"error_code": 404, "message": "Cluster another cannot be found."},
    )


REFUSED: dict[str, tuple[str, dict[str, str], int]] = {
    "acks": ("?acks=2", {}, 400),
    "idempotence": ("?idempotence=perhaps", {}, 400),
    "acks and idempotence": ("?acks=1&idempotence=true", {}, 400),
    "content type": ("", {"Content-Type": "text/plain"}, 415),
    "content encoding": ("", {"Content-Encoding": "gzip"}, 415),
    "accept": ("", {"Accept": "text/html"}, 406),
}


@pytest.mark.parametrize(("query", "headers", "status"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_cannot_be_meant_is_refused(api: Api, query: str, headers: dict[str, str], status: int) -> None:
    answer = api.post(string("a"), query=query, **headers)
    assert (answer.status_code, answer.json()["error_code"]) == (status, status)


# --- streams ---


@pytest.mark.parametrize("separator", ["", "\n", "\r\n\r\n", "  "])
def test_many_records_in_one_body_are_answered_in_their_order(api: Api, broker: BrokerProcess, separator: str) -> None:
    answers = api.produce_all([string(str(number)) for number in range(2500)], separator=separator)
    assert [answer["offset"] for answer in answers] == list(range(2500))
    values = [record.value for record in read(broker, api.topic, 2500)]
    assert values == [str(number).encode() for number in range(2500)]


def test_each_record_is_answered_before_the_next_is_sent(api: Api, broker: BrokerProcess) -> None:
    with api.stream() as stream:
        assert stream.status() == 200
        for number in range(5):
            stream.send(string(str(number)))
            assert stream.answer()["offset"] == number
        stream.finish()
        assert stream.is_over()
    assert len(read(broker, api.topic, 5)) == 5


def test_a_record_may_come_byte_by_byte(api: Api, broker: BrokerProcess) -> None:
    text = json.dumps(string('}{"\\" é')).encode()
    with api.stream() as stream:
        for byte in text * 2:
            stream.send(bytes([byte]))
        stream.finish()
        assert stream.status() == 200
        assert [stream.answer()["offset"] for _ in range(2)] == [0, 1]
        assert stream.is_over()
    assert [record.value for record in read(broker, api.topic, 2)] == ['}{"\\" é'.encode()] * 2


def test_bad_records_in_a_stream_do_not_end_it(api: Api) -> None:
    with api.stream() as stream:
        assert stream.status() == 200
        stream.send({"value": {"type": "BINARY", "data": 1}})
        assert stream.answer()["error_code"] == 400
        stream.send({"partition_id": "none"})
        assert stream.answer()["error_code"] == 400
        stream.send(string("a"))
        assert stream.answer()["error_code"] == 200


def test_what_is_no_json_ends_a_stream(api: Api) -> None:
    with api.stream() as stream:
        assert stream.status() == 200
        stream.send(json.dumps(string("a")).encode() + b"{]}" + json.dumps(string("b")).encode())
        assert [stream.answer()["error_code"] for _ in range(2)] == [200, 400]
        assert stream.is_over()


def test_a_stream_that_ends_within_a_record_says_so(api: Api) -> None:
    with api.stream() as stream:
        assert stream.status() == 200
        stream.send(b'{"value":')
        stream.finish()
        payload = stream.answer()
        assert (payload["error_code"], "middle of a record" in payload["message"]) == (400, True)
        assert stream.is_over()


def test_a_stream_without_records_is_an_empty_answer(api: Api) -> None:
    with api.stream() as stream:
        stream.finish()
        assert stream.status() == 200
        assert stream.is_over()


def test_a_stream_is_longer_than_the_longest_body(api: Api, broker: BrokerProcess) -> None:
    record = json.dumps(string("x" * 500_000)).encode()

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield record

    answer = api.client.post(api.path, content=chunks(), headers={"Content-Type": "application/json"})
    answers = [json.loads(line) for line in answer.text.splitlines()]
    assert [payload["offset"] for payload in answers] == list(range(40))
    with_length = api.post(record * 40)
    assert with_length.text.count('"error_code":200') == 40
    assert len(read_to_end(broker.bootstrap, api.topic)) == 80


def test_a_record_that_is_too_large_ends_a_stream(api: Api) -> None:
    def chunks() -> Iterator[bytes]:
        yield json.dumps(string("a")).encode()
        yield b'{"value":{"type":"STRING","data":"'
        for _ in range(17):
            yield b"x" * (1 << 20)

    answer = api.client.post(api.path, content=chunks(), headers={"Content-Type": "application/json"})
    first, second = (json.loads(line) for line in answer.text.splitlines())
    assert (first["error_code"], second["error_code"]) == (200, 413)
    assert "Produce request size is larger than allowed threshold" in second["message"]


def test_clients_that_vanish_leave_nothing_behind(api: Api, proxy: ProxyProcess, broker: BrokerProcess) -> None:
    def in_work() -> int:
        text = api.client.get("/metrics").text
        found = re.search(r"^caudal_rest_proxy_http_requests_in_work (\d+)", text, re.MULTILINE)
        assert found
        return int(found[1])

    with ExitStack() as opened:
        streams = [opened.enter_context(api.stream()) for _ in range(20)]
        for stream in streams:
            stream.send(json.dumps(string("whole")).encode() + b'{"value":')
            assert stream.status() == 200
            assert stream.answer()["error_code"] == 200
        assert in_work() == 21
        for stream in streams[:10]:
            stream.vanish()
    assert eventually(in_work, lambda count: count == 1) == 1
    assert len(read_to_end(broker.bootstrap, api.topic)) == 20
    assert "Traceback" not in proxy.log_text()


def test_a_sender_that_does_not_read_its_answers_is_held_back(api: Api, proxy: ProxyProcess) -> None:
    record = json.dumps(string("x" * 10)).encode() * 500
    with api.stream() as stream:
        stream.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(5000):
                stream.send(record)
        stream.vanish()
    assert proxy.is_running


def test_a_stream_that_is_idle_is_ended(strict: Api) -> None:
    with strict.stream() as stream:
        assert stream.status() == 200
        payload = stream.answer()
        assert (payload["error_code"], "streaming.connection.idle.timeout.ms" in payload["message"]) == (408, True)
        assert stream.is_over()


def test_a_stream_that_lasts_too_long_is_ended_with_408(strict: Api, strict_broker: BrokerProcess) -> None:
    answers: list[dict[str, Any]] = []
    with strict.stream() as stream:
        assert stream.status() == 200
        while not answers or answers[-1]["error_code"] == 200:
            stream.send(string("a"))
            answers.append(stream.answer())
        assert stream.answer()["error_code"] == 408
        assert stream.is_over()
    assert codes(answers) == [200] * (len(answers) - 1) + [408]
    assert answers[-1]["message"] == "Streaming connection open for longer than allowed: Connection will be closed."
    assert len(read_to_end(strict_broker.bootstrap, strict.topic)) == len(answers) - 1


def test_an_unreachable_cluster_is_reported_by_the_status_and_in_lines(
    api: Api, registry: RegistryProcess, tmp_path: Path, cluster_id: str
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with (
            ProxyProcess(tmp_path, bootstrap=address, registry=registry.url) as process,
            httpx2.Client(base_url=process.url, timeout=30) as client,
        ):
            answer = Api(client, cluster_id, api.topic).post(string("a"))
            assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
            assert address in answer.json()["message"]
            assert answer.headers["retry-after"] == "1"


def test_a_proxy_that_stops_tells_its_streams(
    api: Api, broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path
) -> None:
    with ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url) as process:
        with (
            httpx2.Client(base_url=process.url, timeout=30) as client,
            Api(client, api.cluster_id, api.topic).stream() as stream,
        ):
            assert stream.status() == 200
            stream.send(string("a"))
            assert stream.answer()["error_code"] == 200
            os.kill(process.pid, signal.SIGTERM)
            assert stream.answer()["error_code"] == 503
            assert stream.is_over()
        eventually(lambda: not process.is_running)
        assert "Traceback" not in process.log_text()


# --- batches ---


def test_a_batch_has_an_outcome_under_each_id(api: Api, broker: BrokerProcess) -> None:
    bad = {"id": "bad", "value": {"type": "BINARY", "data": 1}}
    odd = {"id": "odd_1-A", "partition_id": "none"}
    answer = api.batch({"id": "1", **string("a")}, bad, odd, {"id": "2", **string("b")})
    assert answer.status_code == 207
    payload = answer.json()
    assert [(item["id"], item["offset"]) for item in payload["successes"]] == [("1", 0), ("2", 1)]
    assert payload["successes"][0].keys() == {
        "id",
        "cluster_id",
        "topic_name",
        "partition_id",
        "offset",
        "timestamp",
        "value",
    }
    assert [(item["id"], item["error_code"]) for item in payload["failures"]] == [("bad", 400), ("odd_1-A", 400)]
    assert [record.value for record in read(broker, api.topic, 2)] == [b"a", b"b"]


def test_more_than_the_proxy_takes_at_a_time_is_reported_by_the_status_in_lines_and_in_batches(strict: Api) -> None:
    # The first record waits half a second for others to be sent with: everything else comes while it is on its way.
    with strict.stream() as first, strict.stream() as second:
        assert first.status() == second.status() == 200
        first.send(string("a"))
        single = eventually(lambda: strict.post(string("b")), lambda answer: answer.status_code == 429)
        assert (single.json()["error_code"], single.headers["retry-after"]) == (429, "1")
        assert "produce.in.flight.max.records=1" in single.json()["message"]
        second.send(string("c"))
        batch = strict.batch({"id": "1", **string("d")})
        assert second.answer()["error_code"] == 429
        assert [item["error_code"] for item in batch.json()["failures"]] == [429]
        assert first.answer()["error_code"] == 200


ENTRY = {"value": {"type": "STRING", "data": "a"}}
BAD_BATCHES: dict[str, tuple[object, int, str]] = {
    "same ids": ({"entries": [{"id": "1", **ENTRY}] * 2}, 42208, "Batch entry IDs are not distinct."),
    "no entries": ({"entries": []}, 42208, "Empty batch."),
    "nothing": ({}, 42208, "Empty batch."),
    "too many": ({"entries": [{"id": str(n)} for n in range(11)]}, 42208, "Too many entries in batch."),
    "no id": ({"entries": [ENTRY]}, 42208, "Batch entry identifier is not a valid string."),
    "number as id": ({"entries": [{"id": 1}]}, 42208, "Batch entry identifier is not a valid string."),
    "empty id": ({"entries": [{"id": ""}]}, 42208, "Batch entry identifier is not a valid string."),
    "long id": ({"entries": [{"id": "1" * 81}]}, 42208, "Batch entry identifier is not a valid string."),
    "odd id": ({"entries": [{"id": "€#£"}]}, 42208, "Batch entry identifier is not a valid string."),
    "another type": ({"entries": 1}, 400, ""),
    "an array": ([{"id": "1"}], 400, ""),
}


@pytest.mark.parametrize(("body", "code", "message"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_a_batch_that_is_wrong_as_a_whole_is_refused(api: Api, body: object, code: int, message: str) -> None:
    answer = api.client.post(f"{api.path}:batch", json=body)
    assert answer.json()["error_code"] == code
    assert answer.status_code == (422 if code == 42208 else 400)
    assert answer.json()["message"].startswith(message)


@pytest.mark.parametrize(("body", "status"), [(b"", 422), (b"{]", 400), (b"x" * (17 << 20), 413)])
def test_a_batch_that_cannot_be_read_is_refused(api: Api, body: bytes, status: int) -> None:
    answer = api.client.post(f"{api.path}:batch", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status


# --- the document ---


def test_the_document_describes_records_and_batches(api: Api) -> None:
    paths = api.client.get("/openapi.json").json()["paths"]
    for path, status in (("records", "200"), ("records:batch", "207")):
        operation = paths[f"/v3/clusters/{{cluster_id}}/topics/{{topic_name}}/{path}"]["post"]
        assert operation["requestBody"]["content"]["application/json"]
        assert operation["responses"][status]["content"]["application/json"]
        assert operation["summary"]
