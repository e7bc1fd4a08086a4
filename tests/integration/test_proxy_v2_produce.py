"""Produce in API v2, over HTTP, read back by Kafka's own clients."""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from schema_registry.formats.schema import SchemaType
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import Received
from tests.support.kafka import start_class
from tests.support.protobuf_messages import message_classes
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import confluent, context
from tests.support.serde_schemas import EXAMPLES

ANSWER = "application/vnd.kafka.v2+json"
FORMATS = {"avro": "avro", "json": "jsonschema", "protobuf": "protobuf"}


class Api:
    """The proxy's API."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def post(self, path: str, body: object, format_: str = "json", **headers: str) -> httpx2.Response:
        """Send a body; bytes as they are, anything else as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(
            path, content=content, headers={"Content-Type": f"application/vnd.kafka.{format_}.v2+json", **headers}
        )

    def produce(self, path: str, body: object, format_: str = "json") -> dict[str, Any]:
        """Send a body that is answered with 200."""
        answer = self.post(path, body, format_)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == ANSWER
        payload: dict[str, Any] = answer.json()
        return payload

    def refused(self, path: str, body: object, format_: str = "json", **headers: str) -> tuple[int, int]:
        """The status and the code of a request that is refused."""
        answer = self.post(path, body, format_, **headers)
        assert answer.json()["message"]
        return answer.status_code, answer.json()["error_code"]


@pytest.fixture(scope="module")
def api(proxy: ProxyProcess) -> Iterator[Api]:
    """The proxy for all tests."""
    with httpx2.Client(base_url=proxy.url, timeout=60) as client:
        yield Api(client)


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    """A topic with three partitions that keeps records of any age."""
    create_topic(broker, name, partitions=3, configs={"retention.ms": "-1"})
    return name


def written(partition: int, offset: int) -> dict[str, Any]:
    """The outcome of a record that was written."""
    return {"partition": partition, "offset": offset, "error_code": None, "error": None}


def read(broker: BrokerProcess, topic: str, count: int) -> list[Received]:
    """The records of a topic, by confluent-kafka."""
    return ConfluentClient().consume(broker.bootstrap, topic, count)


def test_bytes_arrive_as_they_are(api: Api, broker: BrokerProcess, topic: str) -> None:
    value = bytes(range(256))
    body = {"records": [{"key": "a2V5AA==", "value": base64.b64encode(value).decode()}, {"value": ""}]}
    payload = api.produce(f"/topics/{topic}/partitions/1", body, "binary")
    assert payload == {"offsets": [written(1, 0), written(1, 1)], "key_schema_id": None, "value_schema_id": None}
    first, second = read(broker, topic, 2)
    assert (first.key, first.value) == (b"key\0", value)
    assert (second.key, second.value) == (None, b"")


def test_json_arrives_as_compact_text(api: Api, broker: BrokerProcess, topic: str) -> None:
    text = '{"records": [{"key": "k", "value": {"z": 1.50, "a": [12345678901234567890123, "\u00e9"]}}]}'
    api.produce(f"/topics/{topic}", text.encode())
    (record,) = read(broker, topic, 1)
    assert record.key == b'"k"'
    assert record.value == '{"z":1.50,"a":[12345678901234567890123,"\u00e9"]}'.encode()


@pytest.mark.parametrize("format_", ["binary", "json", "avro", "jsonschema", "protobuf"])
def test_null_is_a_tombstone_in_every_format(api: Api, broker: BrokerProcess, topic: str, format_: str) -> None:
    payload = api.produce(f"/topics/{topic}/partitions/0", {"records": [{"value": None}, {"key": None}, {}]}, format_)
    assert [outcome["offset"] for outcome in payload["offsets"]] == [0, 1, 2]
    assert [(record.key, record.value) for record in read(broker, topic, 3)] == [(None, None)] * 3


@pytest.mark.parametrize("kind", EXAMPLES)
def test_confluents_deserializers_read_what_was_written_by_a_schema(
    api: Api, broker: BrokerProcess, registry: RegistryProcess, topic: str, kind: str
) -> None:
    example = EXAMPLES[kind]
    body = {
        "key_schema": example.definition.text,
        "value_schema": example.definition.text,
        "records": [{"key": example.other_view, "value": example.view}, {"key": example.view, "value": None}],
    }
    payload = api.produce(f"/topics/{topic}/partitions/2", body, FORMATS[kind])
    assert payload["offsets"] == [written(2, 0), written(2, 1)]
    first, second = read(broker, topic, 2)
    assert second.value is None
    with confluent(registry.url) as client:
        assert client.get_schema(payload["value_schema_id"]).schema_type == example.definition.schema_type
        assert client.get_version(f"{topic}-key", 1).schema_id == payload["key_schema_id"]
    with confluent(registry.url) as client:  # which has not seen the schemas as text
        if example.definition.schema_type is SchemaType.PROTOBUF:
            message = message_classes({"order.proto": example.definition.text})[example.record_name]
            deserialize = client.protobuf_deserializer(message)
            order = deserialize(first.value, context(topic))
            assert {"id": order.id, "note": order.note} == example.value
            assert deserialize(second.key, context(topic, is_key=True)) == order
        else:
            make = client.avro_deserializer if kind == "avro" else client.json_deserializer
            schema = None if kind == "avro" else example.definition.text
            assert make(schema)(first.value, context(topic)) == example.value
            assert make(schema)(second.key, context(topic, is_key=True)) == example.value


def test_a_schema_may_be_named_by_its_id(api: Api, broker: BrokerProcess, topic: str) -> None:
    schema = '{"type":"record","name":"P","fields":[{"name":"a","type":"int"}]}'
    first = api.produce(f"/topics/{topic}", {"value_schema": schema, "records": [{"value": {"a": 1}}]}, "avro")
    schema_id = first["value_schema_id"]
    for spelled in (schema_id, str(schema_id)):
        body = {"value_schema_id": spelled, "records": [{"value": {"a": 1}}]}
        assert api.produce(f"/topics/{topic}", body, "avro")["value_schema_id"] == schema_id
    assert len({record.value for record in read(broker, topic, 3)}) == 1


def test_headers_and_times_in_both_apis_words(api: Api, broker: BrokerProcess, topic: str) -> None:
    records = [
        {
            "value": 1,
            "headers": [{"key": "a", "value": "MQ=="}, {"key": "a", "value": None}],
            "timestamp": 1_767_225_600_123,
        },
        {"value": 2, "headers": [{"name": "b", "value": "/w=="}], "timestamp": "2026-01-01T00:00:00.123Z"},
        {"value": 3, "headers": []},
    ]
    api.produce(f"/topics/{topic}/partitions/0", {"records": records})
    first, second, third = read(broker, topic, 3)
    assert first.headers == (("a", b"1"), ("a", b""))
    assert second.headers == (("b", b"\xff"),)
    assert third.headers == ()
    assert first.timestamp_ms == second.timestamp_ms == 1_767_225_600_123 < third.timestamp_ms


def test_a_record_may_name_its_partition(api: Api, broker: BrokerProcess, topic: str) -> None:
    body = {"records": [{"value": 0, "partition": 2}, {"value": 1, "partition": "1"}, {"value": 2}]}
    payload = api.produce(f"/topics/{topic}/partitions/0", body)
    assert payload["offsets"] == [written(2, 0), written(1, 0), written(0, 0)]
    places = {record.partition: record.value for record in read(broker, topic, 3)}
    assert places == {2: b"0", 1: b"1", 0: b"2"}


def test_equal_keys_go_to_one_partition_as_javas_producer_has_it(api: Api, topic: str) -> None:
    body = {"records": [{"key": base64.b64encode(key).decode()} for key in (b"key", b"key", b"21", b"foobar")]}
    payload = api.produce(f"/topics/{topic}", body, "binary")
    # murmur2 of Kafka's tests: 21 -> -973932308, foobar -> -790332482
    expected = [(-973932308 & 0x7FFFFFFF) % 3, (-790332482 & 0x7FFFFFFF) % 3]
    partitions = [outcome["partition"] for outcome in payload["offsets"]]
    assert partitions[0] == partitions[1]
    assert partitions[2:] == expected


@pytest.mark.parametrize("query", ["acks=all", "acks=-1", "acks=1", "idempotence=false", "acks=all&idempotence=true"])
def test_guarantees_are_chosen_per_request(api: Api, topic: str, query: str) -> None:
    payload = api.produce(f"/topics/{topic}/partitions/0?{query}", {"records": [{"value": 1}]})
    assert payload["offsets"] == [written(0, 0)]


def test_without_acknowledgement_the_offset_is_minus_one(api: Api, broker: BrokerProcess, topic: str) -> None:
    payload = api.produce(f"/topics/{topic}/partitions/1?acks=0", {"records": [{"value": 1}]})
    assert payload["offsets"] == [written(1, -1)]
    assert [record.value for record in read(broker, topic, 1)] == [b"1"]


@pytest.mark.parametrize("query", ["acks=2", "acks=", "idempotence=perhaps", "acks=1&idempotence=true"])
def test_guarantees_that_cannot_be_are_refused(api: Api, topic: str, query: str) -> None:
    assert api.refused(f"/topics/{topic}?{query}", {"records": [{"value": 1}]}) == (400, 400)


BAD_RECORDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "base64": ("binary", {"value": "not base64"}, 400),
    "base64 of a key": ("binary", {"key": "!", "value": "MQ=="}, 400),
    "no text": ("binary", {"value": {"a": 1}}, 400),
    "header": ("json", {"value": 1, "headers": [{"key": "a", "value": "!"}]}, 42205),
    "headers": ("json", {"value": 1, "headers": {"a": "MQ=="}}, 42205),
    "timestamp": ("json", {"value": 1, "timestamp": "yesterday"}, 42205),
    "negative timestamp": ("json", {"value": 1, "timestamp": -5}, 42205),
    "negative partition": ("json", {"value": 1, "partition": -1}, 422),
    "huge partition": ("json", {"value": 1, "partition": 2**40}, 422),
    "unknown partition": ("json", {"value": 1, "partition": 3}, 40402),
}


@pytest.mark.parametrize(("format_", "bad", "code"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_a_bad_record_does_not_stop_the_others(
    api: Api, broker: BrokerProcess, topic: str, format_: str, bad: dict[str, Any], code: int
) -> None:
    good = {"value": "MQ=="}
    payload = api.produce(f"/topics/{topic}/partitions/0", {"records": [good, bad, good]}, format_)
    first, second, third = payload["offsets"]
    assert [first, third] == [written(0, 0), written(0, 1)]
    assert {**second, "error": ""} == {"partition": None, "offset": None, "error_code": 1, "error": ""}
    assert second["error"]
    assert len(read_to_end(broker.bootstrap, topic)) == 2
    status = code // 100 if code > 999 else code
    assert api.refused(f"/topics/{topic}/partitions/0", {"records": [bad]}, format_) == (status, code)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_data_that_does_not_fit_the_schema_does_not_stop_the_others(api: Api, topic: str, kind: str) -> None:
    example = EXAMPLES[kind]
    bad, good = {"value": example.bad_view}, {"value": example.view}
    schema = {"value_schema": example.definition.text}
    payload = api.produce(f"/topics/{topic}/partitions/0", {**schema, "records": [bad, good]}, FORMATS[kind])
    assert [outcome["error_code"] for outcome in payload["offsets"]] == [1, None]
    answer = api.post(f"/topics/{topic}/partitions/0", {**schema, "records": [bad, bad]}, FORMATS[kind])
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42203)
    assert [outcome["error_code"] for outcome in answer.json()["offsets"]] == [1, 1]


BAD_SCHEMAS: dict[str, tuple[str, dict[str, Any], int]] = {
    "no key schema": ("avro", {"records": [{"key": 1}]}, 42201),
    "no value schema": ("jsonschema", {"records": [{"value": None}, {"value": 1}]}, 42202),
    "no value schema for protobuf": ("protobuf", {"key_schema_id": None, "records": [{"value": {}}]}, 42202),
    "nonsense": ("avro", {"value_schema": "nonsense", "records": [{"value": 1}]}, 42205),
    "negative id": ("avro", {"value_schema_id": -1, "records": [{"value": 1}]}, 42205),
}


@pytest.mark.parametrize(("format_", "body", "code"), BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_schemas_that_cannot_be_used_are_refused(
    api: Api, topic: str, format_: str, body: dict[str, Any], code: int
) -> None:
    assert api.refused(f"/topics/{topic}", body, format_) == (422, code)


def test_an_unknown_schema_id_is_refused(api: Api, topic: str) -> None:
    status, _ = api.refused(f"/topics/{topic}", {"value_schema_id": 999_999, "records": [{"value": 1}]}, "avro")
    assert status == 422


BAD_BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 422),
    "null": (b"null", 422),
    "no records": (b'{"foo":"bar"}', 422),
    "empty records": (b'{"records":[]}', 422),
    "unknown field": (b'{"records":[{"valur":1}]}', 422),
    "no JSON": (b"records", 400),
    "records of another type": (b'{"records":"text"}', 400),
    "a record of another type": (b'{"records":["text"]}', 400),
    "no UTF-8": (b'{"records":[{"value":"\xff"}]}', 400),
    "deep": (b'{"records":[{"value":' + b"[" * 50_000 + b"]" * 50_000 + b"}]}", 400),
    "deep and closed": (b'{"records":[{"value":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}]}", 400),
}


@pytest.mark.parametrize("path", ["", "/partitions/0"])
@pytest.mark.parametrize(("body", "code"), BAD_BODIES.values(), ids=BAD_BODIES)
def test_a_body_that_cannot_be_meant_is_refused(api: Api, topic: str, path: str, body: bytes, code: int) -> None:
    assert api.refused(f"/topics/{topic}{path}", body) == (code, code)


def test_too_many_records_are_refused(api: Api, topic: str) -> None:
    assert api.refused(f"/topics/{topic}", {"records": [{}] * 10_001}) == (413, 413)


def test_a_body_that_is_too_long_is_refused(api: Api, topic: str) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(17):
            yield b" " * (1 << 20)

    assert api.refused(f"/topics/{topic}", b" " * (17 << 20)) == (413, 413)
    answer = api.client.post(f"/topics/{topic}", content=chunks(), headers={"Content-Type": ANSWER})
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


def test_a_record_that_the_cluster_finds_too_large_is_reported(api: Api, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"max.message.bytes": "1000"})
    payload = api.produce(f"/topics/{name}?acks=1", {"records": [{"value": 1}]})
    assert payload["offsets"] == [written(0, 0)]
    answer = api.post(f"/topics/{name}?acks=1", {"records": [{"value": "x" * 2000}]})
    assert 400 <= answer.status_code < 500
    assert answer.json()["offsets"][0]["error_code"] == 1


BINARY = ["kafka.v2", "kafka.binary.v1", "kafka.v1", "kafka.binary", "kafka"]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/octet-stream",
        "Application/VND.kafka.binary.v2+JSON; charset=utf-8",
        *(f"application/vnd.{middle}+json" for middle in BINARY),
    ],
)
def test_binary_is_the_default_format(api: Api, broker: BrokerProcess, topic: str, content_type: str) -> None:
    body = b'{"records":[{"value":"Zm9v"}]}'
    answer = api.client.post(f"/topics/{topic}", content=body, headers={"Content-Type": content_type})
    assert answer.status_code == 200, answer.text
    assert [record.value for record in read(broker, topic, 1)] == [b"foo"]


def test_a_body_without_a_type_is_binary(api: Api, topic: str) -> None:
    answer = api.client.post(f"/topics/{topic}", content=b'{"records":[{"value":"Zm9v"}]}')
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "content_type",
    [
        "application/vnd.kafka.v3+json",
        "application/vnd.kafka.binary.v1+foo",
        "application/vnd.kafka.string.v2+json",
        "application/vnd.kafka.avro.v0+json",
        "application/vnd.kafka",
        "application/text",
        "text/plain",
        "bar/baz",
    ],
)
def test_other_types_of_bodies_are_refused(api: Api, topic: str, content_type: str) -> None:
    assert api.refused(f"/topics/{topic}", {"records": [{"value": 1}]}, **{"Content-Type": content_type}) == (415, 415)


def test_compressed_bodies_are_refused(api: Api, topic: str) -> None:
    assert api.refused(f"/topics/{topic}", b"\x1f\x8b", **{"Content-Encoding": "gzip"}) == (415, 415)


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("*/*", ANSWER),
        ("application/json", "application/json"),
        ("application/vnd.kafka+json, application/json;q=0.5", "application/vnd.kafka+json"),
        ("application/vnd.kafka.json.v2+json", "application/vnd.kafka.json.v2+json"),
    ],
)
def test_answers_have_the_type_that_is_asked_for(api: Api, topic: str, accept: str, answered: str) -> None:
    good = api.post(f"/topics/{topic}", {"records": [{"value": 1}]}, Accept=accept)
    bad = api.post(f"/topics/{topic}", {"records": []}, Accept=accept)
    assert (good.status_code, bad.status_code) == (200, 422)
    assert good.headers["content-type"] == bad.headers["content-type"] == answered


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kafka+foo", "foo/*"])
def test_other_types_of_answers_cannot_be_had(api: Api, topic: str, accept: str) -> None:
    assert api.refused(f"/topics/{topic}", {"records": [{"value": 1}]}, Accept=accept) == (406, 406)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/partitions/3", 40402),
        ("/partitions/2147483648", 40402),
        ("/partitions/-1", 404),
        ("/partitions/one", 404),
        ("/partitions/99999999999999999999", 404),
    ],
)
def test_partitions_that_are_not_there_are_not_found(api: Api, topic: str, path: str, code: int) -> None:
    assert api.refused(f"/topics/{topic}{path}", {"records": [{"value": 1}]}) == (404, code)


@pytest.mark.parametrize("spelled", ["with%20space", "with%2Fslash", "%00", "%ff", "%2E%2E", "%F0%9F%98%80", "a" * 250])
@pytest.mark.parametrize("path", ["", "/partitions/0"])
def test_names_that_no_topic_has_are_not_found(api: Api, spelled: str, path: str) -> None:
    assert api.refused(f"/topics/{spelled}{path}", {"records": [{"value": 1}]}) == (404, 40401)


def test_records_are_counted_by_format_and_outcome(api: Api, topic: str) -> None:
    def counted(outcome: str) -> int:
        line = f'caudal_rest_proxy_records_produced_total{{format="binary",outcome="{outcome}"}} '
        lines = api.client.get("/metrics").text.splitlines()
        return next((int(float(text.removeprefix(line))) for text in lines if text.startswith(line)), 0)

    before = counted("delivered"), counted("failed")
    api.produce(f"/topics/{topic}", {"records": [{"value": "MQ=="}, {"value": "MQ=="}, {"value": "!"}]}, "binary")
    assert (counted("delivered"), counted("failed")) == (before[0] + 2, before[1] + 1)


def test_requests_are_counted_by_route(api: Api, topic: str) -> None:
    api.produce(f"/topics/{topic}/partitions/0", {"records": [{"value": 1}]})
    text = api.client.get("/metrics").text
    assert 'route="/topics/{topic}/partitions/{partition}",status="200"' in text
    assert topic not in text


def test_a_client_that_goes_in_the_middle_of_its_body_leaves_no_trace(
    api: Api, broker: BrokerProcess, proxy: ProxyProcess, topic: str
) -> None:
    def refused() -> int:
        line = 'caudal_rest_proxy_http_requests_total{method="POST",route="/topics/{topic}",status="400"} '
        lines = api.client.get("/metrics").text.splitlines()
        return next((int(float(text.removeprefix(line))) for text in lines if text.startswith(line)), 0)

    before = refused()
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        head = f"POST /topics/{topic} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        connection.sendall(head.encode() + b'{"records":[{"value":"MQ=="}')
    eventually(refused, lambda count: count == before + 1)
    assert "Traceback" not in proxy.log_text()
    assert read_to_end(broker.bootstrap, topic) == []


def test_a_large_batch_keeps_its_order(api: Api, broker: BrokerProcess, topic: str) -> None:
    schema = '{"type":"record","name":"P","fields":[{"name":"a","type":"int"}]}'
    body = {"value_schema": schema, "records": [{"value": {"a": number}} for number in range(1000)]}
    payload = api.produce(f"/topics/{topic}/partitions/0", body, "avro")
    assert [outcome["offset"] for outcome in payload["offsets"]] == list(range(1000))
    values = [record.value or b"" for record in read(broker, topic, 1000)]
    assert [value[5:] for value in values[:3]] == [b"\x00", b"\x02", b"\x04"]
    assert len(set(values)) == 1000


def test_a_topic_that_is_not_there_is_not_found(registry: RegistryProcess, tmp_path: Path) -> None:
    with (
        start_class()(tmp_path / "broker", settings={"auto.create.topics.enable": "false"}) as broker,
        ProxyProcess(tmp_path / "proxy", bootstrap=broker.bootstrap, registry=registry.url) as proxy,
        httpx2.Client(base_url=proxy.url, timeout=60) as client,
    ):
        api = Api(client)
        for path in ("/topics/missing", "/topics/missing/partitions/0"):
            answer = api.post(path, {"records": [{"value": 1}, {"value": 2}]})
            assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
            assert answer.json()["message"] == "Topic missing not found."
            assert [outcome["error_code"] for outcome in answer.json()["offsets"]] == [1, 1]
        create_topic(broker, "missing")
        body = {"records": [{"value": 1}]}
        answer = eventually(lambda: api.post("/topics/missing", body), lambda answer: answer.status_code == 200)
        assert answer.json()["offsets"] == [written(0, 0)]


def test_a_cluster_that_is_gone_is_reported_with_its_address(registry: RegistryProcess, tmp_path: Path) -> None:
    with start_class()(tmp_path / "broker") as broker:
        bootstrap = broker.bootstrap
        with (
            ProxyProcess(tmp_path / "proxy", bootstrap=bootstrap, registry=registry.url) as proxy,
            httpx2.Client(base_url=proxy.url, timeout=60) as client,
        ):
            broker.stop()
            answer = Api(client).post("/topics/any", {"records": [{"value": 1}]})
            assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
            assert bootstrap in answer.json()["message"]
            assert answer.headers["retry-after"] == "1"


def test_a_registry_that_is_gone_is_reported(broker: BrokerProcess, tmp_path: Path) -> None:
    with (
        ProxyProcess(tmp_path / "proxy", bootstrap=broker.bootstrap, registry="http://127.0.0.1:9") as proxy,
        httpx2.Client(base_url=proxy.url, timeout=60) as client,
    ):
        body = {"value_schema": '"int"', "records": [{"value": 1}]}
        assert Api(client).refused("/topics/any", body, "avro") == (503, 503)
        assert Api(client).produce("/topics/registry-gone", {"records": [{"value": 1}]})["offsets"]


def test_the_openapi_document_has_an_example_for_each_format(api: Api, name: str) -> None:
    document = api.client.get("/openapi.json").json()
    operation = document["paths"]["/topics/{topic}"]["post"]
    examples = {media_type: content["example"] for media_type, content in operation["requestBody"]["content"].items()}
    assert len(examples) == 5
    for media_type, example in examples.items():
        answer = api.client.post(
            f"/topics/{name}-{len(media_type)}", json=example, headers={"Content-Type": media_type}
        )
        assert answer.status_code == 200, answer.text
        assert all(outcome["error"] is None for outcome in answer.json()["offsets"])
