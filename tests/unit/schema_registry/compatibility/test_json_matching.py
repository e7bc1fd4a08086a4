from collections.abc import Mapping
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.compatibility.json_matching import match_pairs

_EDGES = st.integers(1, 4).flatmap(
    lambda count: st.fixed_dictionaries(
        {member: st.lists(st.integers(0, 5), unique=True, max_size=4) for member in range(count)}
    )
)


def _can_all_be_paired(edges: Mapping[int, list[int]]) -> bool:
    choices = permutations(range(6), len(edges))
    return any(all(choice[member] in edges[member] for member in edges) for choice in choices)


@settings(max_examples=200, deadline=None)
@given(_EDGES)
def test_all_are_paired_whenever_that_can_be_done(edges: dict[int, list[int]]) -> None:
    pairs = match_pairs(len(edges), edges.__getitem__)

    assert (len(pairs) == len(edges)) == _can_all_be_paired(edges)
    assert all(candidate in edges[member] for member, candidate in pairs.items())
    assert len(set(pairs.values())) == len(pairs)


def test_a_candidate_is_given_up_for_another_that_has_no_choice() -> None:
    assert match_pairs(3, {0: [0, 1], 1: [0, 2], 2: [0]}.__getitem__) == {0: 1, 1: 2, 2: 0}


def test_candidates_beyond_the_first_free_one_are_not_looked_at() -> None:
    asked: list[int] = []

    def candidates(member: int) -> list[int]:
        asked.append(member)
        return [member]

    assert match_pairs(3, candidates) == {0: 0, 1: 1, 2: 2}
    assert asked == [0, 1, 2]
