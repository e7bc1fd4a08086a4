"""Bad records among many, where what reads many refuses all of them because of one.

It gives up at the first record that it cannot read, so a piece that fails costs no more than what is before that
record. So pieces shrink until they fail no more, and what is left of a small one is looked at with care.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

_SMALL: Final = 16
"""Records that are looked at one by one rather than tried in yet smaller pieces."""
_SHRINKING: Final = 4
_AFTER_BAD: Final = 64
"""How many are tried together next after a bad one."""


class Pieces(NamedTuple):
    """What could be read together, and what could not."""

    good: list[object]
    """What `attempt` returned."""
    rows: list[range]
    """Which records that was."""
    left: list[int]
    """Records that failed, or stood next to one that did."""


def read_in_pieces(
    items: Sequence[T], attempt: Callable[[Sequence[T]], object], failures: tuple[type[BaseException], ...]
) -> Pieces:
    """Read all that can be read; the whole has failed already."""
    good: list[object] = []
    rows: list[range] = []
    left: list[int] = []
    start = 0
    size = max(len(items) // _SHRINKING, 1)
    while start < len(items):
        size = min(size, len(items) - start)
        try:
            good.append(attempt(items[start : start + size]))
        except failures:
            if size > _SMALL:
                size = max(size // _SHRINKING, 1)
                continue
            left.extend(range(start, start + size))
            start += size
            size = _AFTER_BAD
        else:
            rows.append(range(start, start + size))
            start += size
            size *= 2
    return Pieces(good, rows, left)
