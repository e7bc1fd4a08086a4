"""Aggregates in Python: the examples of those in Spark's SQL, and recomputation of what remains."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.functions.aggregates import aggregator
from streams.functions.states import Aggregator
from streams.model import types
from streams.model.plan import Aggregate
from streams.spark.queries.processors.stored import dump, read
from streams.sql.conversion import common_type
from streams.sql.functions.aggregates import AGGREGATES as TABLE
from tests.support.sql_examples import AGGREGATES
from tests.support.sql_values import Null, expression, same

NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000))
UNDONE = ["COUNT", "SUM", "AVG", "COLLECT_LIST", "HISTOGRAM", "STDDEV_SAMP", "STDDEV_SAMPLE", "ATTR"]
MERGED = [
    *UNDONE,
    "MIN",
    "MAX",
    "COLLECT_SET",
    "COUNT_DISTINCT",
    "TOPK",
    "TOPKDISTINCT",
    "EARLIEST_BY_OFFSET",
    "LATEST_BY_OFFSET",
]


def _aggregator(name: str, argument_types: Sequence[str], literals: Sequence[object] = ()) -> Aggregator[Any]:
    return aggregator(
        Aggregate(
            name="A",
            function=name,
            arguments=tuple(f"c{number}" for number in range(len(argument_types))),
            literals=tuple(msgspec.Raw(msgspec.json.encode(one)) for one in literals),
            argument_types=tuple(argument_types),
        )
    )


def _of_numbers(name: str) -> Aggregator[Any]:
    literals = [3] if name.startswith("TOPK") or name.endswith("_BY_OFFSET") else []
    return _aggregator(name, ["STRING" if name == "HISTOGRAM" else "BIGINT"], literals)


def _computed(one: Aggregator[Any], rows: Sequence[Sequence[object]]) -> object:
    state = one.start()
    for number, row in enumerate(rows):
        state = one.add(state, row, number)
        state = read(dump(state))
    return one.result(state)


def _close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6) or (math.isnan(one) and math.isnan(other))
    return one == other


def test_all_of_the_table_are_there() -> None:
    for function in TABLE:
        literals = [2] if function.name.startswith("TOPK") else []
        found = _aggregator(function.name, ["ARRAY<BIGINT>" if function.name == "SUM_LIST" else "BIGINT"], literals)
        assert found.has_undo == any(one.undo for one in function.overloads), function.name
    with pytest.raises(ValueError, match="no aggregate NONE"):
        _aggregator("NONE", [])


@pytest.mark.parametrize("number", range(len(AGGREGATES)), ids=lambda number: f"{AGGREGATES[number][0]}-{number}")
def test_examples(number: int) -> None:
    name, rows, arguments, expected = AGGREGATES[number]
    if (name, expected) == ("SUM", None):
        # In Python as in ksqlDB, a row that makes the sum too large is ignored.
        expected = Decimal(9)
    columns = [int(one[1:]) for one in arguments if isinstance(one, str)]
    literals = [one for one in arguments if not isinstance(one, str)]
    kinds = [common_type([expression(row[column]).type for row in rows]) or types.NULL for column in columns]
    values = [[None if isinstance(row[column], Null) else row[column] for column in columns] for row in rows]
    assert same(_computed(_aggregator(name, list(map(str, kinds)), literals), values), expected)


@pytest.mark.parametrize("name", UNDONE)
@given(values=st.lists(st.tuples(NUMBERS, st.booleans()), max_size=30))
def test_undo_leaves_what_the_others_make(name: str, values: list[tuple[int | None, bool]]) -> None:
    one = _of_numbers(name)
    state = one.start()
    left: list[object] = []
    for number, (value, stays) in enumerate(values):
        row = (value if name != "HISTOGRAM" or value is None else str(value),)
        state = one.add(state, row, number)
        left.append(row[0])
        if not stays:
            # Some row, not the last one.
            gone = left[len(left) // 2]
            left.reverse()
            left.remove(gone)
            left.reverse()
            state = read(dump(one.undo(state, (gone,))))
    assert _close(one.result(state), _computed(one, [(value,) for value in left]))


@pytest.mark.parametrize("name", MERGED)
@given(values=st.lists(NUMBERS, max_size=30), cut=st.integers(0, 30))
def test_merged_states_are_those_of_all_rows(name: str, values: list[int | None], cut: int) -> None:
    one = _of_numbers(name)
    rows = [(value if name != "HISTOGRAM" or value is None else str(value),) for value in values]
    states = [one.start(), one.start()]
    for number, row in enumerate(rows):
        states[number >= cut] = one.add(states[number >= cut], row, number)
    merged = one.merge(*(read(dump(state)) for state in states))
    assert _close(one.result(merged), _computed(one, rows))


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20), gone=st.integers(0, 20))
def test_correlation(rows: list[tuple[int | None, int | None]], gone: int) -> None:
    one = _aggregator("CORRELATION", ["BIGINT", "BIGINT"])
    states = [one.start(), one.start()]
    for number, row in enumerate(rows):
        states[number % 2] = one.add(states[number % 2], row, number)
    state = one.merge(*states)
    if gone < len(rows):
        state = one.undo(state, rows[gone])
        rows = rows[:gone] + rows[gone + 1 :]
    pairs = [(x, y) for x, y in rows if x is not None and y is not None]
    if len({x for x, _ in pairs}) < 2 or len({y for _, y in pairs}) < 2:
        # Not defined, but for the last digits.
        return
    mean_x, mean_y = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    products = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    squares = [sum((x - mean_x) ** 2 for x, _ in pairs), sum((y - mean_y) ** 2 for _, y in pairs)]
    assert one.result(state) == pytest.approx(products / math.sqrt(squares[0] * squares[1]), abs=1e-6)


def test_many_different_values_are_estimated() -> None:
    one = _aggregator("COUNT_DISTINCT", ["BIGINT"])
    halves = []
    for start in (0, 30_000):
        state = one.start()
        for value in range(start, start + 40_000):
            state = one.add(state, (value,), value)
        halves.append(state)
    assert one.result(one.merge(*halves)) == pytest.approx(70_000, rel=0.03)
    assert len(dump(halves[0])) < 20_000


def test_sums_wrap_around_and_decimals_keep_all_digits() -> None:
    wrapping = _aggregator("SUM", ["BIGINT"])
    assert _computed(wrapping, [(2**63 - 1,), (1,)]) == -(2**63)
    exact = _aggregator("SUM", ["DECIMAL(38, 10)"])
    large = Decimal("1234567890123456789012345678.0123456789")
    state = exact.add(exact.add(exact.start(), (large,), 1), (Decimal("0.0000000001"),), 2)
    assert exact.result(state) == Decimal("1234567890123456789012345678.0123456790")
    assert exact.result(exact.undo(state, (large,))) == Decimal("0.0000000001")


def test_not_a_number_is_the_largest() -> None:
    assert math.isnan(float(str(_computed(_aggregator("MAX", ["DOUBLE"]), [(1.0,), (math.nan,), (2.0,)]))))
    assert _computed(_aggregator("MIN", ["DOUBLE"]), [(math.nan,), (1.0,)]) == 1.0
