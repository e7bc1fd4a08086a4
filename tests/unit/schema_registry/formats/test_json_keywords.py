"""The table of keywords gives the verdicts of the published metaschemas."""

import pytest
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError

from schema_registry.formats.json_drafts import Draft
from schema_registry.formats.json_keywords import keyword_faults, subschemas
from schema_registry.formats.json_patterns import SchemaPatterns
from schema_registry.formats.json_text import JsonObject, JsonValue

_METASCHEMA_CHECKERS = {
    Draft.DRAFT_4: Draft4Validator,
    Draft.DRAFT_6: Draft6Validator,
    Draft.DRAFT_7: Draft7Validator,
    Draft.DRAFT_2019_09: Draft201909Validator,
    Draft.DRAFT_2020_12: Draft202012Validator,
}
_VALUES: list[JsonValue] = [
    *(None, True, False, 0, 1, -1, 1.0, 0.5, -0.5, "", "a", "#a", "string", "a/b", "a#", "9a"),
    *([], ["a"], ["a", "a"], ["string"], ["string", "string"], ["string", "b"], [1], [1, 1], [True], [{}], [{}, True]),
    *([{}, {}], [None], {}, {"a": {}}, {"a": True}, {"a": 1}, {"a": "b"}, {"a": []}, {"a": ["b"]}, {"a": ["b", "b"]}),
    *({"a": [1]}, {"a": None}, [[]], {"a": [{}]}),
]
_KEYWORDS = (
    *("additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains", "default", "definitions"),
    *("dependencies", "dependentRequired", "dependentSchemas", "deprecated", "description", "else", "enum"),
    *("examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "items", "maxContains", "maxItems"),
    *("maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"),
    *("multipleOf", "not", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames"),
    *("readOnly", "required", "then", "title", "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"),
    *("writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "$anchor", "$comment", "$defs"),
    *("$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "unknown"),
)


def _is_accepted(schema: JsonObject, draft: Draft) -> bool:
    pending: list[JsonValue] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if any(True for _ in keyword_faults(node, draft, SchemaPatterns())):
                return False
            pending.extend(child for _, child in subschemas(node, draft))
    return True


def _is_accepted_by_metaschema(schema: JsonObject, draft: Draft) -> bool:
    try:
        _METASCHEMA_CHECKERS[draft].check_schema(schema)
    except SchemaError:
        return False
    return True


@pytest.mark.parametrize("keyword", _KEYWORDS)
@pytest.mark.parametrize("draft", Draft)
def test_a_keyword_takes_what_the_metaschema_lets_it_take(draft: Draft, keyword: str) -> None:
    for value in _VALUES:
        schema: JsonObject = {"$schema": draft.value, keyword: value}
        assert _is_accepted(schema, draft) == _is_accepted_by_metaschema(schema, draft), (keyword, value)


def test_a_pattern_must_be_a_regular_expression() -> None:
    faults = dict(keyword_faults({"pattern": "(", "patternProperties": {"[": {}}}, Draft.DRAFT_7, SchemaPatterns()))

    assert faults.keys() == {("pattern",), ("patternProperties", "[")}
    assert all(fault.startswith("not a valid regular expression: ") for fault in faults.values())


def test_a_limit_that_excludes_itself_needs_that_limit_in_draft_4() -> None:
    assert dict(keyword_faults({"exclusiveMaximum": True}, Draft.DRAFT_4, SchemaPatterns())) == {
        ("exclusiveMaximum",): "requires maximum"
    }
