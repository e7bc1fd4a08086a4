"""Many messages at once become the columns that reading one by one makes of them; Protobuf itself parses the latter."""

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schema_registry.formats import protobuf
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.arrow.protobuf_columns import column_plan, column_type
from schema_registry.serdes.arrow.protobuf_reading import protobuf_reader
from schema_registry.serdes.arrow.reading import NOT_FITTING, Read
from schema_registry.serdes.errors import InvalidData, NotFramed, UnusableSchema
from schema_registry.serdes.protobuf import ProtobufCodec
from schema_registry.serdes.protobuf_plan import ListPlan, MapPlan, Member, MessagePlan, OneofPlan, Plan
from schema_registry.serdes.protobuf_values import reader
from tests.support.protobuf_columns import EVERYTHING, FLAT, PROTO2, WRAPPERS, in_order, records_of
from tests.support.protobuf_schemas import schemas


def expected(schema: ProtobufSchema, indexes: tuple[int, ...], records: list[bytes]) -> Read:
    """What reading messages one by one makes of them."""
    message = schema.message_at(indexes)
    plan = column_plan(message)
    read, codec = reader(plan), ProtobufCodec(schema, message=message.full_name)
    type_ = column_type(plan)
    values, rows, bad = [], [], []
    for row, record in enumerate(records):
        try:
            value = with_entries(plan, read(codec.decode(record)))
            pa.array([value], type=type_)
        except (InvalidData, *NOT_FITTING) as error:
            bad.append((row, error))
        else:
            values.append(value)
            rows.append(row)
    return Read(pa.array(values, type=type_), rows, bad)  # type: ignore[arg-type]


def with_entries(plan: Plan, value: Any) -> Any:
    """With lists of entries for maps whose keys are not text."""
    if value is None:
        return None
    match plan:
        case MessagePlan():
            return {part.name: with_entries_of_part(part, value.get(part.name)) for part in plan.parts}
        case ListPlan():
            return [with_entries(plan.items, item) for item in value]
        case MapPlan():
            parts = {key: with_entries(plan.values, item) for key, item in value.items()}
            is_map = pa.types.is_map(column_type(plan))
            return parts if is_map else [{"key": key, "value": item} for key, item in parts.items()]
        case _:
            return value


def with_entries_of_part(part: Member | OneofPlan, value: Any) -> Any:
    if isinstance(part, Member):
        return with_entries(part.plan, value)
    return value and {m.name: with_entries(m.plan, value.get(m.name)) for m in part.members}


def assert_same(read: Read, wanted: Read) -> None:
    assert read.data.type.equals(wanted.data.type)
    assert list(read.rows) == list(wanted.rows)
    assert sorted(row for row, _ in read.bad) == [row for row, _ in wanted.bad]
    assert repr(in_order(read.data.to_pylist())) == repr(in_order(wanted.data.to_pylist()))
    read.data.validate(full=True)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("text", "indexes"),
    [(FLAT, (0,)), (EVERYTHING, (0,)), (EVERYTHING, (1,)), (EVERYTHING, (1, 0)), (PROTO2, (0,))],
    ids=["flat", "everything", "second message", "nested message", "proto2"],
)
def test_many_messages_become_what_each_is_by_itself(text: str, indexes: tuple[int, ...], seed: int) -> None:
    schema = protobuf.parse(text)
    records = records_of(schema, indexes, seed)
    assert_same(protobuf_reader(schema, indexes).read(pa.array(records)), expected(schema, indexes, records))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("text", [EVERYTHING, FLAT], ids=["everything", "flat"])
def test_damaged_messages_are_bad_exactly_where_they_are_by_themselves(text: str, seed: int) -> None:
    schema = protobuf.parse(text)
    r = random.Random(seed)
    records = [damaged(record, r) for record in records_of(schema, (0,), seed, count=100)]
    assert_same(protobuf_reader(schema, (0,)).read(pa.array(records)), expected(schema, (0,), records))


def damaged(record: bytes, r: random.Random) -> bytes:
    place = r.randrange(len(record) + 1)
    match r.randrange(6):
        case 0:
            return record[:place]
        case 1:
            return record[:place] + r.randbytes(1) + record[place + 1 :]
        case 2:
            return record + record
        case 3:
            return record[place:] + record[:place]
        case 4:
            return record + bytes([0xFA, 0x3E, 2]) + b"hi"
        case _:
            return record


@pytest.mark.parametrize(
    "record",
    [
        b"\x08" + b"\xff" * 9 + b"\x01",
        b"\x08" + b"\xff" * 9 + b"\x03",
        b"\x08" + b"\xff" * 10 + b"\x01",
        b"\x08\x80\x80\x00",
        b"\x10" + b"\xff" * 9 + b"\x01",
        b"\x68\x02",
        b"\x68\x80\x02",
        b"\x72\x02\xff\xfe",
        b"\x72\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x01\x07",
        b"\x88\x00\x01",
        b"\x0d\x01\x00\x00\x00",
        b"",
    ],
)
def test_unusual_numbers_are_what_protobuf_makes_of_them(record: bytes) -> None:
    schema = protobuf.parse(FLAT)
    records = [b"\x08\x01", record, b"\x08\x02"]
    assert_same(protobuf_reader(schema, (0,)).read(pa.array(records)), expected(schema, (0,), records))


@given(schemas(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_messages_of_any_schema_become_what_each_is_by_itself(text: str, seed: int) -> None:
    try:
        schema = protobuf.parse(text)
        made = protobuf_reader(schema, (0,))
    except (InvalidSchema, UnusableSchema):
        assume(False)
        raise
    records = records_of(schema, (0,), seed, count=5)
    assert_same(made.read(pa.array(records)), expected(schema, (0,), records))


@pytest.mark.parametrize("kind", ["Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"])
def test_a_message_that_holds_one_value_is_that_value(kind: str) -> None:
    schema = protobuf.parse(WRAPPERS)
    place = [message.name for message in schema.descriptor.message_type].index(f"{kind}Value")
    records = records_of(schema, (place,), 1)
    assert_same(protobuf_reader(schema, (place,)).read(pa.array(records)), expected(schema, (place,), records))


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; message A { A next = 1; }',
        'syntax = "proto3"; message A { }',
        'syntax = "proto3"; message A { map<string, B> x = 1; } message B { repeated A y = 1; }',
        'syntax = "proto2"; message A { optional group G = 1 { optional int32 x = 1; } }',
    ],
)
def test_messages_without_columns_are_refused(text: str) -> None:
    with pytest.raises(UnusableSchema):
        protobuf_reader(protobuf.parse(text), (0,))


def test_indexes_that_lead_to_no_message_are_no_framing() -> None:
    with pytest.raises(NotFramed):
        protobuf_reader(protobuf.parse(EVERYTHING), (7,))
