import math

import pytest

from connect.transforms.java.numbers import float32, parse_float, parse_integer, truncate, wrap


@pytest.mark.parametrize(
    ("value", "bits", "expected"),
    [
        (300, 8, 44),
        (127, 8, 127),
        (128, 8, -128),
        (-129, 8, 127),
        (70_000, 16, 4464),
        (2**31, 32, -(2**31)),
        (2**63, 64, -(2**63)),
        (2**70 + 5, 64, 5),
    ],
)
def test_integers_wrap_around(value: int, bits: int, expected: int) -> None:
    assert wrap(value, bits) == expected


@pytest.mark.parametrize(
    ("value", "bits", "expected"),
    [
        (1.9, 32, 1),
        (-1.9, 32, -1),
        (math.nan, 64, 0),
        (1e300, 32, 2**31 - 1),
        (-1e300, 32, -(2**31)),
        (math.inf, 64, 2**63 - 1),
        (-math.inf, 64, -(2**63)),
        (300.7, 8, 44),
        (1e10, 8, -1),
        (1e10, 16, -1),
        (-1e10, 16, 0),
    ],
)
def test_fractions_are_cut_off_and_what_is_too_large_becomes_the_largest(
    value: float, bits: int, expected: int
) -> None:
    assert truncate(value, bits) == expected


@pytest.mark.parametrize(("text", "bits", "expected"), [("42", 8, 42), ("+7", 8, 7), ("-128", 8, -128), ("007", 64, 7)])
def test_text_of_integers_is_read(text: str, bits: int, expected: int) -> None:
    assert parse_integer(text, bits) == expected


@pytest.mark.parametrize(
    ("text", "bits"), [("128", 8), ("", 32), (" 1", 32), ("1_0", 32), ("1.0", 32), ("0x1", 32), ("9" * 500, 64)]
)
def test_text_that_is_no_integer_of_so_many_bits_is_refused(text: str, bits: int) -> None:
    with pytest.raises(ValueError):
        parse_integer(text, bits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", 1.5),
        (" 1 ", 1.0),
        ("1e3", 1000.0),
        (".5d", 0.5),
        ("5.F", 5.0),
        ("-Infinity", -math.inf),
        ("0x1p3", 8.0),
        ("1e999", math.inf),
        ("0x1p5000", math.inf),
        ("-0x1p5000", -math.inf),
    ],
)
def test_text_of_numbers_is_read(text: str, expected: float) -> None:
    assert parse_float(text) == expected


def test_not_a_number_is_read() -> None:
    assert math.isnan(parse_float("NaN"))


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_0", "1,5", "--1", "++Infinity", "1" * 500])
def test_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_float(text)


@pytest.mark.parametrize(
    ("value", "expected"), [(0.1, 0.10000000149011612), (1e300, math.inf), (-1e300, -math.inf), (42, 42.0)]
)
def test_numbers_are_rounded_to_32_bits(value: float, expected: float) -> None:
    assert float32(value) == expected
