"""What Python computes for Spark."""

from decimal import ROUND_FLOOR, Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streams.functions.columns import on_columns
from streams.functions.values import PYTHON_FUNCTIONS, instr, round_decimal, shift_zone, truncate_decimal

_DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20)


@given(_DECIMALS, st.integers(-5, 8))
def test_half_is_rounded_towards_positive_infinity(value: Decimal, places: int) -> None:
    unit = Decimal(1).scaleb(-places)
    lower = (value / unit + Decimal("0.5")).to_integral_value(ROUND_FLOOR) * unit

    assert Decimal(round_decimal(str(value), places)) == (value if places >= 6 else lower)


@given(_DECIMALS, st.integers(-5, 8))
def test_truncated_numbers_are_nearer_to_zero_by_less_than_a_unit(value: Decimal, places: int) -> None:
    result = Decimal(truncate_decimal(str(value), places))

    assert abs(result) <= abs(value)
    assert abs(value - result) < Decimal(1).scaleb(-places)


@given(st.text("ab", max_size=8), st.text("ab", min_size=1, max_size=2), st.integers(1, 8), st.integers(1, 3))
def test_instr_counts_occurrences_that_may_overlap(text: str, part: str, position: int, occurrence: int) -> None:
    places = [at + 1 for at in range(position - 1, len(text)) if text.startswith(part, at)]

    assert instr(text, part, position, occurrence) == (places[occurrence - 1] if occurrence <= len(places) else 0)


@given(st.integers(0, 4 * 10**15), st.sampled_from(["Europe/Paris", "+05:30", "GMT-3", "Z"]))
def test_a_shift_and_back_differ_by_an_hour_at_most(micros: int, zone: str) -> None:
    there = shift_zone(micros, zone, back=False)

    assert abs(shift_zone(there, zone, back=True) - micros) <= 3_600_000_000


def test_what_cannot_be_computed_is_null() -> None:
    items = on_columns(PYTHON_FUNCTIONS["caudal_json_items"])

    assert items(pa.array(["[1]", "[", None, "[" * 100_000, "NaN"])).to_pylist() == [["1"], None, None, None, None]
