"""JSON documents without a schema."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api.errors import DataError
from connect.converters.json.reading import read_any
from streams.spark.decoding.decoder import Decoded
from streams.spark.decoding.json_documents import JsonDecoder


def decoded(*documents: bytes | None) -> Decoded:
    return JsonDecoder().decode(pa.array(documents, type=pa.binary()), "t")


def told(found: Decoded) -> list[tuple[list[int], str, list[Any]]]:
    return [(part.rows.tolist(), str(part.data.type), part.data.to_pylist()) for part in found.parts]


def test_fields_of_all_documents_become_columns() -> None:
    found = decoded(b'{"a":1,"b":"x"}', b'{"c":true}', b'{"a":2.5,"d":{"e":[1,2]}}')
    type_ = "struct<a: double, b: string, c: bool, d: struct<e: list<item: int64>>>"
    rows = [
        {"a": 1.0, "b": "x", "c": None, "d": None},
        {"a": None, "b": None, "c": True, "d": None},
        {"a": 2.5, "b": None, "c": None, "d": {"e": [1, 2]}},
    ]
    assert told(found) == [([0, 1, 2], type_, rows)]


def test_what_says_nothing_about_its_type_is_left_out() -> None:
    assert told(decoded(b'{"a":1,"b":null,"c":[],"d":{},"e":[[]]}')) == [([0], "struct<a: int64>", [{"a": 1}])]


def test_documents_that_contradict_each_other_are_parts_of_different_types() -> None:
    found = decoded(b'{"a":1}', b'{"a":"x"}', b'{"a":2,"b":true}', b'{"a":true}', b'{"a":"y"}', b"{}")
    assert told(found) == [
        ([0, 2, 5], "struct<a: int64, b: bool>", [{"a": 1, "b": None}, {"a": 2, "b": True}, {"a": None, "b": None}]),
        ([1, 4], "struct<a: string>", [{"a": "x"}, {"a": "y"}]),
        ([3], "struct<a: bool>", [{"a": True}]),
    ]


def test_a_whole_number_that_no_double_holds_is_no_double() -> None:
    found = decoded(b'{"a":9007199254740993}', b'{"a":0.5}', b'{"a":1}', b'{"a":2.5}')
    assert told(found) == [
        ([0, 2], "struct<a: int64>", [{"a": 9007199254740993}, {"a": 1}]),
        ([1, 3], "struct<a: double>", [{"a": 0.5}, {"a": 2.5}]),
    ]


def test_documents_that_are_no_objects_are_parts_of_their_own() -> None:
    found = decoded(b"1", b'"x"', b"2.5", b"[1]", b'{"a":1}')
    assert [(part.rows.tolist(), str(part.data.type)) for part in found.parts] == [
        ([0, 2], "double"),
        ([1], "string"),
        ([3], "list<item: int64>"),
        ([4], "struct<a: int64>"),
    ]


def test_null_and_nothing_are_null() -> None:
    found = decoded(b"null", b"", None, b'{"a":1}')
    assert found.nulls.tolist() == [0, 1, 2]
    assert told(found) == [([3], "struct<a: int64>", [{"a": 1}])]


@pytest.mark.parametrize("bad", [b"{", b"{}{}", b"\xff", b'{"a":9223372036854775808}', b"nul", b"[" * 5000, b" "])
def test_a_bad_document_is_told_as_connect_does_and_spoils_no_other(bad: bytes) -> None:
    found = decoded(b'{"a":1}', bad, b'{"a":3}')
    with pytest.raises(DataError) as raised:
        read_any(bad)
    assert [(row, str(error)) for row, error in found.bad] == [(1, str(raised.value))]
    assert told(found) == [([0, 2], "struct<a: int64>", [{"a": 1}, {"a": 3}])]


def test_a_list_of_different_types_is_bad() -> None:
    found = decoded(b'{"a":[1,"x"]}', b'{"a":[1]}')
    assert [row for row, _ in found.bad] == [0]
    assert told(found) == [([1], "struct<a: list<item: int64>>", [{"a": [1]}])]


def test_a_batch_has_a_bounded_number_of_types() -> None:
    found = decoded(*[b'{"a":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}" for depth in range(30)])
    assert len(found.parts) == 20
    assert len(found.bad) == 10


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.lists(DOCUMENTS, max_size=10))
@settings(deadline=None)
def test_every_document_is_somewhere_and_loses_nothing_but_what_has_no_type(documents: list[Any]) -> None:
    import msgspec

    found = JsonDecoder().decode(pa.array([msgspec.json.encode(one) for one in documents], type=pa.binary()), "t")
    seen = [
        *found.nulls.tolist(),
        *(row for row, _ in found.bad),
        *(row for part in found.parts for row in part.rows.tolist()),
    ]
    assert sorted(seen) == list(range(len(documents)))
    for part in found.parts:
        part.data.validate(full=True)
        for row, value in zip(part.rows.tolist(), part.data.to_pylist(), strict=True):
            assert pruned(value) == pruned(documents[row])


def pruned(value: Any) -> Any:
    """Without what says nothing about types."""
    if isinstance(value, dict):
        return {key: part for key, item in value.items() if (part := pruned(item)) is not None} or None
    if isinstance(value, list):
        parts = [pruned(item) for item in value]
        return None if all(part is None for part in parts) else parts
    return value
