"""What schemas call their records."""

import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from core_broker.schema_guard.framing import BadFraming
from core_broker.schema_guard.record_names import NamelessSchema, avro_name, json_schema_name, protobuf_names


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"type": "record", "name": "Order", "namespace": "shop", "fields": []}, "shop.Order"),
        ({"type": "record", "name": "Order", "fields": []}, "Order"),
        ({"type": "record", "name": "Order", "namespace": "", "fields": []}, "Order"),
        ({"type": "record", "name": "own.Order", "namespace": "shop", "fields": []}, "own.Order"),
        ({"type": "enum", "name": "Colour", "namespace": "shop", "symbols": ["RED"]}, "shop.Colour"),
        ({"type": "fixed", "name": "Hash", "size": 16}, "Hash"),
        ({"type": "string"}, "string"),
        ({"type": "array", "items": "int"}, "array"),
        ({"type": "string", "name": "ignored"}, "string"),
        ("long", "long"),
        (["null", "string"], "union"),
    ],
)
def test_avro_types_go_by_their_full_name_or_their_kind(schema: object, name: str) -> None:
    assert avro_name(json.dumps(schema)) == name


@pytest.mark.parametrize("schema", ["", "{}", "not json", "[" * 100_000, "3", '{"type": {"type": "string"}}'])
def test_what_is_no_avro_schema_has_no_name(schema: str) -> None:
    with pytest.raises(NamelessSchema):
        avro_name(schema)


def test_a_json_schema_goes_by_its_title() -> None:
    assert json_schema_name('{"title": "Order", "type": "object"}') == "Order"
    for schema in ("{}", '{"title": ""}', '{"title": 3}', "true", "nonsense"):
        with pytest.raises(NamelessSchema):
            json_schema_name(schema)


def descriptor(package: str = "") -> str:
    file = FileDescriptorProto(
        name="shop.proto",
        package=package,
        message_type=[
            DescriptorProto(name="Order", nested_type=[DescriptorProto(name="Line"), DescriptorProto(name="Total")]),
            DescriptorProto(name="Customer"),
        ],
    )
    return base64.b64encode(file.SerializeToString()).decode()


@pytest.mark.parametrize(
    ("tail", "name"),
    [
        (b"\x00", "shop.Order"),
        (b"\x02\x00", "shop.Order"),
        (b"\x02\x02", "shop.Customer"),
        (b"\x04\x00\x02payload", "shop.Order.Total"),
    ],
)
def test_a_protobuf_message_is_found_by_the_path_before_the_payload(tail: bytes, name: str) -> None:
    assert protobuf_names(descriptor("shop"))(tail) == name
    assert protobuf_names(descriptor())(tail) == name.removeprefix("shop.")


@pytest.mark.parametrize("tail", [b"", b"\x02\x04", b"\x02\x01", b"\x04\x02\x00"])
def test_a_path_that_leads_to_no_message_is_refused(tail: bytes) -> None:
    with pytest.raises(BadFraming):
        protobuf_names(descriptor())(tail)


@pytest.mark.parametrize("text", ["syntax = proto3;", "AAAA", "/w=="])
def test_a_descriptor_that_cannot_be_read_names_nothing(text: str) -> None:
    with pytest.raises(NamelessSchema):
        protobuf_names(text)
