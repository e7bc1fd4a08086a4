"""The quick validator against the one that counts: both give the same verdict, but for what is listed here."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from schema_registry.formats import json_schema
from schema_registry.formats.json_drafts import Draft
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_text import JsonObject, JsonValue
from schema_registry.formats.schema import InvalidSchema, ResolvedReference
from schema_registry.serdes.json_compiled import compiled
from schema_registry.serdes.json_counted import counting_validator, steps

_NAMES = st.sampled_from(["a", "b", "ab", "é", "$ref", ""])
_TEXTS = st.sampled_from(["", "a", "ab", "abc", "b1", "é", "😀", "a\nb", "2024-01-01", "{", "x" * 9])
_NUMBERS = st.one_of(
    st.integers(-9, 9),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 3.0, -2.5, 1e20, 2**53, 2**53 + 1, 2**63, 2**64, -(2**64), 10**40]),
)
_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(_NAMES, part, max_size=4),
    max_leaves=6,
)
_PATTERNS = st.sampled_from(
    ["^a", "b$", "^(a|b)+$", "^.$", r"\d", r"^\w+$", "[^a]", "^(?=a)", "(?<!a)b", r"^(.)\1", r"\p{L}", "(?i)A", "^$"]
)
_TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
_COUNTS = st.integers(0, 4)
_REFERENCES = st.sampled_from(
    ["#", "#/definitions/one", "#/definitions/two", "other.json", "other.json#/definitions/in"]
)
_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "type": _TYPES | st.lists(_TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(_VALUES, min_size=1, max_size=4, unique_by=json.dumps),
    "const": _VALUES,
    "multipleOf": st.integers(1, 7),
    "maximum": _NUMBERS,
    "minimum": _NUMBERS,
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _COUNTS),
    **dict.fromkeys(("maxContains", "minContains"), _COUNTS),
    "pattern": _PATTERNS,
    "format": st.sampled_from(["date", "email", "ipv4", "regex", "uri", "unknown"]),
    "contentEncoding": st.just("base64"),
    "contentMediaType": st.just("application/json"),
    "uniqueItems": st.booleans(),
    "required": st.lists(_NAMES, min_size=1, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(_NAMES, st.lists(_NAMES, max_size=2, unique=True), max_size=2),
    "$ref": _REFERENCES,
}


def _with_parts(part: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    several = st.lists(part, min_size=1, max_size=3)
    named = st.dictionaries(_NAMES, part, max_size=3)
    names = st.lists(_NAMES, min_size=1, max_size=2, unique=True)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
        **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), part),
        **dict.fromkeys(("additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties"), part),
        **dict.fromkeys(("properties", "dependentSchemas"), named),
        "dependencies": st.dictionaries(_NAMES, part | names, max_size=2),
        "patternProperties": st.dictionaries(_PATTERNS, part, max_size=2),
        "items": part | several,
    }
    chosen = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=3, unique=True)
    parts = chosen.flatmap(lambda keys: st.fixed_dictionaries({key: keywords[key] for key in keys}))
    return st.tuples(_LEAVES, parts).map(lambda both: both[0] | both[1])


_LEAVES = st.lists(st.sampled_from(sorted(_PLAIN)), max_size=2, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({key: _PLAIN[key] for key in keys})
)
_SCHEMAS = st.recursive(_LEAVES | _LEAVES | st.booleans(), _with_parts, max_leaves=5)
_DOCUMENTS = st.fixed_dictionaries({"definitions": st.fixed_dictionaries({"one": _LEAVES, "two": _SCHEMAS})}).flatmap(
    lambda base: _SCHEMAS.map(lambda schema: {**schema, **base} if isinstance(schema, dict) else schema)
)


def _parsed(document: Any, draft: Draft, other: object = True) -> JsonSchema:
    reference = ResolvedReference(name="other.json", subject="other", version=1, text=json.dumps(other))
    if isinstance(document, dict):
        document = {"$schema": draft.value, **document}
    return json_schema.parse(json.dumps(document), [reference])


def _slow_verdicts(schema: JsonSchema, values: list[JsonValue]) -> list[bool]:
    validator = counting_validator(schema)
    with steps(10_000):
        return [bool(validator.is_valid(value)) for value in values]


@pytest.mark.parametrize("draft", Draft)
@given(_DOCUMENTS, _LEAVES, st.lists(_VALUES, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_validators_agree(draft: Draft, document: Any, other: JsonObject, values: list[JsonValue]) -> None:
    assume(draft is not Draft.DRAFT_2019_09 or "unevaluated" not in json.dumps(document))
    try:
        schema = _parsed(document, draft, {**other, "definitions": {"in": {"type": "string"}}})
    except InvalidSchema:
        assume(False)
        raise
    quick = compiled(schema)
    assume(quick is not None)
    assert quick is not None
    assert [quick.is_valid(value) for value in values] == _slow_verdicts(schema, values)


@pytest.mark.parametrize(
    ("document", "value", "is_valid"),
    [
        pytest.param({"multipleOf": 0.1}, 0.3, True, id="decimals are meant as they are written, not as doubles"),
        pytest.param({"multipleOf": 0.01}, 19.99, True, id="decimals, too"),
        pytest.param({"multipleOf": 3}, 1e300, False, id="the double nearest to 10^300 is a multiple, 10^300 is not"),
        pytest.param({"multipleOf": 1.5}, 2**53, False, id="quotients are exact, not rounded to integers"),
        pytest.param({"const": 1e23}, 10**23, True, id="no double is 10^23: what was written is"),
        pytest.param({"pattern": r"^\s$"}, "\u00a0", True, id="ECMA's spaces are Unicode's, RE2's are ASCII"),
        pytest.param({"pattern": r"^\S$"}, "\u00a0", False, id="and so is what is no space"),
        pytest.param({"pattern": r"\bé"}, "é", True, id="words have letters of any alphabet; for ECMA and RE2 ASCII"),
    ],
)
def test_the_validators_are_known_to_disagree(document: JsonObject, value: JsonValue, is_valid: bool) -> None:
    schema = _parsed(document, Draft.DRAFT_7)
    quick = compiled(schema)
    assert quick is not None
    assert quick.is_valid(value) is is_valid
    assert _slow_verdicts(schema, [value]) == [not is_valid]


def test_jsonschema_takes_keywords_for_names_of_evaluated_properties_in_draft_2019_09() -> None:
    schema = _parsed({"unevaluatedProperties": False, "additionalProperties": {"maxLength": 4}}, Draft.DRAFT_2019_09)
    quick = compiled(schema)
    assert quick is not None
    assert quick.is_valid({"a": "text"})
    assert _slow_verdicts(schema, [{"a": "text"}]) == [False]


_TREE = {"properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}
_NULLABLE = {"anyOf": [{"type": "null"}, {"$ref": "#/definitions/one"}]}
_DIAMONDS = {f"d{n}": {"properties": {key: {"$ref": f"#/definitions/d{n + 1}"} for key in "abcd"}} for n in range(30)}


@pytest.mark.parametrize(
    "document",
    [
        True,
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?!x)", "format": "date"}}},
        {"properties": {"to": {"$ref": "other.json"}}},
        _TREE,
        {
            "type": ["object", "array"],
            "items": {"$ref": "#"},
            "properties": {"a": _TREE},
            "additionalProperties": {"$ref": "#"},
        },
        {"properties": dict.fromkeys("abc", _NULLABLE), "definitions": {"one": {"properties": {"a": _NULLABLE}}}},
        {"$ref": "#/definitions/d0", "definitions": {**_DIAMONDS, "d30": {"type": "string"}}},
        {"oneOf": [{"properties": {"kind": {"const": n}, "to": {"$ref": "other.json"}}} for n in range(100)]},
    ],
    ids=[
        "true",
        "plain",
        "reference",
        "recursive",
        "any value",
        "nullable",
        "many ways to different values",
        "alternatives",
    ],
)
def test_usual_schemas_are_checked_quickly(document: Any) -> None:
    assert compiled(_parsed(document, Draft.DRAFT_7, {"type": "object"})) is not None


def _doubling(keyword: str, inside: str | None = None) -> JsonObject:
    definitions: JsonObject = {"d30": {"type": "string"}}
    for n in range(30):
        way: JsonObject = {"$ref": f"#/definitions/d{n + 1}"}
        definitions[f"d{n}"] = {keyword: [{inside: way} if inside else way] * 2}
    return {"$ref": "#/definitions/d0", "definitions": definitions}


@pytest.mark.parametrize(
    "document",
    [
        *(_doubling(keyword) for keyword in ("allOf", "anyOf", "oneOf")),
        _doubling("allOf", "items"),
        {"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]},
        {"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
    ],
    ids=["allOf", "anyOf", "oneOf", "allOf and items", "recursive", "patterns", "items and contains"],
)
def test_schemas_whose_steps_multiply_are_left_to_the_validator_that_counts(document: JsonObject) -> None:
    assert compiled(_parsed(document, Draft.DRAFT_7)) is None


@pytest.mark.parametrize(
    "document",
    [
        {"properties": {"a": {"$ref": "other.json"}}},
        {"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}},
        {"pattern": r"a\Z(?=b)"},
    ],
    ids=["two drafts", "references that depend on the value", "a pattern of another dialect"],
)
def test_what_cannot_be_one_document_is_left_to_the_validator_that_counts(document: JsonObject) -> None:
    other = {"$schema": Draft.DRAFT_4.value, "maximum": 3, "exclusiveMaximum": True}
    assert compiled(_parsed(document, Draft.DRAFT_2019_09, other)) is None


@pytest.mark.parametrize("draft", [Draft.DRAFT_6, Draft.DRAFT_7, Draft.DRAFT_2019_09])
@pytest.mark.parametrize("items,valid", [(False, [[]]), (True, [[], [1], ["a"]]), ({"type": "string"}, [[], ["a"]])])
def test_additional_items_mean_nothing_beside_one_schema_for_all_items(
    draft: Draft, items: JsonValue, valid: list[JsonValue]
) -> None:
    schema = _parsed({"items": items, "additionalItems": False}, draft)
    values: list[JsonValue] = [[], [1], ["a"]]
    verdicts = _slow_verdicts(schema, values)
    assert [value for value, is_valid in zip(values, verdicts, strict=True) if is_valid] == valid
