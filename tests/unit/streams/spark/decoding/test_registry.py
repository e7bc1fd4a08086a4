"""Values of a topic by the schemas that they name, against a registry that speaks HTTP."""

import json
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest

from connect.api.errors import DataError
from connect.converters.avro.converter import AvroConverter
from schema_registry.client.errors import NotAllowed, RegistryUnreachable
from schema_registry.formats import protobuf
from schema_registry.serdes.errors import UnknownSchema, UnusableSchema
from schema_registry.serdes.framing import guid_header, id_prefix
from streams.formats.frames import schema_ids
from streams.spark.decoding.decoder import Decoded
from streams.spark.decoding.registry import RegistryDecoder
from streams.spark.decoding.spec import DecoderSpec
from tests.support.fake_registry import FakeRegistry

NUMBERS = json.dumps({"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]})
TEXTS = json.dumps({"type": "record", "name": "T", "fields": [{"name": "t", "type": "string"}]})
LIST = json.dumps({"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]})
MESSAGES = 'syntax = "proto3"; message A { int32 x = 1; } message B { string y = 1; message C { bool z = 1; } }'
DOCUMENTS = json.dumps({"type": "object", "properties": {"d": {"type": "integer"}}})
GUID = "c0ffee00-1111-2222-3333-444455556666"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as one:
        for text, kind in (
            (NUMBERS, "AVRO"),
            (TEXTS, "AVRO"),
            (LIST, "AVRO"),
            (MESSAGES, "PROTOBUF"),
            (DOCUMENTS, "JSON"),
        ):
            one.register("t-value", text, kind=kind)
        yield one


def decoder(registry: FakeRegistry, format_: str = "registry", *, is_key: bool = False) -> RegistryDecoder:
    properties = {"schema.registry.url": registry.url, "max.retries": 0, "request.timeout.ms": 2000}
    return RegistryDecoder(DecoderSpec.of(format_, properties, is_key=is_key))


def told(decoded: Decoded) -> list[tuple[int, list[int], list[object]]]:
    return [(part.schema_id, part.rows.tolist(), part.data.to_pylist()) for part in decoded.parts]


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("skipped", [0, 2])
def test_values_of_each_schema_become_a_part(registry: FakeRegistry, type_: pa.DataType, skipped: int) -> None:
    values = [
        id_prefix(1) + b"\x02",
        id_prefix(2) + b"\x02a",
        None,
        id_prefix(1) + b"\x04",
        id_prefix(5) + b'{"d":3}',
        None,
    ]
    array = pa.array([id_prefix(2) + b"\x02z"] * skipped + values, type=type_)[skipped:]
    decoded = decoder(registry).decode(array, "t")
    assert told(decoded) == [(1, [0, 3], [{"n": 1}, {"n": 2}]), (2, [1], [{"t": "a"}]), (5, [4], [{"d": 3}])]
    assert decoded.nulls.tolist() == [2, 5]
    assert decoded.bad == []


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_no_values_become_no_parts(registry: FakeRegistry, type_: pa.DataType) -> None:
    assert told(decoder(registry).decode(pa.array([], type=type_), "t")) == []
    assert decoder(registry).decode(pa.array([None, None], type=type_), "t").nulls.tolist() == [0, 1]


BAD = [
    b"",
    b"\x00",
    b"\x00\x00\x00\x00",
    b"hello",
    b"\x01abc",
    b"\x00\x00\x00\x00\x63",
    id_prefix(1),
    id_prefix(2) + b"\x08ab",
]


@pytest.mark.parametrize("bad", [*BAD, id_prefix(4) + b"\x00", id_prefix(2) + b"\x04\xff\xfe"])
def test_a_bad_value_is_told_in_the_words_of_connects_converter(registry: FakeRegistry, bad: bytes) -> None:
    good = id_prefix(1) + b"\x02"
    decoded = decoder(registry, "avro").decode(pa.array([good, bad, good]), "t")
    converter = AvroConverter({"schema.registry.url": registry.url, "max.retries": "0"}, is_key=False)
    with pytest.raises(DataError) as raised:
        converter.to_connect("t", bad)
    converter.close()
    assert [(row, str(error)) for row, error in decoded.bad] == [(1, str(raised.value))]
    assert told(decoded) == [(1, [0, 2], [{"n": 1}, {"n": 1}])]


def test_a_registry_that_does_not_answer_makes_no_record_bad(registry: FakeRegistry) -> None:
    registry.stop()
    with pytest.raises(RegistryUnreachable):
        decoder(registry).decode(pa.array([id_prefix(1) + b"\x02", b"garbage"]), "t")


def test_a_registry_that_refuses_makes_no_record_bad(registry: FakeRegistry) -> None:
    registry.answers["/schemas/ids/1"] = (403, b"{}")
    with pytest.raises(NotAllowed):
        decoder(registry).decode(pa.array([id_prefix(1) + b"\x02"]), "t")


def test_the_registry_is_asked_once_per_schema(registry: FakeRegistry) -> None:
    one = decoder(registry)
    for _ in range(3):
        one.decode(pa.array([id_prefix(1) + b"\x02", id_prefix(2) + b"\x00"]), "t")
    assert len(registry.asked) == 2


def test_a_header_names_the_schema_before_the_value_does(registry: FakeRegistry) -> None:
    registry.answers[f"/schemas/guids/{GUID}"] = (200, json.dumps({"schema": TEXTS, "id": 2, "guid": GUID}).encode())
    name = "__value_schema_id"
    headers = [
        None,
        [],
        [("a", b"b"), (name, guid_header(GUID))],
        [(name, id_prefix(1))],
        [(name, b"?")],
        [(name, None)],
    ]
    array = pa.array(
        [None if one is None else [{"key": k, "value": v} for k, v in one] for one in headers], type=HEADERS
    )
    plain = id_prefix(1) + b"\x02"
    decoded = decoder(registry).decode(pa.array([plain, plain, b"\x02a", b"\x06", plain, plain]), "t", array)
    parts = sorted(told(decoded), key=lambda part: part[1])
    assert parts == [(1, [0, 1, 5], [{"n": 1}] * 3), (2, [2], [{"t": "a"}]), (1, [3], [{"n": 3}])]
    assert [row for row, _ in decoded.bad] == [4]


def test_headers_of_keys_say_nothing_about_values(registry: FakeRegistry) -> None:
    array = pa.array([[{"key": "__key_schema_id", "value": id_prefix(2)}]], type=HEADERS)
    assert told(decoder(registry).decode(pa.array([id_prefix(1) + b"\x02"]), "t", array)) == [(1, [0], [{"n": 1}])]


def test_a_guid_before_the_value_names_the_schema(registry: FakeRegistry) -> None:
    registry.answers[f"/schemas/guids/{GUID}"] = (200, json.dumps({"schema": TEXTS, "guid": GUID}).encode())
    value = b"\x01" + uuid.UUID(GUID).bytes + b"\x02a"
    decoded = decoder(registry).decode(pa.array([value, id_prefix(1) + b"\x02", value]), "t")
    assert told(decoded) == [(-1, [0, 2], [{"t": "a"}, {"t": "a"}]), (1, [1], [{"n": 1}])]


def test_each_message_of_a_schema_becomes_a_part(registry: FakeRegistry) -> None:
    schema = protobuf.parse(MESSAGES)
    first, nested = schema.message_class("A")(x=7), schema.message_class("B.C")(z=True)
    values = [id_prefix(4, [0]) + first.SerializeToString(), id_prefix(4, [1, 0]) + nested.SerializeToString()]
    wrong = [id_prefix(4, [9]), id_prefix(4), id_prefix(4, [0]) + b"\xff"]
    decoded = decoder(registry, "protobuf").decode(pa.array([*values, *wrong]), "t")
    assert told(decoded) == [(4, [0], [{"x": 7}]), (4, [1], [{"z": True}])]
    assert [row for row, _ in decoded.bad] == [2, 3, 4]


def test_a_schema_without_columns_is_left_to_others(registry: FakeRegistry) -> None:
    one = decoder(registry)
    decoded = one.decode(pa.array([id_prefix(3) + b"\x00", id_prefix(1) + b"\x02"]), "t")
    assert [(left.schema_id, left.rows.tolist()) for left in decoded.left_over] == [(3, [0])]
    assert [one.can_decode(schema_id) for schema_id in (1, 3, 4, 5, 99)] == [True, False, True, True, False]
    with pytest.raises(UnusableSchema, match="recursive"):
        one.type_of(3)


def test_types_are_known_before_there_is_data(registry: FakeRegistry) -> None:
    registry.answers["/subjects/t-key/versions/latest"] = (
        200,
        json.dumps({"schema": TEXTS, "id": 2, "version": 1}).encode(),
    )
    one = decoder(registry, is_key=True)
    assert one.latest_type("t") == (2, pa.struct([("t", pa.string())]))
    assert one.type_of(1) == pa.struct([("n", pa.int32())])
    with pytest.raises(UnknownSchema):
        one.type_of(99)


def test_types_of_other_schemas_are_found_by_their_references(registry: FakeRegistry) -> None:
    outer = json.dumps({"type": "record", "name": "O", "fields": [{"name": "inner", "type": ["null", "N"]}]})
    references = [{"name": "N", "subject": "numbers", "version": 1}]
    registry.answers["/schemas/ids/50"] = (200, json.dumps({"schema": outer, "references": references}).encode())
    registry.answers["/subjects/numbers/versions/1"] = (
        200,
        json.dumps({"schema": NUMBERS, "id": 1, "version": 1}).encode(),
    )
    decoded = decoder(registry).decode(pa.array([id_prefix(50) + b"\x02\x0a", id_prefix(50) + b"\x00"]), "t")
    assert told(decoded) == [(50, [0, 1], [{"inner": {"n": 5}}, {"inner": None}])]


def test_ids_before_values_are_told_without_a_registry() -> None:
    values = [id_prefix(7) + b"x", None, b"", b"\x01aaaa", id_prefix(2**31)]
    assert schema_ids(pa.array(values)).to_pylist() == [7, None, None, None, 2**31]
    assert schema_ids(pa.array([], type=pa.large_binary())).to_pylist() == []
