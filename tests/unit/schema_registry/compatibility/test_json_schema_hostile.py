"""Schemas made to keep the comparison busy: it ends within a second of work, with an answer."""

import json
import time

import pytest

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.json_findings import MAX_DIFFERENCES
from schema_registry.compatibility.json_schema import compare
from schema_registry.compatibility.policy import Policy
from schema_registry.formats.json_schema import parse
from schema_registry.formats.json_text import JsonObject
from tests.support.patience import PATIENCE_S


def _compared(old: JsonObject, new: JsonObject, policy: Policy = Policy.STRICT) -> list[Difference]:
    writer, reader = parse(json.dumps(old)), parse(json.dumps(new))
    started = time.process_time()
    differences = compare(reader, writer, policy)
    assert time.process_time() - started < PATIENCE_S
    return differences


def _is_compatible(old: JsonObject, new: JsonObject) -> bool:
    return all(difference.is_compatible for difference in _compared(old, new))


def _ref(name: str) -> JsonObject:
    return {"$ref": f"#/definitions/{name}"}


def _union_of_all(count: int, *, type_of_first: str = "string") -> JsonObject:
    """Kinds of products, each of which may hold any other."""

    def union() -> JsonObject:
        return {"oneOf": [_ref(f"kind{number}") for number in range(count)]}

    definitions: JsonObject = {
        f"kind{number}": {
            "type": "object",
            "properties": {
                "id": {"type": "string" if number else type_of_first},
                "kind": {"const": number},
                "part": union(),
                "other": union(),
            },
        }
        for number in range(count)
    }
    return {"type": "object", "properties": {"product": union()}, "definitions": definitions}


@pytest.mark.parametrize("count", [2, 12, 40])
def test_alternatives_that_hold_each_other_may_follow_themselves(count: int) -> None:
    assert _compared(_union_of_all(count), _union_of_all(count)) == []


@pytest.mark.parametrize("count", [2, 12, 40])
def test_a_change_deep_in_alternatives_that_hold_each_other_is_found(count: int) -> None:
    assert not _is_compatible(_union_of_all(count), _union_of_all(count, type_of_first="number"))


def _three_in_a_circle(first: str, second: str) -> JsonObject:
    def node(type_name: str, following: str) -> JsonObject:
        return {"type": "object", "properties": {"id": {"type": type_name}, "next": {"oneOf": [_ref(following)]}}}

    return {
        "type": "object",
        "properties": {"root": {"oneOf": [_ref("a"), _ref("b")]}},
        "definitions": {"a": node(first, "c"), "b": node(second, "c"), "c": node("integer", "a")},
    }


def test_a_pair_that_was_presumed_compatible_inside_itself_is_compared_again() -> None:
    assert _is_compatible(_three_in_a_circle("integer", "boolean"), _three_in_a_circle("integer", "boolean"))
    assert not _is_compatible(_three_in_a_circle("integer", "boolean"), _three_in_a_circle("boolean", "number"))


def test_recursive_schemas_may_widen() -> None:
    def tree(**limits: int) -> JsonObject:
        return {
            "type": "object",
            "properties": {"name": {"type": "string", **limits}, "children": {"type": "array", "items": {"$ref": "#"}}},
        }

    assert [found.type for found in _compared(tree(maxLength=3), tree(maxLength=4))] == ["MAX_LENGTH_INCREASED"]
    assert not _is_compatible(tree(maxLength=4), tree(maxLength=3))


def _bomb(shift: int, *, kinds: int = 30, places: int = 8) -> JsonObject:
    definitions: JsonObject = {
        f"d{kind}": {
            "type": "object",
            "properties": {
                f"p{place}": {"oneOf": [_ref(f"d{other}") for other in range(kinds)]} for place in range(places)
            },
            "required": [f"p{(kind + shift) % places}"],
        }
        for kind in range(kinds)
    }
    return {"$ref": "#/definitions/d0", "definitions": definitions}


@pytest.mark.parametrize("policy", [Policy.STRICT, Policy.LENIENT])
def test_a_comparison_that_takes_too_long_is_reported_as_too_complex(policy: Policy) -> None:
    (difference,) = _compared(_bomb(0), _bomb(1), policy)

    assert difference.type == "TOO_COMPLEX"
    assert not difference.is_compatible
    assert "too many alternatives and references" in difference.description


def test_thousands_of_alternatives_end_in_time() -> None:
    def schema(first: int) -> JsonObject:
        return {"anyOf": [{"type": "string", "minLength": first + number} for number in range(4_000)]}

    assert _compared(schema(0), schema(0)) == []
    assert not _is_compatible(schema(0), schema(5_000))


def test_differences_that_multiply_are_cut_but_never_without_an_incompatible_one() -> None:
    def doubling(leaf: JsonObject) -> JsonObject:
        definitions: JsonObject = {
            f"d{level}": {"properties": {"left": _ref(f"d{level + 1}"), "right": _ref(f"d{level + 1}")}}
            for level in range(60)
        }
        return {"$ref": "#/definitions/d0", "definitions": definitions | {"d60": leaf}}

    found_differences = _compared(
        doubling({"type": "string", "title": "a"}), doubling({"type": "string", "title": "b"})
    )
    assert len(found_differences) == MAX_DIFFERENCES
    assert all(difference.is_compatible for difference in found_differences)


def test_an_incompatible_difference_is_reported_even_after_a_thousand_others() -> None:
    def schema(title: str, last: str) -> JsonObject:
        return {"properties": {f"a{number}": {"title": title} for number in range(2_000)} | {"z": {"type": last}}}

    found_differences = _compared(schema("old", "string"), schema("new", "number"))

    assert len(found_differences) == MAX_DIFFERENCES + 1
    assert [difference.path for difference in found_differences if not difference.is_compatible] == ["#/properties/z"]


def test_a_long_chain_of_references_needs_no_stack() -> None:
    def chain(leaf: str) -> JsonObject:
        definitions: JsonObject = {
            f"d{number}": {"properties": {"next": _ref(f"d{number + 1}")}} for number in range(3_000)
        }
        return {"$ref": "#/definitions/d0", "definitions": definitions | {"d3000": {"type": leaf}}}

    assert _compared(chain("string"), chain("string")) == []
    assert not _is_compatible(chain("string"), chain("number"))


@pytest.mark.parametrize(("opening", "closing"), [('{"not":', "}"), ('{"allOf":[{},', "]}"), ('{"items":', "}")])
def test_deep_schemas_need_no_stack(opening: str, closing: str) -> None:
    levels = 48
    text = opening * levels + '{"type":"string"}' + closing * levels
    schema = parse(text)

    assert all(difference.is_compatible for difference in compare(parse(text), schema))


def test_many_patterns_and_long_names_end_in_time() -> None:
    patterns: JsonObject = {f"^(a+)+{number}$": {"type": "string"} for number in range(400)}
    old: JsonObject = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
    new = old | {"properties": {"a" * 1_000 + str(number): {} for number in range(300)}}

    assert not _is_compatible(old, new)


def test_paths_of_hostile_length_are_cut() -> None:
    def schema(leaf: str) -> JsonObject:
        return {"properties": {"k" * 100_000: {"properties": {f"p{n}": {"type": leaf} for n in range(900)}}}}

    assert max(len(difference.path) for difference in _compared(schema("string"), schema("number"))) < 300


def test_large_enums_are_compared_in_time() -> None:
    (difference,) = _compared({"enum": list(range(19_000))}, {"enum": [*range(19_000), "more"]})

    assert difference.type == "ENUM_ARRAY_EXTENDED"
