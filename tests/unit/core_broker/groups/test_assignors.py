"""The assignors: valid, balanced, sticky."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.groups.assignors import ASSIGNORS, Assignment, Assignor, assign_range, assign_uniform

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
TOPICS = (A, B, C)

partition_counts = st.fixed_dictionaries({topic: st.integers(1, 12) for topic in TOPICS})
member_ids = st.sets(st.sampled_from([f"m{number}" for number in range(8)]), min_size=1)
any_subscription = st.frozensets(st.sampled_from(TOPICS))


@st.composite
def different_subscriptions(draw: st.DrawFn) -> dict[str, frozenset[bytes]]:
    return {member: draw(any_subscription) for member in draw(member_ids)}


@st.composite
def equal_subscriptions(draw: st.DrawFn) -> dict[str, frozenset[bytes]]:
    return dict.fromkeys(draw(member_ids), draw(st.frozensets(st.sampled_from(TOPICS), min_size=1)))


def sizes(assignments: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, assignment.values())) for assignment in assignments.values()]


def places(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic, partition) for topic, partitions in assignment.items() for partition in partitions}


def moves(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """Partitions that members who stay lose."""
    return sum(len(places(before[member]) - places(after[member])) for member in before if member in after)


def check_valid(
    assignments: Mapping[str, Assignment], subscriptions: Mapping[str, frozenset[bytes]], counts: Mapping[bytes, int]
) -> None:
    assert assignments.keys() == subscriptions.keys()
    given_out = [place for assignment in assignments.values() for place in places(assignment)]
    assert len(given_out) == len(set(given_out)), "a partition has two readers"
    read = frozenset().union(*subscriptions.values())
    assert set(given_out) == {(topic, partition) for topic in read for partition in range(counts[topic])}
    for member, assignment in assignments.items():
        assert assignment.keys() <= subscriptions[member], "a member got a topic that it does not read"
        assert all(assignment.values()), "topics without partitions are left out"


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
@given(
    before=different_subscriptions(), after=different_subscriptions(), counts=partition_counts, grown=partition_counts
)
def test_every_partition_of_a_read_topic_has_exactly_one_reader(
    assignor: Assignor,
    before: dict[str, frozenset[bytes]],
    after: dict[str, frozenset[bytes]],
    counts: dict[bytes, int],
    grown: dict[bytes, int],
) -> None:
    first = assignor(before, counts, {})
    check_valid(first, before, counts)
    check_valid(assignor(after, grown, first), after, grown)


@given(before=equal_subscriptions(), after=equal_subscriptions(), counts=partition_counts)
def test_uniform_gives_equal_subscribers_counts_that_differ_by_at_most_one(
    before: dict[str, frozenset[bytes]], after: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    result = sizes(assign_uniform(after, counts, assign_uniform(before, counts, {})))
    assert max(result) - min(result) <= 1


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
@given(subscriptions=different_subscriptions(), counts=partition_counts)
def test_assignment_stays_as_it_is_while_nothing_changes(
    assignor: Assignor, subscriptions: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    first = assignor(subscriptions, counts, {})
    assert assignor(subscriptions, counts, first) == first


@given(subscriptions=equal_subscriptions(), counts=partition_counts)
def test_uniform_takes_from_those_who_stay_only_what_a_newcomer_gets(
    subscriptions: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    before = assign_uniform(subscriptions, counts, {})
    topics = next(iter(subscriptions.values()))
    after = assign_uniform({**subscriptions, "newcomer": topics}, counts, before)
    assert moves(before, after) == len(places(after["newcomer"]))


@given(subscriptions=equal_subscriptions(), counts=partition_counts)
def test_uniform_takes_nothing_from_those_who_stay_when_a_member_leaves(
    subscriptions: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    before = assign_uniform(subscriptions, counts, {})
    left = {member: topics for member, topics in subscriptions.items() if member != min(subscriptions)}
    assert moves(before, assign_uniform(left, counts, before)) == 0


@given(subscriptions=different_subscriptions(), counts=partition_counts)
def test_uniform_leaves_no_single_move_that_would_make_unequal_subscribers_more_even(
    subscriptions: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    result = assign_uniform(subscriptions, counts, {})
    load = dict(zip(result, sizes(result), strict=True))
    for rich, assignment in result.items():
        for topic in assignment:
            for poor, topics in subscriptions.items():
                assert topic not in topics or load[rich] - load[poor] <= 1


def test_uniform_spreads_the_partitions_of_each_topic() -> None:
    result = assign_uniform({"m1": frozenset((A, B)), "m2": frozenset((A, B))}, {A: 2, B: 2}, {})
    assert [sorted(assignment) for assignment in result.values()] == [[A, B], [A, B]]


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
def test_more_members_than_partitions_leaves_the_surplus_idle(assignor: Assignor) -> None:
    result = assignor(dict.fromkeys(("m1", "m2", "m3", "m4"), frozenset((A,))), {A: 2}, {})
    assert sorted(sizes(result)) == [0, 0, 1, 1]


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
def test_thousand_members_and_partitions_get_one_each(assignor: Assignor) -> None:
    members = [f"m{number}" for number in range(1000)]
    result = assignor(dict.fromkeys(members, frozenset((A,))), {A: 1000}, {})
    assert sizes(result) == [1] * 1000


def test_range_gives_the_same_partition_numbers_of_topics_that_are_read_together() -> None:
    result = assign_range(dict.fromkeys(("m1", "m2", "m3"), frozenset((A, B))), {A: 7, B: 7}, {})
    assert [assignment[A] for assignment in result.values()] == [{0, 1, 2}, {3, 4}, {5, 6}]
    assert all(assignment[A] == assignment[B] for assignment in result.values())


def test_range_keeps_the_order_of_members_when_one_with_a_lower_name_joins() -> None:
    before = assign_range(dict.fromkeys(("m2", "m3"), frozenset((A,))), {A: 6}, {})
    after = assign_range(dict.fromkeys(("m1", "m2", "m3"), frozenset((A,))), {A: 6}, before)
    assert after == {"m2": {A: {0, 1}}, "m3": {A: {2, 3}}, "m1": {A: {4, 5}}}


def test_no_members_get_nothing() -> None:
    assert assign_uniform({}, {}, {"gone": {A: frozenset((0,))}}) == {}
