import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_registry.formats.avro_json import quote, read, to_single, write
from schema_registry.formats.schema import DEFAULT_LIMITS, InvalidSchema


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("string", "not JSON: Expecting value at line 1, column 1"),
        ('"int" "int"', "not JSON: Extra data at line 1, column 7"),
        ('{"a":1,}', "not JSON"),
        ("NaN", "not JSON: NaN is not a JSON number"),
        ("[-Infinity]", "not JSON: -Infinity is not a JSON number"),
        ("1e999", "the number 1e999 is too large"),
        ('{"a":1,"b":2,"a":3}', "the key 'a' appears twice in one object"),
        ('"\\ud800"', "the text contains an unpaired surrogate"),
        ('{"\\uDFFF":1}', "the text contains an unpaired surrogate"),
        ('"\ud800"', "the text contains an unpaired surrogate"),
        ("1 /* never closed", "not JSON"),
        ("/*/ 1", "not JSON"),
        ('"a', "not JSON"),
        ("\ufeff1", "not JSON"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        read(text, limits=DEFAULT_LIMITS, strict=True)
    assert str(caught.value).startswith(message)


def test_the_last_of_equal_keys_counts_unless_strict() -> None:
    assert read('{"a":1,"a":2}', limits=DEFAULT_LIMITS, strict=False) == {"a": 2}


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert read('"\\ud83d\\ude00"', limits=DEFAULT_LIMITS, strict=True) == "😀"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (12.3, "12.3"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-1.25e-300, "-1.25E-300"),
        (123456789.0, "1.23456789E8"),
        (1e22, "1.0E22"),
    ],
)
def test_doubles_are_written_as_java_does(value: float, text: str) -> None:
    assert write(value) == text


def test_only_what_must_be_escaped_is() -> None:
    assert quote('é"\\/\b\t\n\f\r\x00\x1f\x7f\u2028') == '"é\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001F\x7f\u2028"'


def test_the_shortest_number_with_the_same_32_bits() -> None:
    assert [to_single(value) for value in (0.1, 12.3, 16777217.0, 1e39)] == [0.1, 12.3, 16777216.0, 1e39]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES, st.booleans())
def test_what_is_written_is_read_back(value: Any, sort_keys: bool) -> None:
    assert json.loads(write(value, sort_keys=sort_keys)) == value
