"""Bipartite matching by augmenting paths: pair the members of two sets, each with at most one of the other."""

from collections.abc import Callable, Iterable

Candidates = Callable[[int], Iterable[int]]


def match_pairs(count: int, candidates: Candidates) -> dict[int, int]:
    """Pair each of `count` members with a candidate of its own; stops early if that is impossible for one of them.

    Candidates are computed lazily. If the likeliest come first, most pairs are never compared.
    """
    partners: dict[int, int] = {}
    taken_by: dict[int, int] = {}
    for member in range(count):
        if not _augment(member, candidates, partners, taken_by):
            break
    return partners


def _augment(start: int, candidates: Candidates, partners: dict[int, int], taken_by: dict[int, int]) -> bool:
    """Search breadth-first for a free candidate, and shift the pairs along the path to it."""
    reached_from: dict[int, int] = {}
    frontier = [start]
    while frontier:
        following: list[int] = []
        for member in frontier:
            for candidate in candidates(member):
                if candidate in reached_from:
                    continue
                reached_from[candidate] = member
                if candidate not in taken_by:
                    _shift(candidate, start, reached_from, partners, taken_by)
                    return True
                following.append(taken_by[candidate])
        frontier = following
    return False


def _shift(
    free: int, start: int, reached_from: dict[int, int], partners: dict[int, int], taken_by: dict[int, int]
) -> None:
    candidate = free
    while True:
        member = reached_from[candidate]
        left_behind = partners.get(member)
        partners[member] = candidate
        taken_by[candidate] = member
        if member == start or left_behind is None:
            return
        candidate = left_behind
