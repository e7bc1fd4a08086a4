import base64
from typing import Any

import pytest
from google.protobuf import wrappers_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats import protobuf
from schema_registry.formats.schema import ResolvedReference
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from schema_registry.serdes.protobuf import ProtobufCodec

ADDRESS = 'syntax = "proto3"; package geo; message Address { string city = 1; }'
ORDER = """
syntax = "proto3";
package shop;
import "geo/address.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  int64 order_id = 1;
  double total = 2;
  bytes raw = 3;
  Colour colour = 4;
  repeated string tags = 5;
  map<string, int32> counts = 6;
  geo.Address to = 7;
  oneof payment { string card = 8; bool cash = 9; }
  google.protobuf.Timestamp at = 10;
  google.protobuf.StringValue note = 11;
  optional int32 rank = 12;
  Line line = 13;
  Order parent = 14;
  message Line {
    string sku = 1;
    message Detail { string text = 1; }
    Detail detail = 2;
  }
}
enum Colour { RED = 0; GREEN = 1; }
message Other { string name = 1; }
"""
ADDRESS_REFERENCE = ResolvedReference(name="geo/address.proto", subject="address", version=1, text=ADDRESS)
SCHEMA = protobuf.parse(ORDER, [ADDRESS_REFERENCE])
order = ProtobufCodec(SCHEMA)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PAYMENTS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}), TEXT.map(lambda text: {"card": text}), st.booleans().map(lambda flag: {"cash": flag})
)
VIEWS = st.builds(
    lambda plain, optional, payment: {**plain, **optional, **payment},
    st.fixed_dictionaries(
        {
            "orderId": st.integers(-(1 << 63), (1 << 63) - 1).map(str),
            "total": st.floats(allow_nan=False, allow_infinity=False),
            "raw": st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode()),
            "colour": st.sampled_from(["RED", "GREEN"]),
            "tags": st.lists(TEXT, max_size=3),
            "counts": st.dictionaries(TEXT, st.integers(-(1 << 31), (1 << 31) - 1), max_size=3),
        }
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "to": st.fixed_dictionaries({"city": TEXT}),
            "at": st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z"),
            "note": TEXT,
            "rank": st.integers(0, 9),
            "line": st.fixed_dictionaries({"sku": TEXT}, optional={"detail": st.fixed_dictionaries({"text": TEXT})}),
        },
    ),
    PAYMENTS,
)


@given(VIEWS)
@settings(max_examples=60, deadline=None)
def test_json_becomes_bytes_and_json_again(view: Any) -> None:
    data = order.encode_json(view)
    assert order.decode_json(data) == view
    assert order.decode_json(b"frame" + data, 5) == view


@given(VIEWS)
@settings(max_examples=40, deadline=None)
def test_messages_become_bytes_and_messages_again(view: Any) -> None:
    message = order.decode(order.encode_json(view))
    assert order.decode(order.encode(message)) == message


def test_fields_without_presence_are_told_by_their_defaults() -> None:
    assert order.decode_json(b"") == {
        "orderId": "0",
        "total": 0.0,
        "raw": "",
        "colour": "RED",
        "tags": [],
        "counts": {},
    }


def test_a_oneof_tells_which_one() -> None:
    message = order.decode(order.encode_json({"cash": False}))
    assert message.WhichOneof("payment") == "cash"


@pytest.mark.parametrize(
    ("name", "indexes"),
    [("shop.Order", (0,)), ("shop.Other", (1,)), ("shop.Order.Line", (0, 1)), ("shop.Order.Line.Detail", (0, 1, 0))],
)
def test_any_message_of_the_schema_can_be_written(name: str, indexes: tuple[int, ...]) -> None:
    codec = ProtobufCodec(SCHEMA, message=name)
    assert codec.message_indexes == indexes
    assert codec.message_class.DESCRIPTOR.full_name == name
    assert codec.decode_json(codec.encode({})) == codec.decode_json(b"")


def test_names_of_the_file_and_of_json_are_both_read() -> None:
    assert order.encode({"order_id": 7}) == order.encode_json({"orderId": "7"})


def test_messages_of_generated_classes_are_written() -> None:
    codec = ProtobufCodec(
        protobuf.parse('syntax = "proto3"; package google.protobuf; message StringValue { string value = 1; }')
    )
    assert codec.encode(wrappers_pb2.StringValue(value="x")) == b"\x0a\x01x"


def test_messages_of_another_type_are_refused() -> None:
    with pytest.raises(InvalidData, match=r"expected a message shop.Order, not google.protobuf.StringValue"):
        order.encode(wrappers_pb2.StringValue())


@pytest.mark.parametrize(
    "view",
    [
        {"nope": 1},
        {"orderId": "x"},
        {"orderId": 1 << 70},
        {"colour": "BLUE"},
        {"to": [1]},
        {"card": "x", "cash": True},
        {"counts": {"a": "x"}},
        {"at": "yesterday"},
        {"raw": 5},
        [],
        "x",
        5,
        None,
        b"bytes",
    ],
)
def test_json_that_does_not_fit_is_refused(view: object) -> None:
    with pytest.raises(InvalidData, match=r"does not fit the message shop\.Order"):
        order.encode_json(view)


@pytest.mark.parametrize("data", [b"\x0a", b"\xff", b"\x08", b"\x3a\x05abc", b"\x72\x7f" * 3, b"\x2a\x01\xff"])
def test_bytes_that_do_not_fit_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidData, match="is not a message"):
        order.decode(data)


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_garbage_is_read_or_refused_but_never_worse(data: bytes) -> None:
    try:
        order.decode_json(data)
    except InvalidData:
        pass


def test_data_and_json_that_nest_without_end_are_refused() -> None:
    data = b""
    for _ in range(5_000):
        data = b"\x72" + _varint(len(data)) + data
    with pytest.raises(InvalidData):
        order.decode(data)
    view: dict[str, Any] = {}
    for _ in range(2_000):
        view = {"parent": view}
    with pytest.raises(InvalidData):
        order.encode_json(view)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_required_fields_must_be_there() -> None:
    codec = ProtobufCodec(protobuf.parse('syntax = "proto2"; message R { required string name = 1; }'))
    with pytest.raises(InvalidData):
        codec.encode({})


@pytest.mark.parametrize("message", ["shop.Missing", "geo.Address", "Order"])
def test_messages_that_the_schema_does_not_have_are_told(message: str) -> None:
    with pytest.raises(UnusableSchema, match="has no message"):
        ProtobufCodec(SCHEMA, message=message)


def test_a_schema_without_messages_has_no_data() -> None:
    with pytest.raises(UnusableSchema, match="has no message"):
        ProtobufCodec(protobuf.parse('syntax = "proto3"; enum E { A = 0; }'))
