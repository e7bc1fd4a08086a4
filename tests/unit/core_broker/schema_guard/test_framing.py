"""Where a record says which schema it was written with."""

import io
import struct
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer, prefix_schema_id_serializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from core_broker.schema_guard.framing import BadFraming, Framing, Side, guid_text, read_framing, read_message_indexes

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
BY_GUID = b"\x01" + GUID.bytes
BY_ID = b"\x00\x00\x00\x00\x07"
VALUE_HEADER = "__value_schema_id"
Headers = tuple[tuple[str, bytes | None], ...]


@pytest.mark.parametrize(
    ("data", "headers", "expected"),
    [
        (BY_ID + b"payload", (), Framing(7, b"payload")),
        (BY_ID, (), Framing(7)),
        (b"\x00\x7f\xff\xff\xff", (), Framing(2**31 - 1)),
        (b"anything", ((VALUE_HEADER, BY_GUID),), Framing(GUID.bytes)),
        (b"anything", ((VALUE_HEADER, BY_GUID + b"\x00"),), Framing(GUID.bytes, b"\x00")),
        (b"", ((VALUE_HEADER, BY_ID),), Framing(7)),
        (b"anything", (("trace", b"1"), (VALUE_HEADER, BY_ID + b"\x02\x04")), Framing(7, b"\x02\x04")),
        (b"anything", ((VALUE_HEADER, BY_ID), (VALUE_HEADER, BY_ID)), Framing(7)),
        (BY_ID, ((VALUE_HEADER, None),), Framing(7)),
        (BY_ID, (("__key_schema_id", BY_GUID),), Framing(7)),
        (BY_ID + b"x" * 500, (), Framing(7, b"x" * 96)),
    ],
)
def test_the_schema_is_found_in_the_header_or_else_before_the_payload(
    data: bytes, headers: Headers, expected: Framing
) -> None:
    assert read_framing(Side.VALUE, data, headers) == expected


@pytest.mark.parametrize(
    ("data", "headers", "reason"),
    [
        (b"", (), "value is empty"),
        (b'{"n": 1}', (), "value begins with byte 123"),
        (BY_GUID, (), "value begins with byte 1"),
        (b"\x00\x00\x00\x07", (), "value has 4 bytes"),
        (b"\x00\xff\xff\xff\xff", (), "the largest valid id is 2147483647"),
        (BY_ID, ((VALUE_HEADER, b""),), "neither the id nor the GUID"),
        (BY_ID, ((VALUE_HEADER, BY_GUID[:-1]),), "neither the id nor the GUID"),
        (BY_ID, ((VALUE_HEADER, BY_ID[:-1]),), "neither the id nor the GUID"),
        (BY_ID, ((VALUE_HEADER, b"\x02" + GUID.bytes),), "neither the id nor the GUID"),
        (BY_ID, ((VALUE_HEADER, BY_ID), (VALUE_HEADER, BY_GUID)), "more than once"),
    ],
)
def test_what_names_no_schema_is_refused_with_the_reason(data: bytes, headers: Headers, reason: str) -> None:
    with pytest.raises(BadFraming, match=reason):
        read_framing(Side.VALUE, data, headers)


@pytest.mark.parametrize("side", list(Side))
def test_what_confluents_serializers_write_is_read(side: Side) -> None:
    field = MessageField.KEY if side is Side.KEY else MessageField.VALUE
    headers: list[tuple[str, str | bytes | None]] = []
    context = SerializationContext("orders", field, headers)
    schema = SchemaId("PROTOBUF", schema_id=7, guid=str(GUID), message_indexes=[1, 0])
    prefixed = prefix_schema_id_serializer(b"payload", context, schema)
    payload = header_schema_id_serializer(b"payload", context, schema)
    by_id = read_framing(side, prefixed, ())
    by_guid = read_framing(side, payload, [(name, value) for name, value in headers if isinstance(value, bytes)])
    assert (by_id.schema, by_guid.schema) == (7, GUID.bytes)
    assert read_message_indexes(by_id.tail) == read_message_indexes(by_guid.tail) == (1, 0)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=16))
def test_message_indexes_are_read_as_confluents_library_writes_them(indexes: list[int]) -> None:
    schema = SchemaId("PROTOBUF", schema_id=1, message_indexes=indexes)
    assert read_message_indexes(schema.id_to_bytes()[5:] + b"payload") == tuple(indexes)


@given(st.binary(max_size=40))
def test_random_message_indexes_are_read_as_by_confluents_library_or_refused(tail: bytes) -> None:
    try:
        indexes = read_message_indexes(tail)
    except BadFraming:
        return
    theirs = SchemaId("PROTOBUF")
    theirs.from_bytes(io.BytesIO(struct.pack(">bI", 0, 1) + tail))
    assert list(indexes) == theirs.message_indexes


@pytest.mark.parametrize("tail", [b"", b"\x80" * 9, b"\x02", b"\x01", b"\x22" + b"\x00" * 17])
def test_a_broken_path_to_a_message_is_refused(tail: bytes) -> None:
    with pytest.raises(BadFraming):
        read_message_indexes(tail)


def test_a_guid_is_written_as_registries_write_it() -> None:
    assert guid_text(GUID.bytes) == str(GUID)
