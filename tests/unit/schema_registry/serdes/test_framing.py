import uuid

import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from schema_registry.serdes.errors import NotFramed
from schema_registry.serdes.framing import (
    Header,
    guid_header,
    header_name,
    header_of,
    id_prefix,
    read_frame,
    read_message_indexes,
)

GUID = "89791762-2336-4186-9674-299b90a802e2"
INDEXES = st.lists(st.integers(0, 5_000), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("schema_id", "indexes", "expected"),
    [
        (1, None, "0000000001"),
        (0xFFFFFFFF, None, "00ffffffff"),
        (258, (0,), "000000010200"),
        (1, (1,), "00000000010202"),
        (1, (0, 0), "0000000001040000"),
        (1, (1, 0), "0000000001040200"),
        (1, (64,), "0000000001028001"),
        (1, (0, 1, 300), "0000000001060002d804"),
    ],
)
def test_ids_are_written_as_confluent_documents_them(
    schema_id: int, indexes: tuple[int, ...] | None, expected: str
) -> None:
    assert id_prefix(schema_id, indexes).hex() == expected


def test_guids_are_written_as_confluent_documents_them() -> None:
    assert guid_header(GUID).hex() == "01" + GUID.replace("-", "")
    assert guid_header(GUID, (1, 0)).hex() == "01" + GUID.replace("-", "") + "040200"


@given(st.integers(0, 0xFFFFFFFF), INDEXES)
def test_confluents_client_writes_the_same_ids(schema_id: int, indexes: list[int]) -> None:
    theirs = SchemaId("PROTOBUF", schema_id, None, indexes).id_to_bytes()
    assert id_prefix(schema_id, indexes) == theirs
    frame = read_frame(theirs + b"data")
    assert frame.schema == schema_id
    assert read_message_indexes(frame) == (tuple(indexes), len(theirs))


@given(st.uuids(), INDEXES)
def test_confluents_client_writes_the_same_guids(guid: uuid.UUID, indexes: list[int]) -> None:
    theirs = SchemaId("PROTOBUF", None, str(guid), indexes).guid_to_bytes()
    assert guid_header(str(guid), indexes) == theirs
    frame = read_frame(b"data", theirs)
    assert (frame.schema, frame.is_in_header) == (str(guid), True)
    assert read_message_indexes(frame)[0] == tuple(indexes)


def test_a_guid_before_the_data_and_an_id_in_a_header_are_understood_too() -> None:
    assert read_frame(guid_header(GUID) + b"x").schema == GUID
    assert read_frame(b"x", id_prefix(7)).schema == 7


def test_an_id_without_data_is_a_frame() -> None:
    assert read_frame(id_prefix(7)).start == 5


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the data is empty"),
        (b"\x00", "ends within the name of its schema, after 1 bytes"),
        (b"\x00\x00\x00\x01", "after 4 bytes"),
        (b"\x01" + bytes(15), "after 16 bytes"),
        (b'{"a": 1}', "begins with byte 0x7b"),
        (b"\x02\x00\x00\x00\x01", "begins with byte 0x02"),
    ],
)
def test_bytes_that_name_no_schema_are_told_apart(data: bytes, complaint: str) -> None:
    with pytest.raises(NotFramed, match=complaint):
        read_frame(data)


def test_a_broken_header_is_told_as_such() -> None:
    with pytest.raises(NotFramed, match="the header begins with byte 0x39"):
        read_frame(id_prefix(7), b"9")


@pytest.mark.parametrize("tail", ["", "02", "0280", "0202"[:2] + "80" * 6, "ffffffff0f", "ffffffffffff", "01", "d801"])
def test_message_indexes_that_are_none_are_refused(tail: str) -> None:
    with pytest.raises(NotFramed):
        read_message_indexes(read_frame(id_prefix(1) + bytes.fromhex(tail)))


@given(st.binary(max_size=40))
def test_garbage_is_read_or_refused_but_never_worse(data: bytes) -> None:
    try:
        indexes, end = read_message_indexes(read_frame(data))
    except NotFramed:
        return
    assert end <= len(data)
    assert indexes


def test_keys_and_values_have_headers_of_their_own() -> None:
    headers: list[Header] = [(header_name(is_key=True), b"k"), ("x", None), (header_name(is_key=False), b"v")]
    assert header_of(headers, is_key=True) == b"k"
    assert header_of(headers, is_key=False) == b"v"
    assert header_of(headers[:2], is_key=False) is None
    assert header_of(None, is_key=False) is None
