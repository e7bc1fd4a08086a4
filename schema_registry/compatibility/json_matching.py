"""Maximum matching between two sets, by augmenting paths."""

from collections.abc import Mapping, Sequence


def maximum_matching(edges: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Pair as many left vertices as possible with right ones, each with at most one; `edges` are by left vertex."""
    left_of: dict[int, int] = {}
    for start in edges:
        _augment(start, edges, left_of)
    return dict(sorted((left, right) for right, left in left_of.items()))


def _augment(start: int, edges: Mapping[int, Sequence[int]], left_of: dict[int, int]) -> None:
    """Search breadth-first for a free right vertex and shift the pairs on the way to it."""
    reached_from: dict[int, int] = {}
    frontier = [start]
    while frontier:
        following: list[int] = []
        for left in frontier:
            for right in edges[left]:
                if right in reached_from:
                    continue
                reached_from[right] = left
                if right not in left_of:
                    _shift(right, start, reached_from, left_of)
                    return
                following.append(left_of[right])
        frontier = following


def _shift(right: int, start: int, reached_from: Mapping[int, int], left_of: dict[int, int]) -> None:
    while True:
        left = reached_from[right]
        previous = next((other for other, owner in left_of.items() if owner == left), None) if left != start else None
        left_of[right] = left
        if previous is None:
            return
        right = previous
