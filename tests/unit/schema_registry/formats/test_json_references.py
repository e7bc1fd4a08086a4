import json
import time

import pytest

from schema_registry.formats.json_references import Node
from schema_registry.formats.json_schema import JsonSchema, parse
from schema_registry.formats.json_text import JsonObject
from schema_registry.formats.schema import InvalidSchema, ResolvedReference
from tests.support.json_documents import is_valid
from tests.support.patience import PATIENCE_S

_2019 = "https://json-schema.org/draft/2019-09/schema"
_2020 = "https://json-schema.org/draft/2020-12/schema"


def _reference(name: str, schema: Node) -> ResolvedReference:
    return ResolvedReference(name=name, subject=name, version=1, text=json.dumps(schema))


def _parse(schema: Node, *references: ResolvedReference) -> JsonSchema:
    return parse(json.dumps(schema), references)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#/properties/b/items"}, "b": {"items": {"type": "string"}}}},
        {"properties": {"a": {"$ref": "#x"}}, "definitions": {"x": {"$id": "#x", "type": "string"}}},
        {"properties": {"a": {"$ref": "#/definitions/a~1b%25"}}, "definitions": {"a/b%": {"type": "string"}}},
        {
            "$id": "http://host/root.json",
            "properties": {"a": {"$ref": "inner.json"}},
            "definitions": {"x": {"$id": "inner.json", "type": "string"}},
        },
        {
            "$schema": _2020,
            "properties": {"a": {"$ref": "#x"}},
            "$defs": {"any": {"$anchor": "x", "type": "string"}},
        },
        {
            "$schema": _2020,
            "properties": {"a": {"$dynamicRef": "#x"}},
            "$defs": {"any": {"$dynamicAnchor": "x", "type": "string"}},
        },
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://host/root.json",
            "properties": {"a": {"$ref": "root.json#/definitions/x"}},
            "definitions": {"x": {"type": "string"}},
        },
    ],
)
def test_a_reference_inside_the_document_is_followed_as_its_draft_says(schema: JsonObject) -> None:
    parsed = _parse(schema)

    targets = list(parsed.targets.values())
    assert [isinstance(target, dict) and target.get("type") for target in targets] == ["string"]
    assert is_valid(parsed, {"a": "text"})
    assert not is_valid(parsed, {"a": 1})


@pytest.mark.parametrize(
    ("root_id", "name", "ref"),
    [
        (None, "address.json", "address.json"),
        (None, "http://host/address.json", "http://host/address.json"),
        ("http://host/schemas/root.json", "address.json", "address.json"),
        ("http://host/schemas/root.json", "address.json", "http://host/schemas/address.json"),
        ("http://host/schemas/root.json", "http://host/schemas/address.json", "address.json"),
        (None, "address.json", "./address.json"),
        (None, "address.json", "address.json#/definitions/text"),
        (None, "urn:example:address", "urn:example:address"),
    ],
)
@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", _2020])
def test_a_registered_reference_is_found_by_its_name(root_id: str | None, name: str, ref: str, draft: str) -> None:
    address = {"type": "string", "definitions": {"text": {"type": "string"}}}
    schema: JsonObject = {"$schema": draft, "properties": {"a": {"$ref": ref}}}
    if root_id:
        schema["$id"] = root_id

    parsed = _parse(schema, _reference(name, address))

    assert is_valid(parsed, {"a": "text"})
    assert not is_valid(parsed, {"a": 1})


def test_references_of_references_are_found_by_their_names_whatever_their_own_id() -> None:
    street = _reference("street.json", {"type": "string"})
    address = _reference(
        "address.json", {"$id": "http://elsewhere/a.json", "properties": {"street": {"$ref": "street.json"}}}
    )

    parsed = _parse({"properties": {"address": {"$ref": "address.json"}}}, street, address)

    assert is_valid(parsed, {"address": {"street": "Elm"}})
    assert not is_valid(parsed, {"address": {"street": 1}})


def test_a_metaschema_is_known_without_being_registered() -> None:
    parsed = _parse({"properties": {"schema": {"$ref": "http://json-schema.org/draft-07/schema#"}}})

    assert is_valid(parsed, {"schema": {"type": "string"}})
    assert not is_valid(parsed, {"schema": {"type": "strange"}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "#/definitions/x"}, "#/$ref: #/definitions/x cannot be resolved"),
        ({"items": {"$ref": "other.json"}}, "#/items/$ref: other.json cannot be resolved"),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, "#/$ref: http://127.0.0.1:1/schema.json cannot be resolved"),
        ({"$ref": "file:///etc/hostname"}, "#/$ref: file:///etc/hostname cannot be resolved"),
        ({"$ref": "#anchor"}, "#/$ref: #anchor cannot be resolved"),
        ({"$ref": "http://["}, "#/$ref: http://[ cannot be resolved"),
        ({"$ref": "#/title", "title": "x"}, "#/$ref: #/title does not resolve to a schema"),
        ({"$ref": "#/required/x", "required": ["x"]}, "#/$ref: #/required/x cannot be resolved"),
        ({"$ref": "#/maxLength/x", "maxLength": 1}, "#/$ref: #/maxLength/x cannot be resolved"),
        (
            {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "strange"}}},
            "#/properties/a/$ref/type: expected the name of a type or an array of distinct ones",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(schema: JsonObject, message: str) -> None:
    with pytest.raises(InvalidSchema) as refusal:
        _parse(schema)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {
            "$ref": "#/definitions/a",
            "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        },
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"type": "string"}, {"not": {"$ref": "#"}}]},
        {"$schema": _2020, "type": "string", "$ref": "#"},
        {"$schema": _2019, "if": {"$recursiveRef": "#"}},
        {
            "$ref": "#/definitions/d0",
            "definitions": {f"d{i}": {"$ref": f"#/definitions/d{(i + 1) % 5_000}"} for i in range(5_000)},
        },
    ],
)
def test_references_that_go_round_without_looking_deeper_are_refused(schema: JsonObject) -> None:
    started = time.process_time()

    with pytest.raises(InvalidSchema, match="references form a loop"):
        _parse(schema)

    assert time.process_time() - started < PATIENCE_S


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"child": {"$ref": "#"}}},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
        {
            "$schema": _2020,
            "$ref": "#/$defs/node",
            "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}},
        },
        {"allOf": [{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/a"}], "definitions": {"a": {}}},
    ],
)
def test_references_that_go_round_deeper_into_the_value_are_fine(schema: JsonObject) -> None:
    assert is_valid(_parse(schema), {"child": {"child": {}}}) in {True, False}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ('{"type": "strange"}', "the reference 'other.json': #/type: expected the name of a type"),
        ("[]", "the reference 'other.json': a JSON Schema is an object, true or false"),
        ("{", "the reference 'other.json': not JSON"),
    ],
)
def test_a_broken_reference_is_named(reference: str, message: str) -> None:
    other = ResolvedReference(name="other.json", subject="other", version=1, text=reference)

    with pytest.raises(InvalidSchema, match=message):
        parse('{"$ref": "other.json"}', [other])


@pytest.mark.parametrize("key", ["x" * 100_000, "a/b~c"])
def test_where_a_fault_is_remains_readable(key: str) -> None:
    with pytest.raises(InvalidSchema) as refusal:
        _parse({"properties": {key: {"type": "strange"}}})

    assert str(refusal.value).startswith(f"#/properties/{key[:200]}")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#/definitions/a"}] * 9_000, "definitions": {"a": {}}},
        {"definitions": {f"d{i}": {"$ref": f"#/definitions/d{i + 1}"} for i in range(6_000)} | {"d6000": {}}},
        {"definitions": {f"d{i}": {"$id": f"http://host/{i}", "items": {"$ref": f"{i + 1}"}} for i in range(3_000)}
         | {"d3000": {"$id": "http://host/3000"}}},
    ],
)  # fmt: skip
def test_thousands_of_references_are_followed_in_no_time(schema: JsonObject) -> None:
    started = time.process_time()

    assert _parse(schema).targets

    assert time.process_time() - started < PATIENCE_S


def test_dependencies_on_names_and_on_schemas_may_be_mixed() -> None:
    schema = {"dependencies": {"a": {"$ref": "#/definitions/x"}, "b": ["a"]}, "definitions": {"x": {"required": ["c"]}}}

    parsed = _parse(schema)

    assert is_valid(parsed, {"a": 1, "b": 2, "c": 3})
    assert not is_valid(parsed, {"b": 2})
    assert not is_valid(parsed, {"a": 1})
