import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats.json_drafts import Draft
from schema_registry.formats.json_schema import parse
from schema_registry.formats.json_text import JsonObject, JsonValue
from schema_registry.formats.schema import InvalidSchema, SchemaType
from tests.support.json_documents import is_valid
from tests.support.patience import PATIENCE_S

_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=10,
)
_SCHEMAS = st.fixed_dictionaries(
    {}, optional={"default": _VALUES, "const": _VALUES, "enum": st.lists(_VALUES, min_size=1), "title": st.text()}
)


@pytest.mark.parametrize(
    ("uri", "draft"),
    [
        (None, Draft.DRAFT_7),
        ("http://json-schema.org/draft-04/schema#", Draft.DRAFT_4),
        ("http://json-schema.org/draft-04/schema", Draft.DRAFT_4),
        ("http://json-schema.org/draft-06/schema#", Draft.DRAFT_6),
        ("https://json-schema.org/draft-07/schema#", Draft.DRAFT_7),
        ("https://json-schema.org/draft/2019-09/schema", Draft.DRAFT_2019_09),
        ("https://json-schema.org/draft/2020-12/schema", Draft.DRAFT_2020_12),
        ("http://json-schema.org/schema#", Draft.DRAFT_7),
        ("http://example.com/my-own-metaschema", Draft.DRAFT_7),
    ],
)
def test_the_draft_is_that_of_the_document_or_else_the_seventh(uri: str | None, draft: Draft) -> None:
    assert parse(json.dumps({"$schema": uri} if uri else {})).draft is draft


def test_the_canonical_text_keeps_order_and_numbers() -> None:
    schema = parse('{ "type": "number",\n "title": "Größe", "multipleOf": 0.10, "maximum": 1e2, "b": 1, "a": 2 }')

    assert schema.canonical == '{"type":"number","title":"Größe","multipleOf":0.10,"maximum":1E+2,"b":1,"a":2}'
    assert schema.normalized == '{"a":2,"b":1,"maximum":1E+2,"multipleOf":0.10,"title":"Größe","type":"number"}'
    assert schema.format("") == schema.format("resolved") == schema.canonical
    assert schema.schema_type is SchemaType.JSON


@pytest.mark.parametrize(
    ("text", "name"), [('{"title":"Order"}', "Order"), ("{}", None), ("true", None), ('{"$id":"x"}', None)]
)
def test_the_name_is_the_title(text: str, name: str | None) -> None:
    assert parse(text).name == name


@pytest.mark.parametrize(("text", "accepts"), [("true", True), ("false", False)])
def test_true_and_false_are_schemas(text: str, accepts: bool) -> None:
    schema = parse(text)

    assert schema.canonical == text
    assert is_valid(schema, {"any": 1}) is accepts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null", "a JSON Schema is an object, true or false"),
        ("[]", "a JSON Schema is an object, true or false"),
        ('"string"', "a JSON Schema is an object, true or false"),
        ("5", "a JSON Schema is an object, true or false"),
        (r'{"title":"\ud800"}', "contains an unpaired surrogate"),
        ('{"type":"strange"}', "#/type: expected the name of a type"),
        ('{"properties":{"a":{"items":[{"minLength":-1}]}}}', "#/properties/a/items/0/minLength: expected a non-neg"),
        ('{"$schema":"http://json-schema.org/draft-04/schema#","not":true}', "#/not: expected a schema"),
        ('{"properties":{"$$secret":{}}}', r"#/properties/\$\$secret: names of properties cannot start with"),
        ('{"type":"string","type":"number"}', "the key 'type' appears twice"),
        ('{"$id":5}', r"#/\$id: expected a string"),
        ('{"$ref":5}', r"#/\$ref: expected a string"),
        ('{"pattern":"("}', "#/pattern: not a valid regular expression"),
    ],
)
def test_an_invalid_schema_is_refused_with_place_and_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        parse(text)


@pytest.mark.parametrize("text", ['{"properties":{"$$secret":{}}}', '{"type":"string","type":"number"}'])
def test_schemas_that_are_not_new_need_not_follow_the_rules_for_new_ones(text: str) -> None:
    assert parse(text, strict=False).canonical


def test_names_with_a_meaning_elsewhere_are_plain_names_of_properties() -> None:
    document: JsonObject = {"properties": {"$ref": {"type": "string"}, "type": {"enum": ["a"]}, "$id": {}}}

    assert parse(json.dumps(document)).document == document


def test_patterns_are_matched_in_linear_time_when_documents_are_validated() -> None:
    schema = parse(
        '{"type":"object","patternProperties":{"^(a|a)*$":{"pattern":"^(a+)+$"}},"additionalProperties":false}'
    )
    text = "a" * 5_000
    started = time.process_time()

    assert is_valid(schema, {text: text})
    assert not is_valid(schema, {text: text + "!"})
    assert not is_valid(schema, {text + "!": text})
    assert time.process_time() - started < PATIENCE_S


@pytest.mark.parametrize("pattern", ["^(?=.{3})(?<first>a)", r"^(?<twin>a)\k<twin>", r"^(?!b)\p{L}a"])
def test_patterns_beyond_linear_time_are_still_matched_as_ecma_means_them(pattern: str) -> None:
    schema = parse(json.dumps({"pattern": pattern}))

    assert is_valid(schema, "aab")
    assert not is_valid(schema, "b")


@pytest.mark.parametrize(
    "text",
    [
        '{"not":' * 10_000 + "{}" + "}" * 10_000,
        json.dumps({"enum": list(range(100_000))}),
        json.dumps({"properties": {f"p{i}": {} for i in range(50_000)}}),
        '{"maximum":' + "9" * 100_000 + "}",
    ],
)
def test_hostile_texts_are_refused_in_no_time(text: str) -> None:
    started = time.process_time()

    with pytest.raises(InvalidSchema):
        parse(text)

    assert time.process_time() - started < PATIENCE_S


@pytest.mark.parametrize("draft", Draft)
def test_a_schema_at_the_limits_is_read_in_no_time(draft: Draft) -> None:
    text = json.dumps({"$schema": draft.value, "allOf": [{"type": "string"} for _ in range(9_000)]})
    started = time.process_time()

    assert parse(text).canonical

    assert time.process_time() - started < PATIENCE_S


@settings(max_examples=60, deadline=None)
@given(_SCHEMAS)
def test_the_canonical_text_is_read_back_as_itself(document: JsonObject) -> None:
    schema = parse(json.dumps(document))

    assert parse(schema.canonical).canonical == schema.canonical
    assert parse(schema.normalized).normalized == schema.normalized
    assert json.loads(schema.canonical) == document


@settings(max_examples=60, deadline=None)
@given(_SCHEMAS)
def test_the_normal_form_does_not_depend_on_the_order_of_keys(document: JsonObject) -> None:
    backwards = dict(reversed(document.items()))

    assert parse(json.dumps(backwards)).normalized == parse(json.dumps(document)).normalized
