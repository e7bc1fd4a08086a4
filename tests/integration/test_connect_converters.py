"""Records of our converters and of Confluent's serializers, each read by the other, through a running registry."""

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import DataError
from connect.converters.avro.converter import AvroConverter
from connect.converters.json_schema.converter import JsonSchemaConverter
from connect.converters.protobuf.converter import ProtobufConverter
from connect.converters.registry import RegistryConverter
from schema_registry.formats.protobuf_builtin import folders
from tests.support.protobuf_messages import message_classes
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import Confluent, confluent, context

EVERY = [AvroConverter, JsonSchemaConverter, ProtobufConverter]
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)
ORDER = struct(
    {
        "id": INT64,
        "small": INT8,
        "text": STRING,
        "note": OPTIONAL_STRING,
        "price": decimal(2),
        "weight": FLOAT64,
        "paid": BOOLEAN,
        "raw": BYTES,
        "day": DATE,
        "time": TIME,
        "at": TIMESTAMP,
        "tags": array(STRING),
        "counts": mapping(STRING, INT32),
        "place": struct({"x": INT32, "y": INT32}, name="shop.Place"),
    },
    name="shop.Order",
)
VALUE: dict[str, Any] = {
    "id": 1 << 40,
    "small": -3,
    "text": "grüße",
    "note": "n",
    "price": Decimal("12.50"),
    "weight": 0.25,
    "paid": True,
    "raw": b"\x00\xff",
    "day": dt.date(2024, 2, 29),
    "time": dt.time(12, 30),
    "at": MOMENT,
    "tags": ["a", "b"],
    "counts": {"a": 1},
    "place": {"x": 1, "y": 2},
}


@pytest.fixture
def theirs(registry: RegistryProcess) -> Iterator[Confluent]:
    """Confluent's client."""
    with confluent(registry.url) as client:
        yield client


class Converters:
    """Makes converters that use the registry, and closes them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stack = ExitStack()

    def __call__(self, kind: type[RegistryConverter], *, is_key: bool = False, **options: str) -> RegistryConverter:
        given = {key.replace("_", "."): value for key, value in options.items()}
        made = kind({"schema.registry.url": self._url, **given}, is_key=is_key)
        self._stack.callback(made.close)
        return made

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def converter(registry: RegistryProcess) -> Iterator[Converters]:
    """What makes converters."""
    made = Converters(registry.url)
    yield made
    made.close()


@pytest.mark.parametrize("kind", EVERY)
def test_a_record_survives_the_way_through_the_registry(
    kind: type[RegistryConverter], converter: Converters, name: str
) -> None:
    ours = converter(kind)
    data = ours.from_connect(name, ORDER, VALUE)
    schema, value = ours.to_connect(name, data)

    assert value == VALUE
    assert schema is not None
    assert schema.version == 1
    copy = ours.from_connect(f"{name}-copy", schema, value)  # What was read can be written elsewhere.
    assert ours.to_connect(f"{name}-copy", copy)[1] == VALUE


def test_confluents_deserializer_reads_our_avro(converter: Converters, name: str, theirs: Confluent) -> None:
    ours = converter(AvroConverter)
    data = ours.from_connect(name, ORDER, VALUE)

    assert theirs.avro_deserializer()(data, context(name)) == VALUE


def test_we_read_the_avro_of_confluents_serializer(converter: Converters, name: str, theirs: Confluent) -> None:
    definition = {
        "type": "record",
        "name": "User",
        "namespace": "shop",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "contact", "type": ["null", "string", "long", {"type": "array", "items": "string"}]},
            {"name": "born", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
            {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
    value = {"name": "x", "kind": "B", "contact": 5, "born": dt.date(2000, 1, 1), "seen": MOMENT}
    data = theirs.avro_serializer(json.dumps(definition))(value, context(name))
    ours = converter(AvroConverter)
    schema, found = ours.to_connect(name, data)

    micros = (MOMENT - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    assert found == {**value, "contact": {"long": 5}, "seen": micros}
    assert schema is not None
    assert (schema.name, schema.version) == ("shop.User", 1)


def test_confluents_deserializer_reads_our_json(converter: Converters, name: str, theirs: Confluent) -> None:
    ours = converter(JsonSchemaConverter, decimal_format="NUMERIC")
    data = ours.from_connect(name, ORDER, VALUE)
    found = theirs.json_deserializer()(data, context(name))

    assert (found["id"], found["text"], found["place"]) == (1 << 40, "grüße", {"x": 1, "y": 2})
    assert (found["price"], found["at"], found["day"]) == (12.5, 1709209815123, 19782)


def test_we_read_the_json_of_confluents_serializer(converter: Converters, name: str, theirs: Confluent) -> None:
    definition = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "User",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": ["integer", "null"]},
            "choice": {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "number"}}]},
        },
        "required": ["name"],
    }
    value = {"name": "x", "age": None, "choice": [1, 2.5]}
    data = theirs.json_serializer(json.dumps(definition))(value, context(name))
    ours = converter(JsonSchemaConverter)
    schema, found = ours.to_connect(name, data)

    assert found == {**value, "choice": {"io.confluent.connect.json.OneOf.field.1": [1.0, 2.5]}}
    assert schema is not None
    assert (schema.name, schema.version) == ("User", 1)


ORDER_PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "confluent/type/decimal.proto";
message Ignored { int32 n = 1; }
message Order {
  int64 id = 1;
  string text = 2;
  google.protobuf.Timestamp at = 3;
  repeated string tags = 4;
  map<string, int32> counts = 5;
  oneof choice { string left = 6; Order.Place right = 7; }
  confluent.type.Decimal price = 8;
  message Place { int32 x = 1; }
}
"""


def test_we_read_the_protobuf_of_confluents_serializer(converter: Converters, name: str, theirs: Confluent) -> None:
    order: Any = message_classes({"order.proto": ORDER_PROTO}, includes=_proto_folders())["shop.Order"]
    message = order(
        id=5, text="x", tags=["a"], counts={"a": 1}, right={"x": 2}, price={"value": b"\x04\xe2", "scale": 2}
    )
    message.at.FromDatetime(MOMENT)
    data = theirs.protobuf_serializer(order)(message, context(name))
    ours = converter(ProtobufConverter)
    schema, found = ours.to_connect(name, data)

    assert data[:6] != b"\x00" * 6  # the second message of its file
    assert found == {
        "choice_0": {"right": {"x": 2}},
        "id": 5,
        "text": "x",
        "at": MOMENT,
        "tags": ["a"],
        "counts": {"a": 1},
        "price": Decimal("12.50"),
    }
    assert schema is not None
    assert (schema.name, schema.version) == ("Order", 1)


def test_confluents_deserializer_reads_our_protobuf(converter: Converters, name: str, theirs: Confluent) -> None:
    ours = converter(ProtobufConverter)
    schema = struct({"id": INT64, "text": STRING, "at": TIMESTAMP, "tags": array(STRING)}, name="shop.Order")
    value = {"id": 5, "text": "x", "at": MOMENT, "tags": ["a"]}
    data = ours.from_connect(name, schema, value)
    text = theirs.get_latest_version(f"{name}-value").schema.schema_str
    order: Any = message_classes({"order.proto": text})["shop.Order"]
    found = theirs.protobuf_deserializer(order)(data, context(name))

    assert (found.id, found.text, found.tags[:], found.at.ToDatetime(dt.UTC)) == (5, "x", ["a"], MOMENT)


def _proto_folders() -> tuple[Any, ...]:
    return (folders()["confluent"].parent,)


@pytest.mark.parametrize("kind", EVERY)
def test_keys_and_values_have_subjects_of_their_own(
    kind: type[RegistryConverter], converter: Converters, name: str, theirs: Confluent
) -> None:
    for is_key in (True, False):
        ours = converter(kind, is_key=is_key)
        assert ours.to_connect(name, ours.from_connect(name, STRING, "k"))[1] == "k"

    subjects = set(theirs.get_subjects())
    assert {f"{name}-key", f"{name}-value"} <= subjects


@pytest.mark.parametrize("kind", EVERY)
def test_records_are_named_by_the_strategy(
    kind: type[RegistryConverter], converter: Converters, name: str, theirs: Confluent
) -> None:
    strategy = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
    ours = converter(kind, value_subject_name_strategy=strategy)
    ours.from_connect(name, ORDER, VALUE)

    assert f"{name}-shop.Order" in theirs.get_subjects()


CHANGES: list[tuple[type[RegistryConverter], Schema, Schema]] = [
    (AvroConverter, struct({"a": INT32}, name="R"), struct({"a": STRING}, name="R")),
    (JsonSchemaConverter, struct({"a": INT32}, name="R"), struct({"a": STRING}, name="R")),
    (ProtobufConverter, struct({"a": INT32}, name="R"), struct({"a": STRING}, name="R")),
]


@pytest.mark.parametrize(("kind", "first", "second"), CHANGES)
def test_an_incompatible_schema_is_an_error_of_the_record(
    kind: type[RegistryConverter], first: Schema, second: Schema, converter: Converters, name: str
) -> None:
    ours = converter(kind)
    ours.from_connect(name, first, {"a": 1})
    with pytest.raises(DataError, match="incompatible with an earlier schema"):
        ours.from_connect(name, second, {"a": "x"})
    assert ours.from_connect(name, first, {"a": 2}) is not None


@pytest.mark.parametrize("kind", EVERY)
def test_nothing_is_registered_when_that_is_not_allowed(
    kind: type[RegistryConverter], converter: Converters, name: str, theirs: Confluent
) -> None:
    strict = converter(kind, auto_register_schemas="false")
    with pytest.raises(DataError):
        strict.from_connect(name, ORDER, VALUE)
    assert f"{name}-value" not in theirs.get_subjects()

    data = converter(kind).from_connect(name, ORDER, VALUE)
    assert strict.from_connect(name, ORDER, VALUE) == data


@pytest.mark.parametrize("kind", EVERY)
def test_the_latest_schema_is_written_by_on_demand(
    kind: type[RegistryConverter], converter: Converters, name: str
) -> None:
    wide = struct({"a": OPTIONAL_STRING, "b": OPTIONAL_STRING}, name="R")
    registering = converter(kind)
    registering.from_connect(name, wide, {"a": "x"})
    ours = converter(kind, auto_register_schemas="false", use_latest_version="true")
    data = ours.from_connect(name, struct({"a": OPTIONAL_STRING}, name="R"), {"a": "y"})
    schema, value = ours.to_connect(name, data)

    assert schema is not None
    assert (value["a"], schema.version) == ("y", 1)


def test_schemas_that_refer_to_others_are_read(converter: Converters, name: str, theirs: Confluent) -> None:
    place = {"type": "record", "name": "Place", "namespace": "shop", "fields": [{"name": "x", "type": "int"}]}
    theirs.register_schema(f"{name}-place", TheirSchema(json.dumps(place), "AVRO"))
    order = {"type": "record", "name": "Order", "fields": [{"name": "place", "type": "shop.Place"}]}
    references = [SchemaReference("shop.Place", f"{name}-place", 1)]
    referring = TheirSchema(json.dumps(order), "AVRO", references)
    data = theirs.avro_serializer(referring)({"place": {"x": 5}}, context(name))
    schema, value = converter(AvroConverter).to_connect(name, data)

    assert value == {"place": {"x": 5}}
    assert schema is not None
    assert schema.by_name["place"].name == "shop.Place"


def test_protobuf_schemas_that_import_others_are_read(converter: Converters, name: str, theirs: Confluent) -> None:
    files = {
        "place.proto": 'syntax = "proto3"; package shop; message Place { int32 x = 1; }',
        "order.proto": 'syntax = "proto3"; package shop; import "place.proto"; message Order { Place place = 1; }',
    }
    order: Any = message_classes(files)["shop.Order"]
    data = theirs.protobuf_serializer(order)(order(place={"x": 5}), context(name))

    assert converter(ProtobufConverter).to_connect(name, data)[1] == {"place": {"x": 5}}


def test_values_without_a_schema_are_kept_by_avro(converter: Converters, name: str) -> None:
    ours = converter(AvroConverter)
    value = {"a": [1, 2.5, None, {"b": b"x"}], "c": True}

    assert ours.to_connect(name, ours.from_connect(name, None, value)) == (None, value)


def test_a_schema_that_a_header_names_is_found(converter: Converters, name: str) -> None:
    ours = converter(AvroConverter)
    data = ours.from_connect(name, ORDER, VALUE)
    assert data is not None
    header = ("__value_schema_id", data[:5])

    assert ours.to_connect(name, data[5:], [("other", None), header])[1] == VALUE
    assert ours.to_connect(name, data[5:], [header])[1] == VALUE
