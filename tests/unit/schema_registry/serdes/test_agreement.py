"""Confluent's serializers and ours, byte for byte, in both directions; theirs on a registry in memory."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings

from schema_registry.formats import avro, json_schema, protobuf
from schema_registry.formats.schema import ResolvedReference
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.framing import header_of, id_prefix, read_frame, read_message_indexes
from schema_registry.serdes.json_schema import JsonCodec
from schema_registry.serdes.protobuf import ProtobufCodec
from tests.support.avro_values import views

ADDRESS = json.dumps({"type": "record", "name": "geo.Address", "fields": [{"name": "city", "type": "string"}]})
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "to", "type": ["null", "geo.Address"]},
            {"name": "tags", "type": {"type": "map", "values": ["null", "string", "double"]}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        ],
    }
)
AVRO = avro.parse(ORDER, [ResolvedReference(name="geo.Address", subject="address", version=1, text=ADDRESS)])
PROTO = """
syntax = "proto3";
package shop;
message Order { int64 id = 1; oneof by { string card = 2; Line line = 3; } message Line { map<string, int32> m = 1; } }
message Other { repeated string names = 1; }
"""


@pytest.fixture
def theirs(name: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient.new_client({"url": f"mock://{name}"}) as client:
        yield client


def _context(headers: Any = None) -> SerializationContext:
    return SerializationContext("orders", MessageField.VALUE, headers)


ORDER_VIEWS = views(AVRO.root).map(lambda view: {**view, "at": view["at"] % 10**12, "day": view["day"] % 10**5})


@given(view=ORDER_VIEWS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_avro_with_references_and_logical_types(theirs: SchemaRegistryClient, view: Any) -> None:
    theirs.register_schema("address", Schema(ADDRESS, "AVRO"))
    schema = Schema(ORDER, "AVRO", [SchemaReference("geo.Address", "address", 1)])
    schema_id = theirs.register_schema("orders-value", schema)
    serialize, deserialize = AvroSerializer(theirs, schema), AvroDeserializer(theirs)
    codec = AvroCodec(AVRO)
    value = codec.decode(codec.encode_json(view))

    ours = id_prefix(schema_id) + codec.encode(value)

    assert ours == serialize(value, _context())
    assert repr(deserialize(ours, _context())) == repr(codec.decode(ours, 5)) == repr(value)


def test_the_schema_bytes_itself(theirs: SchemaRegistryClient) -> None:
    data = AvroSerializer(theirs, '"bytes"')(b"abc", _context())
    assert data is not None
    assert AvroCodec(avro.parse('"bytes"')).decode(data, 5) == b"abc"
    assert AvroDeserializer(theirs)(data[:5] + AvroCodec(avro.parse('"bytes"')).encode(b"xyz"), _context()) == b"xyz"


def test_json_is_read_by_each_other_and_differs_only_in_spaces(theirs: SchemaRegistryClient) -> None:
    text = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}})
    codec = JsonCodec(json_schema.parse(text))
    value = {"id": 1, "name": "é", "list": [1.5, None, {"a": True}]}

    def compact(document: object) -> str:
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    theirs_spaced = JSONSerializer(text, theirs)(value, _context())
    theirs_compact = JSONSerializer(text, theirs, json_encode=compact)(value, _context())
    assert theirs_spaced is not None
    frame = read_frame(theirs_spaced)
    assert isinstance(frame.schema, int)
    ours = id_prefix(frame.schema) + codec.encode(value)

    assert ours == theirs_compact
    assert codec.decode(theirs_spaced, 5) == value
    assert JSONDeserializer(text, schema_registry_client=theirs)(ours, _context()) == value


@pytest.mark.parametrize(
    ("message", "view"),
    [
        ("shop.Order", {"id": "5", "card": "x"}),
        ("shop.Order", {}),
        ("shop.Order.Line", {"m": {"a": 1}}),
        ("shop.Other", {"names": ["a", "b"]}),
    ],
)
def test_protobuf_with_oneofs_maps_and_nested_messages(
    theirs: SchemaRegistryClient, message: str, view: dict[str, Any]
) -> None:
    schema = protobuf.parse(PROTO)
    codec = ProtobufCodec(schema, message=message)
    value = codec.decode(codec.encode(view))
    theirs_data = ProtobufSerializer(type(value), theirs)(value, _context())
    assert theirs_data is not None
    frame = read_frame(theirs_data)
    assert isinstance(frame.schema, int)

    ours = id_prefix(frame.schema, codec.message_indexes) + codec.encode(value)

    assert ours == theirs_data
    indexes, end = read_message_indexes(frame)
    assert schema.message_at(indexes).full_name == message
    assert codec.decode(theirs_data, end) == value
    assert ProtobufDeserializer(type(value), {}, theirs)(ours, _context()) == value


def test_guids_in_headers(theirs: SchemaRegistryClient) -> None:
    headers: list[tuple[str, bytes]] = []
    serialize = AvroSerializer(theirs, '"string"', conf={"schema.id.serializer": header_schema_id_serializer})
    data = serialize("abc", _context(headers))
    assert data is not None
    frame = read_frame(data, header_of(headers, is_key=False))
    assert frame.is_in_header
    assert theirs.get_schema_by_guid(str(frame.schema)).schema_str == '{"type":"string"}'
    assert AvroCodec(avro.parse('"string"')).decode(data) == "abc"
    deserialize = AvroDeserializer(theirs, conf={"schema.id.deserializer": dual_schema_id_deserializer})
    assert deserialize(AvroCodec(avro.parse('"string"')).encode("uvwxyz"), _context(headers)) == "uvwxyz"
