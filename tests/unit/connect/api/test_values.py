"""Values as text, as Java writes them."""

import datetime as dt
import struct as binary
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api.data import (
    FLOAT32,
    FLOAT64,
    INT32,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array,
    mapping,
    struct,
)
from connect.api.errors import DataError
from connect.api.values import literal_of, parse, text_of

PERSON = struct({"id": INT32, "nick": OPTIONAL_STRING, "marks": array(FLOAT32)})

NUMBERS = [
    (FLOAT64, 0.0, "0.0"),
    (FLOAT64, -0.0, "-0.0"),
    (FLOAT64, 1.0, "1.0"),
    (FLOAT64, 100.0, "100.0"),
    (FLOAT64, 0.001, "0.001"),
    (FLOAT64, 0.0009, "9.0E-4"),
    (FLOAT64, 9999999.0, "9999999.0"),
    (FLOAT64, 1e7, "1.0E7"),
    (FLOAT64, 1e10, "1.0E10"),
    (FLOAT64, 2e23, "2.0E23"),
    (FLOAT64, 123456.789, "123456.789"),
    (FLOAT64, 5e-324, "4.9E-324"),
    (FLOAT64, -1.7976931348623157e308, "-1.7976931348623157E308"),
    (FLOAT64, float("nan"), "NaN"),
    (FLOAT64, float("inf"), "Infinity"),
    (FLOAT64, float("-inf"), "-Infinity"),
    (FLOAT32, 12.34000015258789, "12.34"),
    (FLOAT32, 0.1, "0.1"),
    (FLOAT32, 16777216.0, "1.6777216E7"),
    (FLOAT32, 1.401298464324817e-45, "1.4E-45"),
    (FLOAT32, 3.4028234663852886e38, "3.4028235E38"),
    (None, 1.5, "1.5"),
]

TEXTS: list[tuple[Schema | None, Any, str]] = [
    (STRING, "as it is", "as it is"),
    (None, None, "null"),
    (None, True, "true"),
    (None, False, "false"),
    (None, 42, "42"),
    (None, Decimal("1.500"), "1.500"),
    (None, Decimal("1E+10"), "1E+10"),
    (None, b"\x00\xff", "AP8="),
    (None, {"a": 1, "b": [True, None]}, "{a=1, b=[true, null]}"),
    (mapping(STRING, FLOAT32), {"x": 12.34000015258789}, "{x=12.34}"),
    (PERSON, {"id": 1, "nick": None, "marks": [0.5, 1e10]}, "Struct{id=1,marks=[0.5, 1.0E10]}"),
    (struct({"inner": PERSON}), {"inner": {"id": 1, "nick": "x"}}, "Struct{inner=Struct{id=1,nick=x}}"),
    (struct({}), {}, "Struct{}"),
]

# The shape is that of the value, as Kafka Connect chooses it.
MOMENTS = [
    (dt.date(2020, 2, 29), "2020-02-29"),
    (dt.date(1970, 1, 1), "1970-01-01"),
    (dt.time(1, 2, 3, 4567), "01:02:03.004Z"),
    (dt.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC), "2020-01-02T03:04:05.678Z"),
    (dt.datetime(2020, 1, 2, tzinfo=dt.UTC), "2020-01-02"),
    (dt.datetime(1970, 1, 1, 3, tzinfo=dt.UTC), "03:00:00.000Z"),
    (dt.datetime(1960, 1, 2, 3, tzinfo=dt.UTC), "1960-01-02T03:00:00.000Z"),
    (dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2020-01-02T01:00:00.000Z"),
]

LITERALS: list[tuple[Schema | None, Any, str]] = [
    (None, "text alone", "text alone"),
    (None, 'three"blind\\"mice', 'three"blind\\"mice'),
    (None, ['three"blind\\"mice'], '["three\\"blind\\\\\\"mice"]'),
    (None, {"a": 1, "b": [1.5, None, True]}, '{"a":1,"b":[1.5,null,true]}'),
    (None, {1: b"\x00\xff"}, '{1:"AP8="}'),
    (None, b"\x00\xff", "AP8="),
    (PERSON, {"id": 1, "marks": [0.10000000149011612]}, '{"id":1,"nick":null,"marks":[0.1]}'),
    (None, [dt.date(2020, 1, 2)], "[2020-01-02]"),
]


@pytest.mark.parametrize(("schema", "value", "text"), NUMBERS)
def test_numbers_with_a_fraction_look_as_in_java(schema: Schema | None, value: float, text: str) -> None:
    assert text_of(schema, value) == text


@pytest.mark.parametrize(("schema", "value", "text"), TEXTS)
def test_the_text_of_a_value_is_that_of_java(schema: Schema | None, value: Any, text: str) -> None:
    assert text_of(schema, value) == text


@pytest.mark.parametrize(("value", "text"), MOMENTS)
def test_dates_and_times_are_written_in_utc_in_the_shape_that_fits(value: Any, text: str) -> None:
    assert text_of(None, value) == text


@pytest.mark.parametrize(("schema", "value", "text"), LITERALS)
def test_a_literal_has_quotes_inside_lists_and_maps(schema: Schema | None, value: Any, text: str) -> None:
    assert literal_of(schema, value) == text


def test_what_is_no_value_of_connect_has_no_text() -> None:
    with pytest.raises(DataError, match="object"):
        text_of(None, object())


@given(st.floats(allow_nan=False))
def test_the_text_of_a_double_is_that_double(value: float) -> None:
    assert float(text_of(FLOAT64, value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_text_of_a_float_is_that_float(value: float) -> None:
    text = text_of(FLOAT32, value)

    assert binary.pack(">f", float(text)) == binary.pack(">f", value)


_PLAIN_TEXT = st.text(alphabet="abc {}[]:,", max_size=5)


@given(st.dictionaries(_PLAIN_TEXT, st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_a_literal_is_read_back_as_what_it_was(value: dict[str, int]) -> None:
    assert parse(literal_of(None, value))[1] == value
