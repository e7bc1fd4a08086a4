"""Protobuf schemas as Connect schemas and back, case by case as Confluent's ProtobufData has them."""

from textwrap import dedent
from typing import Any

import pytest

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
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
from connect.converters.protobuf.config import ProtobufConfig, entry_name, map_name
from connect.converters.protobuf.definitions import from_connect_schema
from connect.converters.protobuf.schemas import to_connect_schema
from connect.converters.protobuf.values import read_plan
from schema_registry.formats import protobuf
from schema_registry.serdes.errors import UnusableSchema

NAMESPACE = "io.confluent.connect.protobuf"
WRAPPERS = 'import "google/protobuf/wrappers.proto";'


def config(**options: str) -> ProtobufConfig:
    """Options, with underscores for dots."""
    given = {key.replace("_", "."): value for key, value in options.items()}
    return ProtobufConfig.parse({"schema.registry.url": "http://registry", **given})


def written(schema: Schema, **options: str) -> list[str]:
    """The lines of the file, without what is the same in all."""
    text = from_connect_schema(schema, config(**options)).text
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("syntax")]


def read(text: str, name: str | None = None, version: int | None = None, **options: str) -> Schema:
    schema = protobuf.parse(f'syntax = "proto3";{text}' if "syntax" not in text else text)
    message = schema.pool.FindMessageTypeByName(name or str(schema.name))
    return to_connect_schema(read_plan(message, config(**options)), config(**options), version=version)


def tagged(schema: Schema, tag: int, more: dict[str, str] | None = None) -> Schema:
    return schema.but(parameters={**schema.parameters, **(more or {}), f"{NAMESPACE}.Tag": str(tag)})


def optional(schema: Schema, tag: int = 1, more: dict[str, str] | None = None) -> Schema:
    return tagged(schema.as_optional(), tag, more)


FIELDS: list[tuple[str, Schema]] = [
    ("int32 f = 1;", optional(INT32)),
    ("int64 f = 1;", optional(INT64)),
    ("sint32 f = 1;", optional(INT32, 1, {f"{NAMESPACE}.Type": "sint32"})),
    ("sfixed32 f = 1;", optional(INT32, 1, {f"{NAMESPACE}.Type": "sfixed32"})),
    ("uint32 f = 1;", optional(INT64, 1, {f"{NAMESPACE}.Type": "uint32"})),
    ("fixed32 f = 1;", optional(INT64, 1, {f"{NAMESPACE}.Type": "fixed32"})),
    ("uint64 f = 1;", optional(INT64, 1, {f"{NAMESPACE}.Type": "uint64"})),
    ("sfixed64 f = 1;", optional(INT64, 1, {f"{NAMESPACE}.Type": "sfixed64"})),
    ("float f = 1;", optional(FLOAT32)),
    ("double f = 1;", optional(FLOAT64)),
    ("bool f = 1;", optional(BOOLEAN)),
    ("string f = 5;", optional(STRING, 5)),
    ("bytes f = 1;", optional(BYTES)),
    ("repeated string f = 1;", optional(array(OPTIONAL_STRING))),
    ("google.protobuf.Timestamp f = 1;", optional(TIMESTAMP)),
    ("google.type.Date f = 1;", optional(DATE)),
    ("google.type.TimeOfDay f = 1;", optional(TIME)),
    ("confluent.type.Decimal f = 1;", optional(decimal(0))),
    ("optional int32 f = 1;", optional(INT32)),
]
IMPORTS = (
    'import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; import "google/type/timeofday.proto";'
    'import "confluent/type/decimal.proto"; import "google/protobuf/wrappers.proto"; import "confluent/meta.proto";'
)


@pytest.mark.parametrize(("line", "schema"), FIELDS)
def test_a_field_is_read(line: str, schema: Schema) -> None:
    assert read(f"{IMPORTS} message M {{ {line} }}") == struct({"f": schema}, name="M")


@pytest.mark.parametrize(("line", "schema"), [item for item in FIELDS if "optional" not in item[0]])
def test_a_schema_that_was_read_is_written_as_it_was(line: str, schema: Schema) -> None:
    scale = ["params: [", "{", 'key: "scale",', 'value: "0"', "}", "]", "}];"]
    lines = written(struct({"f": schema}, name="M"))

    assert line in lines or lines[-len(scale) - 1 : -1] == scale


WRITTEN: list[tuple[Schema, list[str]]] = [
    (
        struct({"a": INT32, "b": OPTIONAL_STRING}, name="x.y.M"),
        ["package x.y;", "message M {", "int32 a = 1;", "string b = 2;", "}"],
    ),
    (struct({"a": BOOLEAN}), ["message ConnectDefault1 {", "bool a = 1;", "}"]),
    (
        struct({"a": struct({"x": INT64}, name="p.In"), "b": array(struct({"x": INT64}, name="p.In"))}, name="M"),
        ["message M {", "In a = 1;", "repeated In b = 2;", "message In {", "int64 x = 1;", "}", "}"],
    ),
    (
        struct({"in": struct({"x": INT64}, name="in")}, name="M"),
        ["message M {", "inMessage in = 1;", "message inMessage {", "int64 x = 1;", "}", "}"],
    ),
    (
        struct({"m": mapping(STRING, INT32).but(name="a_map")}, name="M"),
        [
            "message M {",
            "repeated AMapEntry m = 1;",
            "message AMapEntry {",
            "string key = 1;",
            "int32 value = 2;",
            "}",
            "}",
        ],
    ),
    (struct({"a": tagged(INT32, 2), "b": STRING}, name="M"), ["message M {", "int32 a = 2;", "string b = 1;", "}"]),
]


@pytest.mark.parametrize(("schema", "lines"), WRITTEN)
def test_a_connect_schema_is_written(schema: Schema, lines: list[str]) -> None:
    assert written(schema) == lines


NESTED = dedent(
    """
    syntax = "proto3";
    package p;
    message M {
      oneof user_id {
        string kafka_user_id = 1;
        int32 other_user_id = 2;
        Id another_id = 3;
      }
      Status status = 5;
      map<string, string> map_type = 7;
      Id id = 8;
      message Id { string id = 1; }
      enum Status { ACTIVE = 0; INACTIVE = 1; }
    }
    """
)
ID = struct({"id": optional(STRING)}, name="Id")
ENUM = {f"{NAMESPACE}.Enum": "Status", f"{NAMESPACE}.Enum.ACTIVE": "0", f"{NAMESPACE}.Enum.INACTIVE": "1"}
NESTED_SCHEMA = struct(
    {
        "user_id_0": struct(
            {
                "kafka_user_id": optional(STRING, 1),
                "other_user_id": optional(INT32, 2),
                "another_id": optional(ID, 3),
            },
            name=f"{NAMESPACE}.Union.user_id",
            optional=True,
        ),
        "status": optional(STRING.but(name="Status"), 5, ENUM),
        "map_type": optional(mapping(optional(STRING, 1), optional(STRING, 2)).but(name="map_type"), 7),
        "id": optional(ID, 8),
    },
    name="M",
)


def test_oneofs_enums_maps_and_messages_are_read() -> None:
    assert read(NESTED) == NESTED_SCHEMA


def test_oneofs_enums_maps_and_messages_are_written_and_read_the_same_again() -> None:
    text, name = from_connect_schema(NESTED_SCHEMA, config())
    assert read(text, name) == NESTED_SCHEMA


def test_full_names_are_kept_with_enhanced_support() -> None:
    schema = read(NESTED, enhanced_protobuf_schema_support="true")
    assert schema.name == "p.M"
    assert schema.by_name["id"].name == "p.M.Id"
    assert schema.by_name["status"].name == "p.M.Status"
    assert schema.by_name["user_id_0"].name == f"{NAMESPACE}.Union.p.M.user_id"
    assert schema.by_name["map_type"].name == "p.M.map_type"


def test_enums_can_be_numbers() -> None:
    status = read(NESTED, int_for_enums="true").by_name["status"]
    assert (status.type, status.parameters[f"{NAMESPACE}.Enum.INACTIVE"]) == (INT32.type, "1")


def test_oneofs_can_do_without_their_number() -> None:
    assert "user_id" in read(NESTED, generate_index_for_unions="false").by_name


def test_oneofs_can_be_flattened() -> None:
    names = list(read(NESTED, flatten_unions="true").by_name)
    assert names == ["kafka_user_id", "other_user_id", "another_id", "status", "map_type", "id"]


def test_generalized_unions_and_enums_are_told_by_common_parameters() -> None:
    schema = read(NESTED, generalized_sum_type_support="true")
    union = schema.by_name["user_id_0"]
    assert (union.name, union.parameters) == ("user_id", {"org.apache.kafka.connect.data.Union": "user_id"})
    assert schema.by_name["status"].parameters["org.apache.kafka.connect.data.Enum.INACTIVE"] == "1"
    text, name = from_connect_schema(schema, config(generalized_sum_type_support="true"))
    assert read(text, name, generalized_sum_type_support="true") == schema


def test_only_optional_fields_are_optional_when_the_keyword_stands_for_null() -> None:
    schema = read("message M { optional int32 a = 1; int32 b = 2; }", optional_for_nullables="true")
    assert [field.schema.optional for field in schema.fields] == [True, False]
    assert "optional int32 a = 1;" in written(schema, optional_for_nullables="true")
    assert "int32 b = 2;" in written(schema, optional_for_nullables="true")


def test_wrappers_stand_for_null_on_demand() -> None:
    schema = read(
        f"{WRAPPERS} message M {{ google.protobuf.StringValue a = 1; int32 b = 2; }}", wrapper_for_nullables="true"
    )
    assert schema == struct({"a": optional(STRING), "b": tagged(INT32, 2)}, name="M")
    lines = written(schema, wrapper_for_nullables="true")
    assert "google.protobuf.StringValue a = 1;" in lines
    assert "int32 b = 2;" in lines


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (INT8, "Int32Value"),
        (INT32, "Int32Value"),
        (INT64, "Int64Value"),
        (FLOAT32, "FloatValue"),
        (FLOAT64, "DoubleValue"),
        (BOOLEAN, "BoolValue"),
        (STRING, "StringValue"),
        (BYTES, "BytesValue"),
    ],
)
def test_a_plain_value_is_a_record_of_its_own(schema: Schema, message: str) -> None:
    text, name = from_connect_schema(schema, config())
    assert name == f"google.protobuf.{message}"
    assert read(text, name).type == (INT32.type if schema is INT8 else schema.type)


def test_small_integers_and_scales_are_told_by_options_of_fields() -> None:
    schema = struct(
        {"a": INT8, "b": INT16, "c": decimal(3).but(parameters={"scale": "3", "connect.decimal.precision": "9"})}
    )
    text, name = from_connect_schema(schema, config())
    a, b, c = (field.schema for field in read(text, name).fields)
    assert (a.type, b.type) == (INT8.type, INT16.type)
    assert (c.parameters["scale"], c.parameters["connect.decimal.precision"]) == ("3", "9")


def test_schemas_have_the_version_of_their_subject() -> None:
    assert read("message M { int32 a = 1; }", version=3).version == 3


def test_names_are_scrubbed_on_demand() -> None:
    schema = struct({"invalid field-name": STRING}, name="org.acme-corp.invalid record-name")
    assert (
        from_connect_schema(schema, config(scrub_invalid_names="true")).message == "org.acme_corp.invalid_record_name"
    )
    assert "string invalid_field_name = 1;" in written(schema, scrub_invalid_names="true")


@pytest.mark.parametrize(("name", "entry"), [("map_type", "MapTypeEntry"), ("a", "aEntry")])
def test_entries_of_maps_are_named_after_them(name: str, entry: str) -> None:
    assert entry_name(name) == entry
    assert map_name(entry) == name


WRONG: list[tuple[Any, str]] = [
    (array(STRING), "Unsupported root schema of type array"),
    (mapping(STRING, STRING), "Unsupported root schema of type map"),
    (struct({"a": array(array(STRING))}), "Array cannot be nested"),
    (struct({"a b": STRING}), "Protobuf does not allow the name 'a b'"),
    (struct({"a = 1; } message Evil {": STRING}), "Protobuf does not allow the name"),
    (struct({"a": STRING}, name="x; import"), "Protobuf does not allow the name"),
    (struct({"a": INT32.but(parameters={f"{NAMESPACE}.Type": "evil"})}), "Protobuf has no type evil"),
    (struct({"a": tagged(INT32, 1), "b": tagged(INT32, 1)}), "cannot be written as a Protobuf schema"),
    (
        struct({"a": struct({"x": INT32}, name="S"), "b": struct({"y": INT32}, name="S")}),
        "two types that are both called S",
    ),
]


@pytest.mark.parametrize(("schema", "problem"), WRONG)
def test_a_connect_schema_that_protobuf_cannot_express_is_refused(schema: Schema, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        from_connect_schema(schema, config())


def test_a_recursive_message_is_refused() -> None:
    with pytest.raises(UnusableSchema, match="the message M holds itself"):
        read("message M { M next = 1; }")
