"""JSON Schemas as Connect schemas and back, case by case as Confluent's JsonSchemaData has them."""

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
    Schema,
    array,
    decimal,
    mapping,
    struct,
)
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.json_schema.definitions import from_connect_schema
from connect.converters.json_schema.schemas import to_connect_schema
from connect.converters.json_schema.values import read_plan
from schema_registry.formats import json_schema
from schema_registry.serdes.errors import UnusableSchema

ONE_OF = "io.confluent.connect.json.OneOf"
ENUM = "io.confluent.connect.json.Enum"
NULL = {"type": "null"}


def config(**options: str) -> JsonSchemaConfig:
    """Options, with underscores for dots."""
    given = {key.replace("_", "."): value for key, value in options.items()}
    return JsonSchemaConfig.parse({"schema.registry.url": "http://registry", **given})


def written(schema: Schema, **options: str) -> Any:
    return json.loads(from_connect_schema(schema, config(**options)))


def read(definition: Any, version: int | None = None, **options: str) -> Schema:
    plan = read_plan(json_schema.parse(json.dumps(definition)), config(**options))
    return to_connect_schema(plan, config(**options), version=version)


def number(connect_type: str, index: int | None = None, **more: Any) -> dict[str, Any]:
    kind = "number" if connect_type.startswith("float") else "integer"
    place = {} if index is None else {"connect.index": index}
    return {"type": kind, "connect.type": connect_type, **more, **place}


def logical(definition: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    return {**definition, "title": f"org.apache.kafka.connect.data.{name}", "connect.version": 1, **more}


BOTH_WAYS: list[tuple[Schema, Any]] = [
    (BOOLEAN, {"type": "boolean"}),
    (INT8, number("int8")),
    (INT16, number("int16")),
    (INT32, number("int32")),
    (INT64, number("int64")),
    (FLOAT32, number("float32")),
    (FLOAT64, number("float64")),
    (STRING, {"type": "string"}),
    (BYTES, {"type": "string", "connect.type": "bytes"}),
    (OPTIONAL_STRING, {"oneOf": [NULL, {"type": "string"}]}),
    (OPTIONAL_INT32.but(default=5), {"oneOf": [NULL, number("int32", default=5)]}),
    (STRING.but(default="d", doc="about"), {"type": "string", "description": "about", "default": "d"}),
    (BYTES.but(default=b"foo"), {"type": "string", "connect.type": "bytes", "default": "Zm9v"}),
    (
        STRING.but(name="n", version=2, parameters={"a": "b"}),
        {"type": "string", "title": "n", "connect.version": 2, "connect.parameters": {"a": "b"}},
    ),
    (DATE, logical(number("int32"), "Date")),
    (TIME, logical(number("int32"), "Time")),
    (TIMESTAMP, logical(number("int64"), "Timestamp")),
    (DATE.but(default=dt.date(1970, 1, 5)), logical(number("int32"), "Date", default=4)),
    (
        decimal(2),
        logical({"type": "number", "connect.type": "bytes"}, "Decimal", **{"connect.parameters": {"scale": "2"}}),
    ),
    (array(STRING), {"type": "array", "items": {"type": "string"}}),
    (array(OPTIONAL_STRING), {"type": "array", "items": {"oneOf": [NULL, {"type": "string"}]}}),
    (
        mapping(STRING, INT32),
        {"type": "object", "additionalProperties": number("int32"), "connect.type": "map"},
    ),
    (
        mapping(INT32, STRING),
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"key": number("int32", 0), "value": {"type": "string", "connect.index": 1}},
            },
            "connect.type": "map",
        },
    ),
    (
        struct({"b": INT32, "a": OPTIONAL_STRING}, name="R"),
        {
            "type": "object",
            "properties": {
                "b": number("int32", 0),
                "a": {"oneOf": [NULL, {"type": "string"}], "connect.index": 1},
            },
            "title": "R",
        },
    ),
    (
        struct({"a": INT8}, name="R", optional=True),
        {"oneOf": [NULL, {"type": "object", "properties": {"a": number("int8", 0)}, "title": "R"}]},
    ),
    (
        struct({f"{ONE_OF}.field.0": OPTIONAL_INT32, f"{ONE_OF}.field.1": OPTIONAL_STRING}, name=ONE_OF),
        {"oneOf": [number("int32", 0), {"type": "string", "connect.index": 1}]},
    ),
    (
        struct({f"{ONE_OF}.field.0": OPTIONAL_INT32, f"{ONE_OF}.field.1": OPTIONAL_STRING}, name=ONE_OF, optional=True),
        {"oneOf": [NULL, number("int32", 0), {"type": "string", "connect.index": 1}]},
    ),
    (
        STRING.but(parameters={ENUM: "", f"{ENUM}.one": "one", f"{ENUM}.<NULL>": "<NULL>"}),
        {"enum": ["one", None]},
    ),
]


@pytest.mark.parametrize(("schema", "definition"), BOTH_WAYS)
def test_a_connect_schema_is_written_as_confluents_converter_writes_it(schema: Schema, definition: Any) -> None:
    assert written(schema) == definition


@pytest.mark.parametrize(("schema", "definition"), BOTH_WAYS)
def test_what_was_written_is_read_as_the_same_schema(schema: Schema, definition: Any) -> None:
    assert read(definition) == schema


def _one_of_text_and_boolean() -> Schema:
    return struct({f"{ONE_OF}.field.0": OPTIONAL_STRING, f"{ONE_OF}.field.1": BOOLEAN.as_optional()}, name=ONE_OF)


READ_ONLY: list[tuple[Any, Schema]] = [
    ({"type": "integer"}, INT64),
    ({"type": "number"}, FLOAT64),
    ({"type": "integer", "minimum": 3, "format": "int32"}, INT64),
    ({"minLength": 3}, STRING),
    ({"type": ["string"]}, STRING),
    ({"type": ["null", "string"]}, OPTIONAL_STRING),
    ({"type": ["integer", "null"], "title": "ignored"}, INT64.as_optional()),
    ({"anyOf": [{"type": "string"}, NULL]}, OPTIONAL_STRING),
    ({"oneOf": [{"type": "string"}]}, STRING),
    ({"type": "string", "format": "date-time"}, STRING),
    ({"type": "string", "const": "x"}, STRING),
    ({"type": "integer", "enum": [1, 2]}, INT64),
    (
        {"type": "string", "enum": ["a", "b"]},
        STRING.but(parameters={ENUM: "", f"{ENUM}.a": "a", f"{ENUM}.b": "b"}),
    ),
    (
        {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "boolean"}}},
        struct({"b": STRING, "a": BOOLEAN}),
    ),
    (
        {
            "properties": {
                "second": {"type": "string", "connect.index": 1},
                "first": {"type": "string", "connect.index": 0},
            }
        },
        struct({"first": STRING, "second": STRING}),
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "#/definitions/A"}},
            "definitions": {"A": {"type": "object", "title": "A", "properties": {"x": {"type": "integer"}}}},
        },
        struct({"a": struct({"x": INT64}, name="A"), "b": struct({"x": INT64}, name="A")}),
    ),
    (
        {
            "allOf": [
                {"$ref": "#/definitions/A"},
                {"type": "object", "properties": {"y": {"type": "string"}}},
            ],
            "definitions": {"A": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        },
        struct({"x": INT64, "y": STRING}),
    ),
    ({"allOf": [{"oneOf": [NULL, {"type": "string"}]}]}, OPTIONAL_STRING),
    (
        {"type": ["string", "integer", "null"]},
        struct({f"{ONE_OF}.field.0": OPTIONAL_STRING, f"{ONE_OF}.field.1": INT64.as_optional()}, name=ONE_OF).but(
            optional=True
        ),
    ),
    (
        {
            "allOf": [{"$ref": "#/definitions/A"}, {"$ref": "#/definitions/B"}],
            "title": "All",
            "type": "object",
            "properties": {"c": {"type": "string"}},
            "definitions": {
                "A": {"properties": {"a": {"type": "string"}}},
                "B": {"properties": {"b": {"type": "string"}}},
            },
        },
        struct({"a": STRING, "b": STRING, "c": STRING}, name="All"),
    ),
    (
        {
            "title": "Identifier",
            "type": "object",
            "anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "object", "properties": {"b": {"type": "string"}}},
            ],
        },
        struct(
            {
                f"{ONE_OF}.field.0": struct({"a": STRING}, optional=True),
                f"{ONE_OF}.field.1": struct({"b": STRING}, optional=True),
            },
            name=ONE_OF,
        ),
    ),
    ({"format": "int32", "type": ["null", "number"]}, FLOAT64.as_optional()),
    ({"oneOf": [{"type": "null", "title": "none"}, {"type": "string"}], "description": "d"}, OPTIONAL_STRING),
    ({"oneOf": [{"type": "string"}, {"type": "boolean"}], "enum": ["a"]}, _one_of_text_and_boolean()),
    ({"type": "integer", "default": "not one"}, INT64),
    ({"type": "integer", "default": None}, INT64),
]


@pytest.mark.parametrize(("definition", "schema"), READ_ONLY)
def test_json_schemas_of_others_are_read(definition: Any, schema: Schema) -> None:
    assert read(definition) == schema


def test_schemas_have_the_version_of_their_subject_unless_they_say_one() -> None:
    assert read({"type": "integer"}, 4) == INT64.but(version=4)
    assert read({"type": "integer", "connect.version": 2}, 4) == INT64.but(version=2)


def test_properties_that_are_not_required_can_be_optional() -> None:
    definition = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}
    assert read(definition) == struct({"a": STRING, "b": STRING})
    assert read(definition, use_optional_for_nonrequired="true") == struct({"a": OPTIONAL_STRING, "b": STRING})


ADDITIONAL = "__connect_additional_properties__"
ANYTHING = STRING.but(parameters={"io.confluent.connect.json.Text": "true"})


@pytest.mark.parametrize(
    ("others", "schema"),
    [(True, mapping(STRING, ANYTHING, optional=True)), (number("int32"), mapping(STRING, INT32, optional=True))],
)
def test_additional_properties_have_a_field_of_their_own_on_demand(others: Any, schema: Schema) -> None:
    definition = {
        "type": "object",
        "properties": {"a": {"type": "string", "connect.index": 0}},
        "additionalProperties": others,
    }
    found = read(definition, preserve_additional_properties="true")

    assert found == struct({"a": STRING, ADDITIONAL: schema})
    assert written(found, preserve_additional_properties="true") == definition
    assert read(definition) == struct({"a": STRING})


def test_a_property_that_is_called_like_that_field_is_refused() -> None:
    definition = {"type": "object", "properties": {ADDITIONAL: {"type": "string"}}}
    with pytest.raises(UnusableSchema, match="a property cannot be called"):
        read(definition, preserve_additional_properties="true")


def test_an_object_of_nothing_but_additional_properties_is_a_map() -> None:
    assert read({"type": "object", "additionalProperties": {"type": "string"}}) == mapping(STRING, STRING)


def test_additional_properties_can_be_refused() -> None:
    assert written(struct({"a": STRING}), object_additional_properties="false")["additionalProperties"] is False


def test_a_choice_of_one_schema_can_be_kept() -> None:
    schema = read({"oneOf": [{"type": "string"}]}, flatten_singleton_unions="false")
    assert schema == struct({f"{ONE_OF}.field.0": OPTIONAL_STRING}, name=ONE_OF)


def test_generalized_unions_number_their_branches() -> None:
    definition = {"oneOf": [{"type": "string", "connect.index": 0}, {"type": "boolean", "connect.index": 1}]}
    schema = read(definition, generalized_sum_type_support="true")
    assert (schema.name, list(schema.by_name)) == (
        "connect_union_0",
        ["connect_union_field_0", "connect_union_field_1"],
    )
    assert written(schema, generalized_sum_type_support="true") == definition


@pytest.mark.parametrize("decimal_format", ["BASE64", "NUMERIC"])
def test_a_default_of_a_decimal_is_kept_in_either_format(decimal_format: str) -> None:
    schema = decimal(2).but(default=Decimal("1.50"))
    assert read(written(schema, decimal_format=decimal_format)) == schema


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        (True, "Unsupported schema type"),
        ({}, "Unsupported schema type"),
        (NULL, "Unsupported schema type"),
        ({"type": "array"}, "Array schema did not specify the items type"),
        ({"type": "array", "items": [{"type": "string"}]}, "Array schema did not specify the items type"),
        ({"type": "integer", "connect.type": "int9"}, "Unsupported type int9"),
        ({"type": "object", "connect.type": "map"}, "must describe its values"),
        ({"type": "string", "connect.parameters": {"a": 1}}, "must be an object of texts"),
        ({"type": "object", "properties": {"bad": True}}, "bad: Unsupported schema type"),
        ({"type": "object", "properties": {"next": {"$ref": "#"}}}, "next: the JSON Schema is recursive"),
    ],
)
def test_json_schemas_that_connect_cannot_express_are_refused(definition: Any, problem: str) -> None:
    with pytest.raises(UnusableSchema, match=problem):
        read(definition)
