import time

import pytest

from schema_registry.formats.json_text import read, write
from schema_registry.formats.schema import DEFAULT_LIMITS, InvalidSchema, Limits
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{ "b" : 1 , "a" : [ ] }', '{"b":1,"a":[]}'),
        ("[1.0, 1.50, 0.10, 1, -0]", "[1.0,1.50,0.10,1,0]"),
        ("[1e2, 1E-7, 12.5e3]", "[1E+2,1E-7,1.25E+4]"),
        ("[123456789012345678901234567890]", "[123456789012345678901234567890]"),
        (r'["\u00e9\u2028\/", "\u001f\\u001f\n\u007f"]', '["é\u2028/","\\u001F\\\\u001f\\n\x7f"]'),
        ("[true, false, null, {}]", "[true,false,null,{}]"),
    ],
)
def test_a_text_is_written_compactly_with_its_order_and_its_numbers(text: str, written: str) -> None:
    assert write(read(text, limits=DEFAULT_LIMITS)) == written


def test_keys_are_sorted_at_every_level() -> None:
    value = read('{"b":[{"d":1,"c":2}],"a":{"z":1,"y":2}}', limits=DEFAULT_LIMITS)

    assert write(value, sort_keys=True) == '{"a":{"y":2,"z":1},"b":[{"c":2,"d":1}]}'


def test_keys_are_sorted_as_java_sorts_them() -> None:
    value = read('{"\uff21":1,"\U0001f600":2,"b":3,"a":4}', limits=DEFAULT_LIMITS)

    assert write(value, sort_keys=True) == '{"a":4,"b":3,"\U0001f600":2,"\uff21":1}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON: Expecting value"),
        ("{", "not JSON: Expecting property name"),
        ("{'a': 1}", "not JSON: Expecting property name"),
        ("{} x", "not JSON: Extra data: line 1 column 4"),
        ("// {}", "not JSON"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("[1e999999]", "the number 1e999999 does not fit a double"),
        ("[1e-999]", "the number 1e-999 does not fit a double"),
        ("9" * 5_000, "a number has too many digits"),
        ('{"a":1,"b":2,"a":3}', "the key 'a' appears twice"),
        ("\ufeff{}", "not JSON"),
        ('["\t"]', "not JSON: Invalid control character"),
    ],
)
def test_text_that_is_not_json_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        read(text, limits=DEFAULT_LIMITS)


def test_the_last_of_equal_keys_counts_where_texts_are_not_read_strictly() -> None:
    value = read('{"a":1,"b":2,"a":3}', limits=DEFAULT_LIMITS, strict=False)

    assert write(value) == '{"a":3,"b":2}'


@pytest.mark.parametrize("levels", [101, 900, 10_000, 1_000_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused(levels: int, opening: str, closing: str) -> None:
    with pytest.raises(InvalidSchema, match="nested deeper than 100 levels"):
        read(opening * levels + "1" + closing * levels, limits=DEFAULT_LIMITS)


def test_nesting_up_to_the_limit_is_read() -> None:
    text = "[" * 100 + "]" * 100

    assert write(read(text, limits=DEFAULT_LIMITS)) == text


def test_more_values_than_the_limit_are_refused() -> None:
    limits = Limits(max_elements=4)

    assert read("[1,2,3]", limits=limits) == [1, 2, 3]
    with pytest.raises(InvalidSchema, match="more than 4 values"):
        read("[1,2,3,4]", limits=limits)


def test_one_of_very_many_keys_twice_is_found_at_once() -> None:
    keys = [*(f'"{number}":0' for number in range(100_000)), '"99999":1']
    started = time.process_time()
    with pytest.raises(InvalidSchema, match="the key '99999' appears twice"):
        read("{" + ",".join(keys) + "}", limits=DEFAULT_LIMITS)
    assert time.process_time() - started < PATIENCE_S
