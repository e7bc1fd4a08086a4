"""Every kind of difference between JSON Schemas, seen from both sides and under both policies."""

import json

import pytest

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.json_difference_types import compatible_types
from schema_registry.compatibility.json_schema import compare
from schema_registry.compatibility.policy import Policy
from schema_registry.formats.json_references import Node
from schema_registry.formats.json_schema import parse
from schema_registry.formats.schema import ResolvedReference

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_WHOLE = {"type": "integer"}
_FLAG = {"type": "boolean"}
_2020 = "https://json-schema.org/draft/2020-12/schema"


def _differences(old: Node, new: Node, policy: Policy = Policy.STRICT) -> list[Difference]:
    return compare(parse(json.dumps(new)), parse(json.dumps(old)), policy)


def _told(old: Node, new: Node) -> list[str]:
    return [f"{difference.type} {difference.path}" for difference in _differences(old, new)]


def _is_compatible(old: Node, new: Node, policy: Policy = Policy.STRICT) -> bool:
    return all(difference.is_compatible for difference in _differences(old, new, policy))


def _obj(*required: str, more: Node | None = None, **properties: Node) -> Node:
    schema: Node = {"type": "object", "properties": properties}
    assert isinstance(schema, dict)
    if required:
        schema["required"] = list(required)
    if more is not None:
        schema["additionalProperties"] = more
    return schema


def _arr(*listed: Node, **keywords: object) -> Node:
    return {"type": "array", **({"items": list(listed)} if listed else {}), **keywords}


# old, new, the differences reported forward from old to new, and back; a * marks incompatible ones.
_LIMITS = [
    ("string", "maxLength", "MAX_LENGTH"),
    ("number", "maximum", "MAXIMUM"),
    ("number", "exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
    ("object", "maxProperties", "MAX_PROPERTIES"),
    ("array", "maxItems", "MAX_ITEMS"),
]


@pytest.mark.parametrize(("type_name", "keyword", "kind"), _LIMITS)
def test_an_upper_limit_may_rise_and_vanish(type_name: str, keyword: str, kind: str) -> None:
    free, low, high = ({"type": type_name} | extra for extra in ({}, {keyword: 3}, {keyword: 5}))

    assert _told(low, high) == [f"{kind}_INCREASED #/{keyword}"]
    assert _told(high, low) == [f"{kind}_DECREASED #/{keyword}"]
    assert _told(free, low) == [f"{kind}_ADDED #/{keyword}"]
    assert _told(low, free) == [f"{kind}_REMOVED #/{keyword}"]
    assert _is_compatible(low, high)
    assert _is_compatible(low, free)
    assert not _is_compatible(high, low, Policy.LENIENT)
    assert not _is_compatible(free, low, Policy.LENIENT)


@pytest.mark.parametrize(("type_name", "keyword", "kind"), _LIMITS)
def test_a_lower_limit_may_fall_and_vanish(type_name: str, keyword: str, kind: str) -> None:
    keyword, kind = keyword.replace("max", "min").replace("Max", "Min"), kind.replace("MAX", "MIN")
    free, low, high = ({"type": type_name} | extra for extra in ({}, {keyword: 3}, {keyword: 5}))

    assert _told(high, low) == [f"{kind}_DECREASED #/{keyword}"]
    assert _told(low, high) == [f"{kind}_INCREASED #/{keyword}"]
    assert _told(free, low) == [f"{kind}_ADDED #/{keyword}"]
    assert _told(low, free) == [f"{kind}_REMOVED #/{keyword}"]
    assert _is_compatible(high, low)
    assert _is_compatible(low, free)
    assert not _is_compatible(low, high, Policy.LENIENT)
    assert not _is_compatible(free, low, Policy.LENIENT)


def _contains(**keywords: object) -> Node:
    return {"$schema": _2020, "type": "array", "contains": _TEXT, **keywords}


_CASES: list[tuple[Node, Node, str, str]] = [
    # annotations
    ({"$id": "http://a"}, {"$id": "http://b"}, "ID_CHANGED #/", "ID_CHANGED #/"),
    ({"title": "a"}, {}, "TITLE_CHANGED #/", "TITLE_CHANGED #/"),
    ({"description": "a"}, {"description": "b"}, "DESCRIPTION_CHANGED #/", "DESCRIPTION_CHANGED #/"),
    ({"default": 1}, {"default": 2}, "DEFAULT_CHANGED #/", "DEFAULT_CHANGED #/"),
    # types
    (_TEXT, {}, "", "*TYPE_CHANGED #/"),
    (_TEXT, True, "", "*TYPE_CHANGED #/"),
    (False, _TEXT, "", "*TYPE_CHANGED #/"),
    ({"not": {}}, {"not": True}, "NOT_TYPE_NARROWED #/not", "NOT_TYPE_NARROWED #/not"),
    ({"not": True}, False, "*TYPE_CHANGED #/", ""),
    (_TEXT, _FLAG, "*TYPE_CHANGED #/", "*TYPE_CHANGED #/"),
    ({"type": "null"}, _FLAG, "*TYPE_CHANGED #/", "*TYPE_CHANGED #/"),
    (_WHOLE, _NUMBER, "TYPE_EXTENDED #/", "*TYPE_NARROWED #/"),
    (_TEXT | {"connect.type": "bytes"}, _NUMBER | {"connect.type": "bytes"}, "", ""),
    # strings and numbers
    (_TEXT | {"pattern": "a"}, _TEXT, "PATTERN_REMOVED #/pattern", "*PATTERN_ADDED #/pattern"),
    (
        _TEXT | {"pattern": "a"},
        _TEXT | {"pattern": "b"},
        "*PATTERN_CHANGED #/pattern",
        "*PATTERN_CHANGED #/pattern",
    ),
    (_NUMBER | {"multipleOf": 2}, _NUMBER, "MULTIPLE_OF_REMOVED #/multipleOf", "*MULTIPLE_OF_ADDED #/multipleOf"),
    (
        _NUMBER | {"multipleOf": 0.3},
        _NUMBER | {"multipleOf": 0.1},
        "MULTIPLE_OF_REDUCED #/multipleOf",
        "*MULTIPLE_OF_EXPANDED #/multipleOf",
    ),
    (
        _NUMBER | {"multipleOf": 4},
        _NUMBER | {"multipleOf": 6},
        "*MULTIPLE_OF_CHANGED #/multipleOf",
        "*MULTIPLE_OF_CHANGED #/multipleOf",
    ),
    (_NUMBER | {"maximum": 1}, _NUMBER | {"maximum": 1.0}, "", ""),
    # enums and constants
    ({"enum": [1, "a"]}, {"enum": ["a", 1, {}]}, "ENUM_ARRAY_EXTENDED #/enum", "*ENUM_ARRAY_NARROWED #/enum"),
    ({"enum": [1]}, {"enum": [True]}, "*ENUM_ARRAY_CHANGED #/enum", "*ENUM_ARRAY_CHANGED #/enum"),
    ({"enum": [1, {"a": 1, "b": 2}]}, {"enum": [{"b": 2, "a": 1.0}, 1]}, "", ""),
    ({"const": "a"}, {"const": "b"}, "*ENUM_ARRAY_CHANGED #/const", "*ENUM_ARRAY_CHANGED #/const"),
    (
        _TEXT | {"enum": ["a"]},
        _TEXT | {"enum": ["a", "b"]},
        "ENUM_ARRAY_EXTENDED #/allOf/0/enum",
        "*COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
    ),
    # what objects require
    (
        _obj("a", a=_TEXT),
        _obj(a=_TEXT),
        "REQUIRED_ATTRIBUTE_REMOVED #/required/a",
        "*REQUIRED_ATTRIBUTE_ADDED #/required/a",
    ),
    (
        _obj(a=_TEXT | {"default": ""}),
        _obj("a", a=_TEXT | {"default": ""}),
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a",
        "REQUIRED_ATTRIBUTE_REMOVED #/required/a",
    ),
    # properties of open models
    (
        _obj(),
        _obj(a=_TEXT),
        "~OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(),
        _obj("a", a=_TEXT),
        "*REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(),
        _obj("a", a=_TEXT | {"default": ""}),
        "~REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(),
        _obj(a={}),
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a",
    ),
    # properties of closed models
    (
        _obj(more=False),
        _obj(a=_TEXT, more=False),
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        "~PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(more=False),
        _obj("a", a=_TEXT, more=False),
        "*REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        "~PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(more=False),
        _obj("a", a=_TEXT | {"default": ""}, more=False),
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        "~PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(a=False, more=False),
        _obj(more=False),
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
    ),
    # properties of partially open models
    (
        _obj(more=_TEXT),
        _obj(a=_TEXT, more=_TEXT),
        (
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; "
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"
        ),
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
    ),
    (
        _obj(more=_TEXT),
        _obj(a=_FLAG, more=_TEXT),
        (
            "*TYPE_CHANGED #/properties/a; ~PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a; "
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"
        ),
        "*TYPE_CHANGED #/properties/a; ~PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
    ),
    (
        {"patternProperties": {"^n": _WHOLE}, "additionalProperties": False},
        {"patternProperties": {"^n": _WHOLE}, "properties": {"n1": _NUMBER}, "additionalProperties": False},
        (
            "TYPE_EXTENDED #/properties/n1; PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/n1; "
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/n1"
        ),
        "*TYPE_NARROWED #/properties/n1; ~PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/n1",
    ),
    # other properties
    (
        _obj(more=False),
        _obj(),
        "ADDITIONAL_PROPERTIES_ADDED #/additionalProperties",
        "~ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties",
    ),
    (
        _obj(more=_TEXT),
        _obj(),
        "ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties",
        "~ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties",
    ),
    (
        _obj(more=_WHOLE),
        _obj(more=_NUMBER),
        "TYPE_EXTENDED #/additionalProperties",
        "*TYPE_NARROWED #/additionalProperties",
    ),
    (
        {"$schema": _2020, "type": "object", "unevaluatedProperties": False},
        {"$schema": _2020, "type": "object"},
        "UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties",
        "~UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties",
    ),
    (
        {"$schema": _2020, "type": "object", "unevaluatedProperties": _TEXT},
        {"$schema": _2020, "type": "object", "unevaluatedProperties": {}},
        "UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties",
        "~UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties",
    ),
    (
        {"$schema": _2020, "type": "object", "unevaluatedProperties": _WHOLE},
        {"$schema": _2020, "type": "object", "unevaluatedProperties": _NUMBER},
        "TYPE_EXTENDED #/unevaluatedProperties",
        "*TYPE_NARROWED #/unevaluatedProperties",
    ),
    # dependencies
    (
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {}},
        "DEPENDENCY_ARRAY_REMOVED #/dependencies/a",
        "*DEPENDENCY_ARRAY_ADDED #/dependencies/a",
    ),
    (
        {"dependencies": {"a": ["b", "c"]}},
        {"dependencies": {"a": ["c"]}},
        "DEPENDENCY_ARRAY_NARROWED #/dependencies/a",
        "*DEPENDENCY_ARRAY_EXTENDED #/dependencies/a",
    ),
    (
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"a": ["c"]}},
        "*DEPENDENCY_ARRAY_CHANGED #/dependencies/a",
        "*DEPENDENCY_ARRAY_CHANGED #/dependencies/a",
    ),
    (
        {"$schema": _2020, "dependentSchemas": {"a": _TEXT}},
        {"$schema": _2020, "dependentSchemas": {}},
        "DEPENDENCY_SCHEMA_REMOVED #/dependencies/a",
        "*DEPENDENCY_SCHEMA_ADDED #/dependencies/a",
    ),
    (
        {"$schema": _2020, "dependentRequired": {"a": ["b"]}},
        {"dependencies": {"a": ["b"]}},
        "",
        "",
    ),
    # arrays
    (_arr(items=_TEXT), _arr(), "SCHEMA_REMOVED #/items", "*SCHEMA_ADDED #/items"),
    (_arr(items=_WHOLE), _arr(items=_NUMBER), "TYPE_EXTENDED #/items", "*TYPE_NARROWED #/items"),
    (
        _arr(items=_TEXT),
        _arr(_TEXT),
        "SCHEMA_REMOVED #/items; *ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/0",
        "*SCHEMA_ADDED #/items; ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/0",
    ),
    (_arr(uniqueItems=True), _arr(), "UNIQUE_ITEMS_REMOVED #/uniqueItems", "*UNIQUE_ITEMS_ADDED #/uniqueItems"),
    (
        _arr(_TEXT),
        _arr(),
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/0",
        "*ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/0",
    ),
    (
        _arr(_TEXT),
        _arr(_TEXT, {}),
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1",
    ),
    (
        _arr(_TEXT, additionalItems=False),
        _arr(_TEXT, _FLAG, additionalItems=False),
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1",
        "*ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
    ),
    (
        _arr(_TEXT, False, additionalItems=False),
        _arr(_TEXT, additionalItems=False),
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1",
    ),
    (
        _arr(_TEXT, additionalItems=_FLAG),
        _arr(_TEXT, _FLAG, additionalItems=_FLAG),
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
    ),
    (
        _arr(_TEXT, additionalItems=_FLAG),
        _arr(_TEXT, _TEXT, additionalItems=_FLAG),
        "*TYPE_CHANGED #/items/1; *ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
        "*TYPE_CHANGED #/items/1; *ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
    ),
    (
        _arr(_TEXT, additionalItems=False),
        _arr(_TEXT),
        "ADDITIONAL_ITEMS_ADDED #/additionalItems",
        "*ADDITIONAL_ITEMS_REMOVED #/additionalItems",
    ),
    (
        _arr(_TEXT, additionalItems=_FLAG),
        _arr(_TEXT),
        "ADDITIONAL_ITEMS_EXTENDED #/additionalItems",
        "*ADDITIONAL_ITEMS_NARROWED #/additionalItems",
    ),
    (
        {"$schema": _2020, "type": "array", "unevaluatedItems": False},
        {"$schema": _2020, "type": "array", "unevaluatedItems": _TEXT},
        "UNEVALUATED_ITEMS_ADDED #/unevaluatedItems",
        "*UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems",
    ),
    (
        {"$schema": _2020, "type": "array", "unevaluatedItems": _TEXT},
        {"$schema": _2020, "type": "array"},
        "UNEVALUATED_ITEMS_EXTENDED #/unevaluatedItems",
        "*UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems",
    ),
    (
        {"$schema": _2020, "type": "array", "prefixItems": [_TEXT], "items": False},
        _arr(_TEXT, additionalItems=False),
        "",
        "",
    ),
    (_contains(), {"type": "array"}, "MIN_CONTAINS_REMOVED #/minContains", "*MIN_CONTAINS_ADDED #/minContains"),
    (
        _contains(minContains=3),
        _contains(minContains=2),
        "MIN_CONTAINS_DECREASED #/minContains",
        "*MIN_CONTAINS_INCREASED #/minContains",
    ),
    (_contains(maxContains=3), _contains(), "MAX_CONTAINS_REMOVED #/maxContains", "*MAX_CONTAINS_ADDED #/maxContains"),
    (
        _contains(maxContains=3),
        _contains(maxContains=4),
        "MAX_CONTAINS_INCREASED #/maxContains",
        "*MAX_CONTAINS_DECREASED #/maxContains",
    ),
    # combinations
    ({"oneOf": [_TEXT]}, {"oneOf": [_TEXT, _FLAG]}, "SUM_TYPE_EXTENDED #/", "*SUM_TYPE_NARROWED #/"),
    ({"allOf": [_TEXT, {"minLength": 1}]}, {"allOf": [_TEXT]}, "PRODUCT_TYPE_NARROWED #/", "*PRODUCT_TYPE_EXTENDED #/"),
    (_TEXT, {"anyOf": [_FLAG, _TEXT]}, "SUM_TYPE_EXTENDED #/", "*TYPE_CHANGED #/"),
    ({"allOf": [_TEXT, {"minLength": 1}]}, _TEXT, "PRODUCT_TYPE_NARROWED #/", "*TYPE_CHANGED #/"),
    (_TEXT, {"oneOf": [_TEXT]}, "", ""),
    (_TEXT, {"type": ["string", "null"]}, "SUM_TYPE_EXTENDED #/", "*TYPE_CHANGED #/"),
    ({"oneOf": [_TEXT, _FLAG]}, {"anyOf": [_TEXT, _FLAG]}, "COMBINED_TYPE_EXTENDED #/", "*COMBINED_TYPE_CHANGED #/"),
    ({"allOf": [_TEXT]}, {"oneOf": [_TEXT]}, "COMBINED_TYPE_EXTENDED #/", "COMBINED_TYPE_EXTENDED #/"),
    (
        {"oneOf": [_TEXT, _FLAG]},
        {"oneOf": [_FLAG, _NUMBER]},
        "*COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
        "*COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
    ),
    ({"not": _NUMBER}, {"not": _WHOLE}, "NOT_TYPE_NARROWED #/not", "*NOT_TYPE_EXTENDED #/not"),
]


def _split(text: str) -> list[tuple[str, str]]:
    """The differences, with their marks: * incompatible, ~ compatible only if lenient."""
    parts = text.split("; ") if text else []
    return [(part[0] if part[0] in "*~" else "", part.lstrip("*~")) for part in parts]


@pytest.mark.parametrize(("old", "new", "forth", "back"), _CASES)
def test_a_difference_is_reported_and_classified(old: Node, new: Node, forth: str, back: str) -> None:
    for before, after, text in ((old, new, forth), (new, old, back)):
        expected = _split(text)
        strict = _differences(before, after)
        lenient = _differences(before, after, Policy.LENIENT)

        assert [f"{found.type} {found.path}" for found in strict] == [text for _, text in expected]
        assert [found.is_compatible for found in strict] == [not mark for mark, _ in expected]
        assert [found.is_compatible for found in lenient] == [mark != "*" for mark, _ in expected]
        assert _differences(before, after, Policy.LOGICAL) == strict


def test_every_kind_of_a_policy_is_covered_by_a_case() -> None:
    covered = {part.split()[0] for case in _CASES for text in case[2:] for _, part in _split(text)}
    limits = {kind for _, _, kind in _LIMITS} | {kind.replace("MAX", "MIN") for _, _, kind in _LIMITS}

    missing = {kind for kind in compatible_types(Policy.LENIENT) - covered if kind.rpartition("_")[0] not in limits}
    assert not missing


@pytest.mark.parametrize(
    ("old", "new", "kind", "description"),
    [
        (
            _obj(a=_TEXT, more=False),
            _obj(more=False),
            "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
            (
                "The {reader} schema does not define the property or item at path '#/properties/a' of the {writer} "
                "schema and allows no others (closed content model). compatibilityPolicy LENIENT would allow this"
            ),
        ),
        (
            _obj(),
            _obj(a=_TEXT),
            "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
            (
                "The {reader} schema restricts a property or item at path '#/properties/a' that the {writer} schema "
                "does not define but allows (open content model). The {writer} schema allows any other property "
                "(additionalProperties is not false), so data may already have this property with values that the "
                "{reader} schema refuses. compatibilityPolicy LENIENT would allow this"
            ),
        ),
        (
            _TEXT,
            _NUMBER,
            "TYPE_CHANGED",
            "The {reader} schema refuses values at path '#/' that the type in the {writer} schema allows",
        ),
        (
            _TEXT,
            _TEXT | {"maxLength": 1},
            "MAX_LENGTH_ADDED",
            "The {reader} schema has a restriction at path '#/maxLength' that the {writer} schema does not have",
        ),
        (
            {"oneOf": [_TEXT, _FLAG]},
            {"oneOf": [_TEXT]},
            "SUM_TYPE_NARROWED",
            "The {reader} schema has fewer elements at path '#/' than the {writer} schema",
        ),
    ],
)
def test_a_description_says_what_differs_and_what_would_help(old: Node, new: Node, kind: str, description: str) -> None:
    (difference,) = _differences(old, new)

    assert (difference.type, difference.description) == (kind, description)


def test_a_schema_that_moves_into_a_definition_has_not_changed() -> None:
    inline = _obj(a=_arr(items=_TEXT))
    referring = {**_as_dict(_obj(a={"$ref": "#/definitions/list"})), "definitions": {"list": _arr(items=_TEXT)}}

    assert _told(inline, referring) == []
    assert _told(referring, inline) == []


def test_a_difference_in_a_definition_is_reported_wherever_it_is_used() -> None:
    def schema(inner: Node) -> Node:
        return {
            **_as_dict(_obj(a={"$ref": "#/definitions/x"}, b={"items": {"$ref": "#/definitions/x"}})),
            "definitions": {"x": inner},
        }

    assert _told(schema(_TEXT), schema(_FLAG)) == ["TYPE_CHANGED #/properties/a", "TYPE_CHANGED #/properties/b/items"]


def test_references_are_followed_into_other_documents() -> None:
    def other(schema: Node) -> list[ResolvedReference]:
        return [ResolvedReference(name="other.json", subject="other", version=1, text=json.dumps(schema))]

    text = '{"properties":{"a":{"$ref":"other.json"}}}'
    differences = compare(parse(text, other(_FLAG)), parse(text, other(_TEXT)))

    assert [(found.type, found.path) for found in differences] == [("TYPE_CHANGED", "#/properties/a")]


def test_keywords_beside_a_reference_count_since_2019() -> None:
    def schema(draft: str, limit: int) -> Node:
        return {"$schema": draft, "$ref": "#/$defs/text", "maxLength": limit, "$defs": {"text": _TEXT}}

    assert _is_compatible(schema(_2020, 5), schema(_2020, 6))
    assert not _is_compatible(schema(_2020, 6), schema(_2020, 5))
    assert _told(schema("http://json-schema.org/draft-07/schema#", 6), _TEXT) == []


def test_draft_4_has_a_flag_for_exclusive_limits() -> None:
    draft = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "maximum": 5}

    assert _told(draft, draft | {"exclusiveMaximum": True}) == ["EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"]
    assert _told(draft | {"exclusiveMaximum": True}, draft) == ["EXCLUSIVE_MAXIMUM_REMOVED #/exclusiveMaximum"]


@pytest.mark.parametrize("pattern", ["^(?=n)", r"(n)1\1?"])
def test_a_pattern_that_cannot_be_matched_safely_is_assumed_to_do_the_worse(pattern: str) -> None:
    patterns = {"type": "object", "patternProperties": {pattern: _TEXT}, "additionalProperties": False}
    with_property = patterns | {"properties": {"n1": _FLAG}}

    assert not _is_compatible(patterns, with_property)
    assert "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/n1" in _told(with_property, patterns)


def test_parts_are_paired_whatever_their_order_even_if_the_likeliest_partner_is_taken() -> None:
    old = {"oneOf": [_TEXT | {"maxLength": limit} for limit in (3, 2, 1)]}
    new = {"oneOf": [_TEXT | {"maxLength": limit} for limit in (2, 3, 4)]}

    assert _is_compatible(old, new)
    assert not _is_compatible(new, old)


def _as_dict(node: Node) -> dict[str, object]:
    assert isinstance(node, dict)
    return node
