"""Schemas of columns: their texts, and what cannot be written."""

import json
from typing import Any

import pytest

from schema_registry.formats import avro, json_schema, protobuf
from streams.formats.errors import SchemaProblem
from streams.formats.layout import Layout
from streams.formats.schemas import columns_of, schema_of, type_of
from streams.model.sources import Column, Format, FormatName


def layout(format_: FormatName, *kinds: str, is_key: bool = False, **options: Any) -> Layout:
    columns = tuple(Column(name, kind) for name, kind in zip("ABCDEFGH", kinds, strict=False))
    return Layout(part="key" if is_key else "value", topic="t", format=Format(name=format_, **options), columns=columns)


def test_avro_records_have_the_names_that_ksqldb_gives_them() -> None:
    found = json.loads(
        schema_of(layout("AVRO", "INTEGER", "STRUCT<X ARRAY<STRUCT<Y MAP<STRING, STRUCT<Z DATE>>>>>")).text
    )
    assert (found["name"], found["namespace"]) == ("KsqlDataSourceSchema", "io.confluent.ksql.avro_schemas")
    assert found["fields"][0] == {"name": "A", "type": ["null", "int"], "default": None}
    names = []
    waiting: list[Any] = [found]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            names += [item["name"]] if item.get("type") == "record" else []
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    assert sorted(names) == [
        "KsqlDataSourceSchema",
        "KsqlDataSourceSchema_B",
        "KsqlDataSourceSchema_B_X",
        "KsqlDataSourceSchema_B_X_Y_MapValue",
    ]


def test_a_name_that_is_given_is_used() -> None:
    found = json.loads(schema_of(layout("AVRO", "DECIMAL(5, 2)", full_name="shop.Order")).text)
    assert (found["name"], found["namespace"]) == ("Order", "shop")
    assert found["fields"][0]["type"][1] == {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    text = schema_of(layout("PROTOBUF", "INTEGER", full_name="shop.Order")).text
    assert "package shop;" in text
    assert "message Order {" in text


def test_two_records_of_one_name_are_told_apart() -> None:
    kinds = "STRUCT<B STRUCT<C INTEGER>>", "INTEGER"
    columns = (Column("A", kinds[0]), Column("A_B", "STRUCT<D INTEGER>"))
    found = Layout(part="value", topic="t", format=Format(name="AVRO"), columns=columns)
    schema = avro.parse(schema_of(found).text)
    assert columns_of(schema, "value", found.format) == tuple(
        Column(column.name, str(column.sql_type)) for column in columns
    )


def test_names_that_protobuf_takes_for_one_are_refused() -> None:
    columns = (Column("ID1", "INTEGER"), Column("ID_1", "INTEGER"))
    found = Layout(part="value", topic="t", format=Format(name="PROTOBUF"), columns=columns)
    with pytest.raises(SchemaProblem, match="takes ID1 and ID_1 for one name"):
        schema_of(found)


def test_a_single_key_is_bare_and_several_are_a_record() -> None:
    assert schema_of(layout("AVRO", "INTEGER", is_key=True)).text == '"int"'
    assert json.loads(schema_of(layout("AVRO", "INTEGER", "STRING", is_key=True)).text)["type"] == "record"
    assert json.loads(schema_of(layout("JSON_SR", "STRING", is_key=True)).text) == {"type": "string"}
    assert "int32 A = 1;" in schema_of(layout("PROTOBUF", "INTEGER", is_key=True)).text


def test_a_single_value_is_bare_if_the_statement_says_so() -> None:
    assert schema_of(layout("AVRO", "BIGINT", wraps_single=False)).text == '"long"'
    assert json.loads(schema_of(layout("AVRO", "BIGINT")).text)["type"] == "record"


def test_nulls_in_protobuf_have_the_representation_that_is_asked_for() -> None:
    assert " int32 A = 1;" in schema_of(layout("PROTOBUF", "INTEGER")).text
    assert "optional int32 A = 1;" in schema_of(layout("PROTOBUF", "INTEGER", nullable_as="OPTIONAL")).text
    assert "google.protobuf.Int32Value A = 1;" in schema_of(layout("PROTOBUF", "INTEGER", nullable_as="WRAPPER")).text


@pytest.mark.parametrize(
    ("format_", "kind", "message"),
    [
        ("AVRO", "MAP<INTEGER, STRING>", "The keys of maps in Avro are STRING, not INTEGER"),
        ("JSON_SR", "MAP<INTEGER, STRING>", "The keys of maps in JSON are STRING, not INTEGER"),
        ("AVRO", "STRUCT<`a-b` INTEGER>", "Avro has no field called a-b"),
        ("PROTOBUF", "STRUCT<`a-b` INTEGER>", "Protobuf has no field called a-b"),
        ("PROTOBUF", "ARRAY<ARRAY<INTEGER>>", "an array of arrays or maps"),
        ("PROTOBUF", "MAP<STRING, ARRAY<INTEGER>>", "Protobuf cannot hold the field A"),
        ("PROTOBUF", "MAP<DOUBLE, INTEGER>", "Protobuf cannot hold the field A"),
        ("PROTOBUF", "MAP<STRING, DECIMAL(4, 2)>", "Protobuf cannot hold the field A"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(format_: FormatName, kind: str, message: str) -> None:
    with pytest.raises(SchemaProblem, match=message):
        schema_of(layout(format_, kind))


def test_connects_maps_and_unions_have_types() -> None:
    entries = {
        "type": "array",
        "items": {
            "type": "record",
            "name": "E",
            "fields": [{"name": "key", "type": ["null", "string"]}, {"name": "value", "type": "long"}],
            "connect.internal.type": "MapEntry",
        },
    }
    fields = [{"name": "m", "type": entries}, {"name": "u", "type": ["int", {"type": "map", "values": "bytes"}]}]
    schema = avro.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    assert (
        str(type_of(schema)) == "STRUCT<`m` MAP<STRING, BIGINT>, `u` STRUCT<`int` INTEGER, `map` MAP<STRING, BYTES>>>"
    )


def test_oneofs_enums_and_wrappers_have_types() -> None:
    text = """syntax = "proto3"; import "google/protobuf/wrappers.proto";
    message M { enum E { X = 0; } E e = 1; google.protobuf.StringValue s = 2; oneof o { int64 a = 3; float b = 4; }
    map<int32, M2> m = 5; message M2 { repeated bytes x = 1; } }"""
    assert str(type_of(protobuf.parse(text))) == (
        "STRUCT<`o_0` STRUCT<`a` BIGINT, `b` DOUBLE>, `e` STRING, `s` STRING, "
        "`m` MAP<INTEGER, STRUCT<`x` ARRAY<BYTES>>>>"
    )


def test_documents_of_others_have_types() -> None:
    properties = {
        "n": {"type": "number"},
        "i": {"type": ["integer", "null"]},
        "c": {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
        "e": {"enum": ["x", "y"]},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    schema = json_schema.parse(json.dumps({"type": "object", "properties": properties}))
    branch = "io.confluent.connect.json.OneOf.field."
    assert str(type_of(schema)) == (
        f"STRUCT<`n` DOUBLE, `i` BIGINT, `c` STRUCT<`{branch}0` STRING, `{branch}1` BOOLEAN>, `e` STRING, "
        "`m` MAP<STRING, BIGINT>>"
    )


@pytest.mark.parametrize("text", ['{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}', '"null"'])
def test_schemas_without_columns_are_refused(text: str) -> None:
    with pytest.raises(SchemaProblem, match="The schema has no columns"):
        type_of(avro.parse(text))
