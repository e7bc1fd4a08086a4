"""Whatever syncs are known: a group that moves over misses nothing."""

from collections.abc import Iterable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.mirror.formats import OffsetSync
from connectors.mirror.translation import Translation, thin

PLACE = ("orders", 0)


def translation(*syncs: tuple[int, int]) -> Translation:
    known = Translation()
    for upstream, downstream in syncs:
        known.add(OffsetSync(PLACE, upstream, downstream))
    return known


@pytest.mark.parametrize(
    ("syncs", "upstream", "downstream"),
    [
        ([], 5, None),
        ([(10, 3)], 9, None),
        ([(10, 3)], 10, 3),
        ([(10, 3)], 11, 4),
        ([(10, 3)], 500, 4),
        ([(10, 3), (20, 13)], 19, 4),
        ([(10, 3), (20, 13)], 20, 13),
        ([(10, 3), (20, 13)], 21, 14),
        ([(10, 3), (5, 30)], 12, 4),
        ([(10, 3), (5, 30), (11, 36)], 12, 37),
        ([(10, 3), (5, 30), (11, 36)], 7, 31),
        ([(2, 1), (10, 3), (5, 30), (11, 36)], 4, 2),
        ([(10, 3), (5, 30)], 4, None),
        ([(10, 3), (0, 30)], 12, 31),
        ([(10, 30), (20, 5)], 15, None),
        ([(10, 3), (10, 9)], 10, 3),
    ],
)
def test_offsets_are_rounded_down(syncs: list[tuple[int, int]], upstream: int, downstream: int | None) -> None:
    assert translation(*syncs).downstream(PLACE, upstream) == downstream


def test_partitions_are_apart() -> None:
    assert translation((1, 1)).downstream(("orders", 1), 5) is None


@st.composite
def copies(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Upstream offsets in the order of the copy, with gaps and runs that were written twice; the places of the last of
    each run, and some others."""
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 5]), min_size=1, max_size=60))
    originals = list(accumulate(steps))
    written: list[int] = []
    lasts, start = [], 0
    for _ in range(draw(st.integers(1, 5))):
        end = draw(st.integers(start + 1, len(originals)))
        written += originals[start:end]
        lasts.append(len(written) - 1)
        start = draw(st.integers(0, end - 1))
    return written, lasts, draw(st.lists(st.integers(0, len(written) - 1), max_size=20))


def known_of(written: list[int], synced: Iterable[int]) -> Translation:
    return translation(*((written[at], at) for at in sorted(set(synced))))


def missed(written: list[int], upstream: int, downstream: int) -> set[int]:
    wanted = {offset for offset in written if offset >= upstream}
    return wanted - set(written[downstream:])


@given(copies(), st.integers(0, 300))
def test_a_group_that_moves_over_at_any_time_misses_nothing(
    copy: tuple[list[int], list[int], list[int]], upstream: int
) -> None:
    written, lasts, others = copy
    downstream = known_of(written, [*lasts, *others]).downstream(PLACE, upstream)
    assert downstream is None or (downstream <= len(written) and not missed(written, upstream, downstream))


@given(copies(), st.integers(0, 300))
def test_when_syncs_are_lost_all_comes_with_what_is_written_again(
    copy: tuple[list[int], list[int], list[int]], upstream: int
) -> None:
    written, _, others = copy
    downstream = known_of(written, others).downstream(PLACE, upstream)
    finished = [*written, *range(written[-1] + 1, max(written) + 1)]
    assert downstream is None or not missed(finished, upstream, downstream)


@given(copies())
def test_a_group_that_is_further_never_comes_out_further_back(copy: tuple[list[int], list[int], list[int]]) -> None:
    written, lasts, others = copy
    known = known_of(written, [*lasts, *others])
    found = [known.downstream(PLACE, upstream) for upstream in range(300)]
    translated = [offset for offset in found if offset is not None]
    assert translated == sorted(translated)


def test_many_syncs_are_thin_out_and_the_newest_stay_exact() -> None:
    known = translation(*((number * 100, number * 100) for number in range(10_000)))
    assert known.downstream(PLACE, 999_900) == 999_900
    assert known.downstream(PLACE, 0) == 0
    for lag in (1000, 10_000, 100_000):
        found = known.downstream(PLACE, 999_900 - lag)
        assert found is not None
        assert 999_900 - 4 * lag - 200 <= found <= 999_900 - lag


def test_thinning_keeps_the_first_and_the_last() -> None:
    syncs = [(number, number) for number in range(1000)]
    kept = thin(syncs)
    assert kept[0] == (0, 0)
    assert kept[-1] == (999, 999)
    assert len(kept) < 30
