import json
from typing import Any

import pytest

from deploy.views.compatibility import Difference
from deploy.views.schema_diff import Change, compare, mark_breaking, text_diff
from deploy.views.schema_elements import Unreadable, elements
from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.schema import SchemaType


def avro(*fields: dict[str, Any], **more: Any) -> SchemaDefinition:
    return SchemaDefinition(json.dumps({"type": "record", "name": "shop.Order", "fields": fields, **more}))


def json_schema(**keywords: Any) -> SchemaDefinition:
    return SchemaDefinition(json.dumps({"type": "object", **keywords}), SchemaType.JSON)


def proto(body: str) -> SchemaDefinition:
    return SchemaDefinition(f'syntax = "proto3";\npackage shop;\n{body}', SchemaType.PROTOBUF)


def changes(old: SchemaDefinition, new: SchemaDefinition) -> list[Change]:
    return compare(elements(old), elements(new))


def outline(old: SchemaDefinition, new: SchemaDefinition) -> list[tuple[str, str, str, str | None, str | None]]:
    return [(item.change, item.kind, item.name, item.before, item.after) for item in changes(old, new)]


N = {"name": "n", "type": "int"}
M = {"name": "m", "type": ["null", "string"], "default": None}


@pytest.mark.parametrize(
    "old,new,expected",
    [
        (avro(N), avro(N), []),
        (avro(N), avro(N, doc="words"), []),
        (avro(N), avro(N, M), [("added", "field", "shop.Order.m", None, "null | string = null")]),
        (avro(N, M), avro(N), [("removed", "field", "shop.Order.m", "null | string = null", None)]),
        (avro(N), avro({**N, "type": "long"}), [("changed", "field", "shop.Order.n", "int", "long")]),
        (avro(N), avro({**N, "default": 1}), [("changed", "field", "shop.Order.n", "int", "int = 1")]),
        (
            avro(N),
            avro({**N, "type": {"type": "array", "items": {"type": "map", "values": "int"}}}),
            [("changed", "field", "shop.Order.n", "int", "array<map<int>>")],
        ),
        (
            avro({**N, "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}),
            avro({**N, "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}),
            [("changed", "field", "shop.Order.n", "bytes (decimal 9,2)", "bytes (decimal 12,2)")],
        ),
        (
            avro({**N, "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}}),
            avro({**N, "type": {"type": "enum", "name": "Kind", "symbols": ["A", "C"]}}),
            [("added", "symbol", "shop.Kind.C", None, ""), ("removed", "symbol", "shop.Kind.B", "", None)],
        ),
        (
            avro({**N, "type": {"type": "fixed", "name": "Key", "size": 8}}),
            avro({**N, "type": {"type": "fixed", "name": "Key", "size": 16}}),
            [("changed", "fixed", "shop.Key", "size 8", "size 16")],
        ),
        (
            avro({**N, "type": ["null", {"type": "record", "name": "Part", "fields": [N]}]}),
            avro({**N, "type": ["null", {"type": "record", "name": "Part", "fields": [N, M]}]}),
            [("added", "field", "shop.Part.m", None, "null | string = null")],
        ),
        (SchemaDefinition('"int"'), SchemaDefinition('"long"'), [("changed", "schema", "(root)", "int", "long")]),
    ],
)
def test_avro_changes_are_named(
    old: SchemaDefinition, new: SchemaDefinition, expected: list[tuple[str, str, str, str | None, str | None]]
) -> None:
    assert outline(old, new) == expected


@pytest.mark.parametrize(
    "old,new,expected",
    [
        (json_schema(), json_schema(title="words"), []),
        (
            json_schema(properties={"a": {"type": "string"}}),
            json_schema(properties={"a": {"type": "string", "maxLength": 9}, "b": True}, required=["a"]),
            [
                ("changed", "property", "a", "string", "string, maxLength 9, required"),
                ("added", "property", "b", None, "anything"),
            ],
        ),
        (
            json_schema(properties={"a": {"properties": {"b": {"type": ["string", "null"]}}}}),
            json_schema(properties={"a": {"properties": {}}}),
            [("removed", "property", "a.b", "string | null", None)],
        ),
        (
            json_schema(additionalProperties=False),
            json_schema(),
            [("changed", "schema", "(root)", "object, additionalProperties false", "object")],
        ),
        (
            json_schema(oneOf=[{"type": "string"}]),
            json_schema(oneOf=[{"type": "string"}, {"enum": [1, 2]}]),
            [("added", "schema", "(oneOf 1)", None, "any, enum [1,2]")],
        ),
        (
            json_schema(**{"$defs": {"x": {"type": "array", "items": {"type": "integer"}}}}),
            json_schema(**{"$defs": {"x": {"type": "array", "items": {"type": "number"}}}}),
            [("changed", "schema", "($defs x).(items)", "integer", "number")],
        ),
        (
            SchemaDefinition("true", SchemaType.JSON),
            SchemaDefinition("false", SchemaType.JSON),
            [("changed", "schema", "(root)", "anything", "nothing")],
        ),
    ],
)
def test_json_schema_changes_are_named(
    old: SchemaDefinition, new: SchemaDefinition, expected: list[tuple[str, str, str, str | None, str | None]]
) -> None:
    assert outline(old, new) == expected


@pytest.mark.parametrize(
    "old,new,expected",
    [
        (proto("message A { int32 n = 1; }"), proto("// words\nmessage A { int32 n = 1; }"), []),
        (
            proto("message A { int32 n = 1; }"),
            proto("message A { int32 n = 1; repeated string tags = 2; }"),
            [("added", "field", "A.tags", None, "repeated string = 2")],
        ),
        (
            proto("message A { int32 n = 1; }"),
            proto("message A { int32 count = 1; }"),
            [("changed", "field", "A.n → A.count", "int32 = 1", "int32 = 1")],
        ),
        (
            proto("message A { map<string, int32> m = 1; oneof o { string s = 2; } }"),
            proto("message A { map<string, int64> m = 1; optional string s = 2; message B {} }"),
            [
                ("changed", "field", "A.m", "map<string, int32> = 1", "map<string, int64> = 1"),
                ("changed", "field", "A.s", "string = 2 in oneof o", "optional string = 2"),
                ("added", "message", "A.B", None, ""),
            ],
        ),
        (
            proto("enum E { ZERO = 0; ONE = 1; }"),
            proto("enum E { ZERO = 0; } message A {} service S { rpc Get(A) returns (stream A); }"),
            [
                ("added", "message", "A", None, ""),
                ("added", "method", "S.Get", None, "(shop.A) → (stream shop.A)"),
                ("removed", "value", "E.ONE", "1", None),
            ],
        ),
    ],
)
def test_protobuf_changes_are_named(
    old: SchemaDefinition, new: SchemaDefinition, expected: list[tuple[str, str, str, str | None, str | None]]
) -> None:
    assert outline(old, new) == expected


def breaks(found: list[Change]) -> dict[str, tuple[str, ...]]:
    return {item.name: item.breaks for item in found}


def test_clash_marks_the_change_that_its_path_points_at() -> None:
    found = changes(avro(N), avro(M, {"name": "total", "type": "int"}, N))
    clash = Difference(words="", path="/fields/1")
    assert breaks(mark_breaking(found, [clash], "backward")) == {"shop.Order.m": (), "shop.Order.total": ("backward",)}


def test_path_of_a_forward_clash_is_the_old_schemas() -> None:
    found = changes(avro(M, N), avro(M, {**N, "type": "long"}, {"name": "x", "type": "int", "default": 0}))
    clash = Difference(words="", path="/fields/1/type")
    marks = breaks(mark_breaking(mark_breaking(found, [clash], "forward"), [], "backward"))
    assert marks == {"shop.Order.n": ("forward",), "shop.Order.x": ()}


def test_clash_below_a_change_marks_the_closest_one_above_it() -> None:
    old = json_schema(properties={"a": {"type": "object", "properties": {"b": {"type": "string"}}}})
    new = json_schema(properties={"a": {"minProperties": 1, "properties": {"b": {"type": "string", "pattern": "x"}}}})
    clash = Difference(words="", path="#/properties/a/properties/b/pattern")
    assert breaks(mark_breaking(changes(old, new), [clash], "full")) == {"a": (), "a.b": ("full",)}


def test_clash_without_a_path_marks_nothing() -> None:
    found = mark_breaking(changes(avro(N), avro(M)), [Difference(words="different schema type")], "backward")
    assert set(breaks(found).values()) == {()}


@pytest.mark.parametrize(
    "definition",
    [
        SchemaDefinition("{"),
        SchemaDefinition("[" * 100_000 + "]" * 100_000),
        SchemaDefinition('{"not":' * 50_000 + "{}" + "}" * 50_000, SchemaType.JSON),
        SchemaDefinition("message {", SchemaType.PROTOBUF),
    ],
    ids=["no-json", "deep-avro", "deep-json", "no-proto"],
)
def test_schema_that_cannot_be_taken_apart_is_outline(definition: SchemaDefinition) -> None:
    with pytest.raises(Unreadable):
        elements(definition)


@pytest.mark.parametrize(
    "text",
    ['{"type": "record"}', '{"type": "record", "name": 1, "fields": [1, {}]}', "[]", "{}", "3", "null", '{"type": []}'],
)
@pytest.mark.parametrize("schema_type", [SchemaType.AVRO, SchemaType.JSON])
def test_nonsense_is_shown_without_a_failure(text: str, schema_type: SchemaType) -> None:
    assert elements(SchemaDefinition(text, schema_type))


def test_text_diff_is_empty_for_equal_texts_and_names_both_sides_otherwise() -> None:
    assert text_diff("a\nb", "a\nb", old_name="x@1", new_name="x@2") == []
    lines = text_diff("a\nb", "a\nc", old_name="x@1", new_name="x@2")
    assert lines[:2] == ["--- x@1", "+++ x@2"]
    assert lines[-2:] == ["-b", "+c"]
