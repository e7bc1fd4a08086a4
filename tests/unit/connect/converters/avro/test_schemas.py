"""Avro schemas as Connect schemas and back, case by case as Confluent's AvroData has them."""

import datetime as dt
import json
from decimal import Decimal
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
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import DataError
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.definitions import ANYTHING, from_connect_schema
from connect.converters.avro.schemas import to_connect_schema
from schema_registry.formats import avro

NAMESPACE = "io.confluent.connect.avro"
INNER = struct({"v": INT64}, name="a.Inner")
INNER_AVRO = {
    "type": "record",
    "name": "Inner",
    "namespace": "a",
    "fields": [{"name": "v", "type": "long"}],
    "connect.name": "a.Inner",
}


def config(**options: str) -> AvroConfig:
    """Options, with underscores for dots."""
    given = {key.replace("_", "."): value for key, value in options.items()}
    return AvroConfig.parse({"schema.registry.url": "http://registry", **given})


def written(schema: Schema | None, **options: str) -> Any:
    return json.loads(from_connect_schema(schema, config(**options)))


def read(definition: Any, *, version: int | None = None, options: dict[str, str] | None = None) -> Schema | None:
    return to_connect_schema(avro.parse(json.dumps(definition)).root, config(**(options or {})), version=version)


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": f"org.apache.kafka.connect.data.{name}", **more}


BOTH_WAYS: list[tuple[Schema, Any]] = [
    (BOOLEAN, "boolean"),
    (INT8, {"type": "int", "connect.type": "int8"}),
    (INT16, {"type": "int", "connect.type": "int16"}),
    (INT32, "int"),
    (INT64, "long"),
    (FLOAT32, "float"),
    (FLOAT64, "double"),
    (STRING, "string"),
    (BYTES, "bytes"),
    (OPTIONAL_STRING, ["null", "string"]),
    (OPTIONAL_INT32.but(default=5), [{"type": "int", "connect.default": 5}, "null"]),
    (INT32.but(default=5), {"type": "int", "connect.default": 5}),
    (STRING.but(doc="d"), {"type": "string", "connect.doc": "d"}),
    (STRING.but(version=3, name="n"), {"type": "string", "connect.version": 3, "connect.name": "n"}),
    (STRING.but(parameters={"a": "b"}), {"type": "string", "connect.parameters": {"a": "b"}}),
    (DATE, named("int", "Date", logicalType="date")),
    (TIME, named("int", "Time", logicalType="time-millis")),
    (TIMESTAMP, named("long", "Timestamp", logicalType="timestamp-millis")),
    (DATE.but(default=dt.date(1970, 4, 11)), named("int", "Date", logicalType="date", **{"connect.default": 100})),
    (
        decimal(2),
        named(
            "bytes", "Decimal", scale=2, precision=64, logicalType="decimal", **{"connect.parameters": {"scale": "2"}}
        ),
    ),
    (
        decimal(2).but(parameters={"scale": "2", "connect.decimal.precision": "7"}, default=Decimal("1.25")),
        named(
            "bytes",
            "Decimal",
            scale=2,
            precision=7,
            logicalType="decimal",
            **{
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "7"},
                "connect.default": "}",
            },
        ),
    ),
    (array(STRING), {"type": "array", "items": "string"}),
    (array(OPTIONAL_STRING, optional=True), ["null", {"type": "array", "items": ["null", "string"]}]),
    (array(STRING).but(default=["a"]), {"type": "array", "items": "string", "connect.default": ["a"]}),
    (mapping(STRING, INT32), {"type": "map", "values": "int"}),
    (
        mapping(INT32, STRING),
        {
            "type": "array",
            "items": record(
                {"name": "key", "type": "int"},
                {"name": "value", "type": "string"},
                name="MapEntry",
                namespace=NAMESPACE,
            ),
        },
    ),
    (
        mapping(OPTIONAL_STRING, STRING).but(name="a.B"),
        {
            "type": "array",
            "items": record(
                {"name": "key", "type": ["null", "string"], "default": None},
                {"name": "value", "type": "string"},
                name="B",
                namespace="a",
                **{"connect.internal.type": "MapEntry"},
            ),
            "connect.name": "a.B",
        },
    ),
    (INNER, INNER_AVRO),
    (INNER.as_optional(), ["null", INNER_AVRO]),
    (
        struct({"a": INT32}),
        record({"name": "a", "type": "int"}, name="ConnectDefault", namespace=NAMESPACE),
    ),
    (
        struct({"a": OPTIONAL_INT32, "b": INT32.but(default=2), "c": BYTES.but(default=b"\xff")}, name="R"),
        record(
            {"name": "a", "type": ["null", "int"], "default": None},
            {"name": "b", "type": {"type": "int", "connect.default": 2}, "default": 2},
            {"name": "c", "type": {"type": "bytes", "connect.default": "\xff"}, "default": "\xff"},
            **{"connect.name": "R"},
        ),
    ),
    (
        struct(
            {"a": array(OPTIONAL_STRING).but(default=["x"]), "b": mapping(INT32, INT32).but(default={1: 2})}, name="R"
        ),
        record(
            {
                "name": "a",
                "type": {"type": "array", "items": ["null", "string"], "connect.default": ["x"]},
            },
            {
                "name": "b",
                "type": {
                    "type": "array",
                    "items": record(
                        {"name": "key", "type": "int"},
                        {"name": "value", "type": "int"},
                        name="MapEntry",
                        namespace=NAMESPACE,
                    ),
                    "connect.default": [[1, 2]],
                },
            },
            **{"connect.name": "R"},
        ),
    ),
    (
        struct({"a": INNER, "b": INNER.as_optional(), "c": array(INNER)}, name="a.R"),
        record(
            {"name": "a", "type": INNER_AVRO},
            {"name": "b", "type": ["null", "a.Inner"], "default": None},
            {"name": "c", "type": {"type": "array", "items": "a.Inner"}},
            namespace="a",
            **{"connect.name": "a.R"},
        ),
    ),
    (
        struct({"int": OPTIONAL_INT32, "string": OPTIONAL_STRING}, name=f"{NAMESPACE}.Union"),
        ["int", "string"],
    ),
    (
        struct({"int": OPTIONAL_INT32, "Inner": INNER.as_optional()}, name=f"{NAMESPACE}.Union", optional=True),
        ["null", "int", INNER_AVRO],
    ),
    (
        Schema(Type.BYTES, name="a.F", parameters={"connect.fixed.size": "4"}),
        {
            "type": "fixed",
            "name": "F",
            "namespace": "a",
            "size": 4,
            "connect.parameters": {"connect.fixed.size": "4"},
            "connect.name": "a.F",
        },
    ),
]


@pytest.mark.parametrize(("schema", "definition"), BOTH_WAYS)
def test_a_connect_schema_is_written_as_confluents_converter_writes_it(schema: Schema, definition: Any) -> None:
    assert written(schema) == definition


@pytest.mark.parametrize(("schema", "definition"), BOTH_WAYS)
def test_what_was_written_is_read_as_the_same_schema(schema: Schema, definition: Any) -> None:
    assert read(definition) == schema


def enum_schema(**more: str) -> Schema:
    parameters = {**more, f"{NAMESPACE}.Enum": "a.E", f"{NAMESPACE}.Enum.X": "X", f"{NAMESPACE}.Enum.Y": "Y"}
    return STRING.but(name="a.E", parameters=parameters)


ENUM_AVRO = {"type": "enum", "name": "E", "namespace": "a", "symbols": ["X", "Y"]}

READ_ONLY: list[tuple[Any, Schema]] = [
    ({"type": "string", "logicalType": "uuid"}, STRING),
    ({"type": "long", "logicalType": "timestamp-micros"}, INT64),
    ({"type": "int", "logicalType": "unknown"}, INT32),
    ({"type": "bytes", "logicalType": "decimal", "precision": 64}, decimal(0)),
    (["string"], STRING),
    (["string", "null"], OPTIONAL_STRING),
    (ENUM_AVRO, enum_schema()),
    (
        {**ENUM_AVRO, "doc": "d", "default": "Y"},
        enum_schema(**{f"{NAMESPACE}.enum.doc.E": "d", f"{NAMESPACE}.enum.default.E": "Y"}),
    ),
    (
        record({"name": "a", "type": "int", "default": 3, "doc": "f"}, doc="r"),
        Schema(
            Type.STRUCT,
            name="R",
            fields=(Field("a", INT32.but(default=3, parameters={f"{NAMESPACE}.field.default": "true"})),),
            parameters={f"{NAMESPACE}.record.doc": "r", f"{NAMESPACE}.field.doc.a": "f"},
        ),
    ),
    (record({"name": "a", "type": ["null", "int"], "default": None}), struct({"a": OPTIONAL_INT32}, name="R")),
    (record({"name": "a", "type": ["int", "null"], "default": 3}), struct({"a": OPTIONAL_INT32}, name="R")),
    ({"type": "string", "avro.java.string": "String"}, STRING.but(parameters={"avro.java.string": "String"})),
]


@pytest.mark.parametrize(("definition", "schema"), READ_ONLY)
def test_avro_schemas_of_others_are_read(definition: Any, schema: Schema) -> None:
    assert read(definition) == schema


def test_schemas_have_the_version_of_their_subject_unless_they_say_one() -> None:
    assert read(record({"name": "a", "type": "int"}), version=4) == struct({"a": INT32}, name="R").but(version=4)
    assert read({"type": "int", "connect.version": 2}, version=4) == INT32.but(version=2)


def test_data_without_a_schema_has_a_schema_of_its_own() -> None:
    assert written(None) == ANYTHING
    assert read(ANYTHING) is None


@pytest.mark.parametrize("option", ["enhanced_avro_schema_support", "generalized_sum_type_support"])
def test_enums_are_enums_again_only_with_enhanced_support(option: str) -> None:
    schema = read(ENUM_AVRO, options={option: "true"})
    definition = written(schema, **{option: "true"})
    assert {key: definition[key] for key in ENUM_AVRO} == ENUM_AVRO
    assert written(enum_schema())["type"] == "string"


def test_enhanced_support_tells_branches_by_full_names() -> None:
    schema = read(["int", INNER_AVRO], options={"enhanced_avro_schema_support": "true"})
    assert schema is not None
    assert list(schema.by_name) == ["int", "a.Inner"]


def test_generalized_unions_number_their_branches() -> None:
    schema = read(["null", "int", "string"], options={"generalized_sum_type_support": "true"})
    assert schema is not None
    assert (schema.name, list(schema.by_name)) == (
        "connect_union_0",
        ["connect_union_field_1", "connect_union_field_2"],
    )
    assert written(schema, generalized_sum_type_support="true") == ["null", "int", "string"]


def test_metadata_is_left_out_on_demand() -> None:
    schema = struct({"a": INT8.but(doc="d"), "b": DATE}, name="a.R")
    assert written(schema, connect_meta_data="false") == record(
        {"name": "a", "type": "int"}, {"name": "b", "type": {"type": "int", "logicalType": "date"}}, namespace="a"
    )


def test_a_union_of_one_type_can_be_kept() -> None:
    schema = read(["string"], options={"flatten_singleton_unions": "false"})
    assert schema == struct({"string": OPTIONAL_STRING}, name=f"{NAMESPACE}.Union")


def test_optional_text_keys_can_be_allowed_for_maps() -> None:
    assert written(mapping(OPTIONAL_STRING, INT32), allow_optional_map_keys="true") == {"type": "map", "values": "int"}


def test_names_are_scrubbed_on_demand() -> None:
    schema = struct({"invalid field-name": BOOLEAN}, name="org.acme-corp.invalid record-name")
    definition = written(schema, scrub_invalid_names="true")
    assert (definition["namespace"], definition["name"]) == ("org.acme_corp", "invalid_record_name")
    assert definition["fields"][0]["name"] == "invalid_field_name"
    with pytest.raises(DataError, match="cannot be written as an Avro schema"):
        written(schema)


def test_structs_without_a_name_are_numbered() -> None:
    schema = struct({"a": struct({"x": INT32}), "b": struct({"y": INT32}), "c": struct({"x": INT32})})
    first, second, third = [field["type"] for field in written(schema)["fields"]]
    assert (first["name"], second["name"], third) == (
        "ConnectDefault2",
        "ConnectDefault3",
        f"{NAMESPACE}.ConnectDefault2",
    )


def test_documentation_comes_from_fields_when_that_of_types_is_discarded() -> None:
    schema = read(record({"name": "a", "type": "int", "doc": "f"}), options={"discard_type_doc_default": "true"})
    assert schema == struct({"a": INT32.but(doc="f")}, name="R")
    assert written(schema, discard_type_doc_default="true")["fields"][0]["doc"] == "f"


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("null", "Standalone null schemas are not supported by this converter"),
        (record({"name": "next", "type": ["null", "R"]}), "the Avro schema is recursive: the record R holds itself"),
        ({"type": "int", "connect.type": "int9"}, "Connect type annotation for Avro int field"),
        ({"type": "int", "connect.parameters": "x"}, "Expected JSON object for schema parameters"),
        ({"type": "int", "connect.parameters": {"a": 1}}, "Expected schema parameter values to be strings"),
        ({"type": "int", "connect.version": "x"}, "Invalid Connect version"),
        (
            ["int", {"type": "fixed", "name": "a.F", "size": 1}, {"type": "fixed", "name": "b.F", "size": 1}],
            "Multiple union schemas map to the Connect union field name F",
        ),
        (
            {"type": "array", "items": record({"name": "key", "type": "int"}, name="MapEntry", namespace=NAMESPACE)},
            "Found map encoded as array of key-value pairs",
        ),
    ],
)
def test_avro_schemas_that_connect_cannot_express_are_refused(definition: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read(definition)


def test_two_structs_of_one_name_must_be_the_same() -> None:
    schema = struct({"a": struct({"x": INT32}, name="S"), "b": struct({"y": INT32}, name="S")})
    with pytest.raises(DataError, match="two types that are both called S"):
        written(schema)


def test_a_default_that_does_not_fit_is_left_out() -> None:
    assert read({"type": "int", "connect.default": "x"}) == INT32
