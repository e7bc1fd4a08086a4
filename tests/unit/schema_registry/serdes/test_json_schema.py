import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats import json_schema
from schema_registry.formats.schema import ResolvedReference
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_schema import JsonCodec
from tests.support.patience import PATIENCE_S

ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ORDER: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "total": {"type": "number"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "to": {"$ref": "address.json"},
    },
    "required": ["id"],
    "additionalProperties": False,
}


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda part: st.lists(part) | st.dictionaries(TEXT, part),
    max_leaves=8,
)


def _codec(schema: object, **options: bool) -> JsonCodec:
    address = ResolvedReference(name="address.json", subject="address", version=1, text=json.dumps(ADDRESS))
    return JsonCodec(json_schema.parse(json.dumps(schema), [address]), **options)


order = _codec(ORDER)


@given(
    st.fixed_dictionaries(
        {"id": st.integers()},
        optional={
            "total": st.integers() | FLOATS,
            "tags": st.lists(st.sampled_from("ab")),
            "to": st.fixed_dictionaries({"city": TEXT}, optional={"zip": st.none() | TEXT}),
        },
    )
)
@settings(max_examples=40, deadline=None)
def test_documents_become_bytes_and_documents_again(document: Any) -> None:
    data = order.encode(document)
    assert order.decode(data) == document
    assert order.decode_json(b"frame" + order.encode_json(document), 5) == document
    assert json.loads(data) == document


@given(DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_whatever_json_can_say_is_kept(document: Any) -> None:
    codec = _codec(True)
    assert codec.decode(codec.encode(document)) == document


def test_documents_are_written_compactly_in_utf8() -> None:
    assert _codec(True).encode({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()


def test_large_integers_are_kept() -> None:
    codec = _codec({"type": "integer"})
    assert codec.decode(codec.encode(10**40)) == 10**40


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({}, "/: 'id' is a required property"),
        ({"id": "x"}, "/id: 'x' is not of type 'integer'"),
        ({"id": 1, "tags": ["a", "c"]}, "/tags/1: 'c' is not one of"),
        ({"id": 1, "to": {}}, "/to: 'city' is a required property"),
        ({"id": 1, "more": 2}, "unexpected"),
    ],
)
def test_documents_that_do_not_fit_are_refused_with_their_place(document: object, complaint: str) -> None:
    with pytest.raises(InvalidData) as refusal:
        order.encode(document)
    assert complaint in str(refusal.value)
    with pytest.raises(InvalidData):
        order.decode(json.dumps(document).encode())


def test_reading_may_trust_the_writer() -> None:
    assert _codec(ORDER, validates_reads=False).decode(b"{}") == {}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), b"bytes", object(), {1: {2: object()}}, "\ud800", {"a": {1, 2}}]
)
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(InvalidData, match="cannot be written as JSON"):
        _codec(True).encode(value)


@pytest.mark.parametrize("data", [b"", b"{", b"nul", b"\xff\xfe", b'{"a":1} x', b"NaN", b"[" * 100_000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidData, match="not JSON"):
        _codec(True).decode(data)


def test_values_that_nest_without_end_are_refused() -> None:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(InvalidData):
        _codec({"items": {"$ref": "#"}}).encode(value)


def test_deep_documents_of_recursive_schemas_are_checked_or_refused_not_fatal() -> None:
    codec = _codec({"type": "array", "items": {"$ref": "#"}})
    assert codec.decode(b"[" * 800 + b"]" * 800)
    with pytest.raises(InvalidData, match="too deep"):
        codec.decode(b"[" * 800 + b"1" + b"]" * 800)


@pytest.mark.parametrize("document", ["a" * 5_000 + "!", ["a" * 5_000 + "!"]], ids=["outside", "behind a reference"])
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?=a)(a+)+$", r"^(a|aa)+\1$", r"^(?<n>a|aa)+\k<n>$", r"(?i)^(A+)+$"])
def test_patterns_do_not_explode(document: object, pattern: str) -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    codec = _codec({"$schema": draft, "pattern": pattern, "items": {"$ref": "#"}})
    begun = time.monotonic()
    with pytest.raises(InvalidData):
        codec.encode(document)
    assert time.monotonic() - begun < PATIENCE_S


EXPLODING_IN_PLACE = {
    "definitions": {
        "d30": {"type": "string"},
        **{
            f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}, {"$ref": f"#/definitions/d{n + 1}"}]}
            for n in range(30)
        },
    },
    "allOf": [{"$ref": "#/definitions/d0"}],
}
EXPLODING_WITH_DEPTH = {"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}


@pytest.mark.parametrize(
    ("schema", "document"),
    [(EXPLODING_IN_PLACE, "x"), (EXPLODING_WITH_DEPTH, json.loads("[" * 40 + "]" * 40))],
    ids=["in place", "with depth"],
)
def test_references_do_not_explode(schema: dict[str, Any], document: object) -> None:
    codec = _codec({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
    begun = time.monotonic()
    with pytest.raises(InvalidData, match="takes too long"):
        codec.encode(document)
    assert time.monotonic() - begun < PATIENCE_S


def test_long_documents_may_follow_many_references() -> None:
    codec = _codec({"definitions": {"n": {"type": "integer"}}, "items": {"$ref": "#/definitions/n"}})
    numbers = list(range(12_000))
    assert codec.decode(codec.encode(numbers)) == numbers


def test_a_pattern_that_only_unbounded_engines_read_refuses_documents() -> None:
    with pytest.raises(InvalidData, match="a pattern that cannot be matched"):
        _codec({"pattern": "(a)(?(1)b|c)"}).encode("ab")


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"items": {"type": "string"}}, list(range(100_000))),
        ({"uniqueItems": True}, [{"a": n} for n in range(5_000)] + [{"a": 1}, None, "x"]),
        ({"items": {"pattern": r"(?:(a)|b|ab)*\1c"}}, ["ab" * 100] * 1_000),
        ({"multipleOf": 0.7}, 10**400),
    ],
    ids=["all wrong", "items compared with one another", "backtracking", "a number beyond doubles"],
)
def test_large_documents_are_refused_in_no_time(schema: dict[str, Any], document: object) -> None:
    codec = _codec(schema)
    begun = time.process_time()
    with pytest.raises(InvalidData) as refusal:
        codec.encode(document)
    assert time.process_time() - begun < PATIENCE_S
    assert len(str(refusal.value)) < 1_000


def test_a_refusal_tells_what_is_allowed_however_long_the_value() -> None:
    with pytest.raises(InvalidData) as refusal:
        _codec({"properties": {"a": {"maximum": 5}, "b": {"type": "integer"}}}).encode({"a": 1, "b": "x" * 10_000})
    assert str(refusal.value).startswith("the document does not fit its JSON Schema: /b: 'xxx")
    assert str(refusal.value).endswith("x… is not of type 'integer'")


@pytest.mark.parametrize("value", [{"id": 1, "tags": ("a", "b")}, {"id": True + 1}])
def test_what_is_checked_is_what_is_written(value: object) -> None:
    assert order.decode(order.encode(value)) == json.loads(json.dumps(value))


def test_keys_that_become_strings_are_checked_as_strings() -> None:
    with pytest.raises(InvalidData, match="/1: 'x' is not of type 'integer'"):
        _codec({"properties": {"1": {"type": "integer"}}}).encode({1: "x"})


def test_formats_and_encodings_of_contents_are_not_asserted_as_confluent_does_not() -> None:
    document = {"format": "date", "contentEncoding": "base64", "contentMediaType": "application/json"}
    assert _codec(document).encode("neither") == b'"neither"'


def test_schemas_that_the_library_stumbles_over_still_refuse_documents() -> None:
    draft = "https://json-schema.org/draft/2019-09/schema"
    codec = _codec({"$schema": draft, "unevaluatedItems": False, "items": False})
    assert codec.encode([]) == b"[]"
    with pytest.raises(InvalidData):
        codec.encode([1])
