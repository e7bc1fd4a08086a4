"""Memory for requests that are still arriving: bounded, and reused rather than allocated anew.

A request is admitted as a whole: its announced size is reserved before more of it is read, so every admitted request
can be completed. (If memory were reserved piece by piece, half-received requests could wait for each other forever.)
Memory is actually allocated only for bytes that have arrived.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import Final

SMALL_BYTES: Final = 64 * 1024
"""A connection may always use this much; only larger requests count towards the budget."""

_KEPT_BYTES_MAX: Final = 32 * 1024 * 1024
_KEPT_MAX: Final = 64


class RequestMemory:
    """The budget of all large requests together, and buffers to receive them in."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: list[memoryview] = []  # the smallest first
        self._kept_bytes = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self.reserved = 0

    @property
    def is_short(self) -> bool:
        """Whether requests are waiting for memory."""
        return bool(self._waiting)

    def reserve(self, size: int, granted: Callable[[], None]) -> bool:
        """Admit a request of `size` bytes: True at once, or False, and `granted` is called once it is admitted."""
        if not self._waiting and self._fits(size):
            self.reserved += size
            return True
        self._waiting.append((size, granted))
        return False

    def release(self, size: int) -> None:
        """Return the memory of a request that was read or given up; admits those that have waited longest."""
        self.reserved -= size
        self._admit()

    def forget(self, granted: Callable[[], None]) -> None:
        """Remove a waiting request whose connection was closed."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != granted)
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, granted = self._waiting.popleft()
            self.reserved += size
            granted()

    def _fits(self, size: int) -> bool:
        """A request larger than the whole budget is admitted when it is alone."""
        return self.reserved + size <= self._bytes_max or self.reserved == 0

    def take(self, size: int, wanted: int) -> memoryview:
        """A buffer of at least `size` bytes, and of `wanted` bytes if there is a free one.

        `wanted` is a length sent by an untrusted client: nothing is allocated for it.
        """
        kept = self._kept
        index = bisect_left(kept, wanted, key=len)
        if index == len(kept) and kept and len(kept[-1]) >= size:
            index -= 1  # too small for the whole request, but not smaller than what would be allocated now
        if index < len(kept):
            buffer = kept.pop(index)
            self._kept_bytes -= len(buffer)
            return buffer
        # Rounded up to a multiple of SMALL_BYTES, so that buffers fit the next request, too.
        return memoryview(bytearray(-(-size // SMALL_BYTES) * SMALL_BYTES))

    def give(self, buffer: memoryview) -> None:
        """Return a buffer to the pool for the next request; the smallest buffers are dropped to make room.

        A request that grows leaves its smaller buffers here. If those could fill the pool, every large request would
        have to allocate new memory, which the kernel must clear.
        """
        insort(self._kept, buffer, key=len)
        self._kept_bytes += len(buffer)
        while len(self._kept) > _KEPT_MAX or self._kept_bytes > _KEPT_BYTES_MAX:
            self._kept_bytes -= len(self._kept.pop(0))
