"""Keys and values in every format, over HTTP, judged by Confluent's serializers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import Sent
from tests.support.consumer_instance import ConsumerInstance
from tests.support.fake_registry import FakeRegistry
from tests.support.protobuf_messages import message_classes
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import Confluent, confluent, context
from tests.support.serde_schemas import EXAMPLES

FORMATS = {"avro": "avro", "json": "jsonschema", "protobuf": "protobuf"}


@pytest.fixture(scope="module")
def api(proxy: ProxyProcess) -> Iterator[httpx2.Client]:
    """The proxy for all tests."""
    with httpx2.Client(base_url=proxy.url, timeout=60) as client:
        yield client


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    """A topic with one partition."""
    create_topic(broker, name)
    return name


def write(broker: BrokerProcess, topic: str, *records: Sent) -> None:
    """Send records by confluent-kafka."""
    ConfluentClient().produce(broker.bootstrap, topic, records)


def page(api: httpx2.Client, topic: str, format_: str, count: int) -> list[dict[str, Any]]:
    """The first records of a topic, as the proxy tells them; a page may hold fewer than there are."""
    records: list[dict[str, Any]] = []
    accept = {"Accept": f"application/vnd.kafka.{format_}.v2+json"}
    while len(records) < count:
        query = {"offset": len(records), "timeout": 10_000}
        answer = api.get(f"/topics/{topic}/partitions/0/records", params=query, headers=accept)
        assert answer.status_code == 200, answer.text
        assert answer.json(), "nothing came in ten seconds"
        records += answer.json()
    return records


def produce(api: httpx2.Client, topic: str, format_: str, body: object) -> httpx2.Response:
    """Send a body in API v2."""
    headers = {"Content-Type": f"application/vnd.kafka.{format_}.v2+json"}
    return api.post(f"/topics/{topic}", content=json.dumps(body).encode(), headers=headers)


def serialized(client: Confluent, kind: str, topic: str, *, is_key: bool) -> bytes:
    """The example's value, written by Confluent's serializer."""
    example = EXAMPLES[kind]
    if kind == "protobuf":
        message = message_classes({"order.proto": example.definition.text})[example.record_name]
        serialize, value = client.protobuf_serializer(message), message(**example.value)
    else:
        make = client.avro_serializer if kind == "avro" else client.json_serializer
        serialize, value = make(example.definition.text), example.value
    data: bytes = serialize(value, context(topic, is_key=is_key))
    return data


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_confluents_serializers_write_is_read(
    api: httpx2.Client, broker: BrokerProcess, registry: RegistryProcess, topic: str, kind: str
) -> None:
    with confluent(registry.url) as client:
        key, value = (serialized(client, kind, topic, is_key=is_key) for is_key in (True, False))
    write(broker, topic, Sent(key=key, value=value), Sent(key=key, value=None))
    first, second = page(api, topic, FORMATS[kind], 2)
    assert (first["key"], first["value"]) == (EXAMPLES[kind].view, EXAMPLES[kind].view)
    assert (second["key"], second["value"]) == (EXAMPLES[kind].view, None)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_is_written_over_http_is_read_over_http(api: httpx2.Client, topic: str, kind: str) -> None:
    example = EXAMPLES[kind]
    schemas = {"key_schema": example.definition.text, "value_schema": example.definition.text}
    body = {**schemas, "records": [{"key": example.view, "value": example.other_view}]}
    assert produce(api, topic, FORMATS[kind], body).status_code == 200
    (record,) = page(api, topic, FORMATS[kind], 1)
    assert (record["key"], record["value"]) == (example.view, example.other_view)


def test_any_bytes_are_read_as_base64(api: httpx2.Client, broker: BrokerProcess, topic: str) -> None:
    data = bytes(range(256))
    write(broker, topic, Sent(key=b"", value=data))
    (record,) = page(api, topic, "binary", 1)
    assert record["key"] == ""
    assert produce(api, topic, "binary", {"records": [{"key": record["key"], "value": record["value"]}]}).is_success
    assert [(record.key, record.value) for record in read_to_end(broker.bootstrap, topic)] == [(b"", data)] * 2


def test_equal_keys_are_equal_bytes_however_they_are_spelled(
    api: httpx2.Client, broker: BrokerProcess, topic: str
) -> None:
    spelled = [r'{"id":"\u00e9/", "n":1.0}', r'{ "id" : "é\/","n":1.0 }', '{"id":"é/","n":1.0}']
    body = '{"records": [' + ",".join(f'{{"key": {key}}}' for key in spelled) + "]}"
    headers = {"Content-Type": "application/vnd.kafka.json.v2+json"}
    assert api.post(f"/topics/{topic}", content=body.encode(), headers=headers).is_success
    assert {record.key for record in read_to_end(broker.bootstrap, topic)} == {'{"id":"é/","n":1.0}'.encode()}


@pytest.mark.parametrize(
    ("format_", "reason"),
    [
        ("json", "is not JSON in UTF-8"),
        ("avro", "begins with byte 0xff"),
        ("jsonschema", "begins with byte 0xff"),
        ("protobuf", "begins with byte 0xff"),
    ],
)
def test_a_record_that_cannot_be_read_does_not_hide_the_others(
    api: httpx2.Client, broker: BrokerProcess, topic: str, format_: str, reason: str
) -> None:
    write(broker, topic, Sent(value=None), Sent(value=b"\xff"), Sent(value=None))
    first, second, third = page(api, topic, format_, 3)
    assert (first["offset"], second["offset"], third["offset"]) == (0, 1, 2)
    assert reason in json.dumps(second)


# Avro's JSON encoding, as strict as Avro's own library, and hence as Confluent's proxy.
PAYLOAD = {"type": "record", "name": "Payload", "namespace": "v1", "fields": [{"name": "amount", "type": "float"}]}
UNION = ["null", PAYLOAD, {"type": "array", "items": "int"}, "bytes", {"type": "int", "logicalType": "date"}]
UNION_VALUES: dict[str, tuple[object, bool]] = {
    "null": (None, True),
    "full name": ({"v1.Payload": {"amount": 2.3}}, True),
    "short name": ({"Payload": {"amount": 2.3}}, False),
    "another name": ({"v2.Payload": {"amount": 2.3}}, False),
    "no name": ({"amount": 2.3}, False),
    "array": ({"array": [1, 2]}, True),
    "array without a name": ([1, 2], False),
    "bytes": ({"bytes": "AB\u00ff"}, True),
    "bytes without a name": ("AB", False),
    "logical type": ({"int": 20213}, True),
    "logical type by its name": ({"date": 20213}, False),
    "logical type as text": ({"int": "2025-05-05"}, False),
}


@pytest.mark.parametrize(("value", "fits"), UNION_VALUES.values(), ids=UNION_VALUES)
def test_values_of_unions_name_their_type(api: httpx2.Client, topic: str, value: object, fits: bool) -> None:
    schema = {"type": "record", "name": "Doc", "namespace": "shop", "fields": [{"name": "value", "type": UNION}]}
    body = {"value_schema": json.dumps(schema), "records": [{"value": {"value": value}}]}
    answer = produce(api, topic, "avro", body)
    assert answer.status_code == (200 if fits else 422), answer.text
    if fits:
        (record,) = page(api, topic, "avro", 1)
        payload = {"v1.Payload": {"amount": pytest.approx(2.3)}} if "v1" in str(value) else value
        assert record["value"] == {"value": payload}


def test_schema_tells_the_format_where_the_media_type_tells_another(
    api: httpx2.Client, registry: RegistryProcess, topic: str
) -> None:
    text = 'syntax = "proto3"; message Order { string name = 1; }'
    added = httpx2.post(
        f"{registry.url}/subjects/{topic}-value/versions", json={"schemaType": "PROTOBUF", "schema": text}, timeout=30
    )
    body = {"value_schema_id": added.json()["id"], "records": [{"value": {"name": "first"}}]}
    answer = produce(api, topic, "avro", body)
    assert answer.status_code == 200, answer.text
    reader = ConsumerInstance.create(api, topic, format="avro")
    reader.assign(topic, 0)
    assert [record["value"] for record in reader.read(1)] == [{"name": "first"}]
    reader.delete()


@pytest.mark.parametrize("format_", ["avro", "jsonschema", "protobuf", "json"])
def test_instances_tell_keys_of_another_format_in_base64(
    api: httpx2.Client, broker: BrokerProcess, topic: str, format_: str
) -> None:
    write(broker, topic, Sent(key=b"order-1", value=None))
    reader = ConsumerInstance.create(api, topic, format=format_)
    reader.assign(topic, 0)
    assert [record["key"] for record in reader.read(1)] == ["b3JkZXItMQ=="]
    reader.delete()


def test_without_a_registry_records_by_schema_are_503_and_all_others_go_on(
    broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    with FakeRegistry() as registry:
        address = registry.url.replace("//", "//user:secret@")
        with (
            ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=address) as proxy,
            httpx2.Client(base_url=proxy.url, timeout=60) as api,
        ):
            data = b"\0" + registry.register("s", '"string"').id.to_bytes(4, "big") + b"\x02a"
            write(broker, topic, Sent(value=data))
            registry.stop()
            refused = produce(api, topic, "avro", {"value_schema": '"string"', "records": [{"value": "a"}]})
            assert (refused.status_code, refused.json()["error_code"]) == (503, 503)
            assert int(refused.headers["retry-after"]) >= 1
            assert registry.url in refused.json()["message"]
            assert "secret" not in refused.text
            assert produce(api, topic, "json", {"records": [{"value": "a"}]}).status_code == 200
            accept = {"Accept": "application/vnd.kafka.avro.v2+json"}
            unread = api.get(f"/topics/{topic}/partitions/0/records?offset=0", headers=accept)
            assert unread.status_code == 503, unread.text
            assert registry.url in unread.json()["message"]
