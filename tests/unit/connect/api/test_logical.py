"""Dates, times and decimals as numbers and bytes."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api.data import Schema, Type, decimal
from connect.api.errors import DataError
from connect.api.logical import (
    date_of,
    days_of,
    decimal_bytes,
    decimal_of,
    milliseconds_of,
    milliseconds_of_time,
    rescaled,
    scale_of,
    time_of,
    timestamp_of,
)


@pytest.mark.parametrize(
    ("value", "data"),
    [("1.56", b"\x00\x9c"), ("-1.28", b"\x80"), ("-1.29", b"\xff\x7f"), ("0.00", b"\x00"), ("-0.01", b"\xff")],
)
def test_a_decimal_is_the_shortest_complement_of_its_digits(value: str, data: bytes) -> None:
    assert decimal_bytes(Decimal(value), 2) == data
    assert decimal_of(data, 2) == Decimal(value)


@given(st.integers(), st.integers(-50, 50))
def test_decimals_of_any_length_keep_every_digit(digits: int, scale: int) -> None:
    value = Decimal(f"{digits}E{-scale}")

    assert str(decimal_of(decimal_bytes(value, scale), scale)) == str(value)


@given(st.dates())
def test_days_are_dates(value: dt.date) -> None:
    assert date_of(days_of(value)) == value


@given(st.integers(0, 86_399_999))
def test_milliseconds_of_a_day_are_times(milliseconds: int) -> None:
    assert milliseconds_of_time(time_of(milliseconds)) == milliseconds


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_milliseconds_since_1970_are_moments(milliseconds: int) -> None:
    assert milliseconds_of(timestamp_of(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (date_of, 2**31 - 1),
        (date_of, -(2**31)),
        (time_of, -1),
        (time_of, 86_400_000),
        (timestamp_of, 2**63 - 1),
        (days_of, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (days_of, "2020-01-01"),
        (milliseconds_of_time, 5),
        (milliseconds_of, dt.datetime(2020, 1, 1)),  # noqa: DTZ001
        (milliseconds_of, 5),
    ],
)
def test_what_is_no_date_or_time_is_refused(change: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(DataError):
        change(value)


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [("1.5", 2, "1.50"), ("1.567", 2, "1.567"), ("1E+3", 0, "1000"), ("100", -2, "1E+2")],
)
def test_a_scale_is_changed_where_that_loses_nothing(value: str, scale: int, expected: str) -> None:
    assert str(rescaled(Decimal(value), scale)) == expected


def test_the_scale_is_told_by_the_schema() -> None:
    assert scale_of(decimal(7)) == 7


@pytest.mark.parametrize("parameters", [{}, {"scale": "many"}, {"scale": "999999999"}])
def test_a_schema_without_a_usable_scale_is_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(DataError, match="scale"):
        scale_of(Schema(Type.BYTES, parameters=parameters))
