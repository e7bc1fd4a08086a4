"""Groups of rows that are added and taken back."""

from hypothesis import given
from hypothesis import strategies as st

from streams.functions.aggregates import aggregator
from streams.model.plan import Aggregate
from streams.spark.queries.processors.groups import Group

AGGREGATORS = [
    aggregator(Aggregate(name="N", function="COUNT")),
    aggregator(Aggregate(name="S", function="SUM", arguments=("V",), argument_types=("BIGINT",))),
]


@given(st.lists(st.tuples(st.booleans(), st.integers(-9, 9))))
def test_results_are_those_of_the_rows_that_are_left(changes: list[tuple[bool, int]]) -> None:
    group, left = Group.new(AGGREGATORS), list[int]()
    for time, (is_added, value) in enumerate(changes):
        if is_added:
            left.append(value)
            group.change(1, time, [(), (value,)])
        elif left:
            group.change(-1, time, [(), (left.pop(0),)])
    assert group.results() == ([len(left), sum(left)] if left else None)


def test_what_was_never_added_is_not_taken_back() -> None:
    group = Group.new(AGGREGATORS)
    group.change(-2, 5, [(), (7,)])
    assert (group.results(), group.rows, group.states) == (None, 0, [0, 0])
