"""The deadlines of all groups in one heap, updated lazily.

A heartbeat only defers a deadline, so it does not touch the heap: at the old deadline the group finds nothing to do and
is added again with the new one.
"""

import heapq
import itertools


class Deadlines:
    """The next deadline of each key, which is (partition, group id)."""

    def __init__(self) -> None:
        self._armed: dict[tuple[int, str], float] = {}
        self._heap: list[tuple[float, int, tuple[int, str]]] = []
        self._order = itertools.count()

    def arm(self, key: tuple[int, str], moment: float) -> bool:
        """Make `key` due at `moment` or before; True if it is now the next one."""
        armed = self._armed.get(key)
        if armed is not None and armed <= moment:
            return False
        self._armed[key] = moment
        heapq.heappush(self._heap, (moment, next(self._order), key))
        return self._heap[0][2] == key

    def take_due(self, now: float, *, limit: int) -> list[tuple[int, str]]:
        """The keys that are due, at most `limit`; each must be armed again."""
        due: list[tuple[int, str]] = []
        while self._heap and self._heap[0][0] <= now and len(due) < limit:
            moment, _, key = heapq.heappop(self._heap)
            if self._armed.get(key) == moment:  # otherwise it has been armed for an earlier moment since
                del self._armed[key]
                due.append(key)
        return due

    def next_moment(self) -> float | None:
        """When to call `take_due` next; possibly too early."""
        return self._heap[0][0] if self._heap else None
