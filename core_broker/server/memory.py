"""Memory for requests that are still arriving: bounded, and used again rather than asked for anew."""

from collections import deque
from collections.abc import Callable
from typing import Final

SMALL_BYTES: Final = 64 * 1024
"""A connection may always hold this much; only growth beyond it is counted."""

_KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
_KEPT_MAX: Final = 64


class RequestMemory:
    """Buffers for large requests. Whoever finds it exhausted stops reading until somebody has given back."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: list[memoryview] = []
        self._kept_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self.in_use = 0

    def take(self, size: int, wanted: int) -> memoryview | None:
        """A buffer of at least `size` bytes, of `wanted` if one lies ready; None when the limit is reached.

        `wanted` comes from a length that a stranger sent: memory is only taken for bytes that have arrived.
        """
        for index, kept in enumerate(self._kept):
            if len(kept) >= wanted:
                del self._kept[index]
                self._kept_bytes -= len(kept)
                self.in_use += len(kept)
                return kept
        size = max(_round_up(size), SMALL_BYTES)
        if size > SMALL_BYTES and self.in_use + size > self._bytes_max and self.in_use > 0:
            return None
        self.in_use += size
        return memoryview(bytearray(size))

    def give(self, buffer: memoryview) -> None:
        """Take a buffer back, and let the next connection that waited go on."""
        self.in_use -= len(buffer)
        if len(self._kept) < _KEPT_MAX and self._kept_bytes + len(buffer) <= _KEPT_BYTES_MAX:
            self._kept.append(buffer)
            self._kept_bytes += len(buffer)
        if self._waiting:
            self._waiting.popleft()()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when memory has been given back."""
        self._waiting.append(resume)

    def forget(self, resume: Callable[[], None]) -> None:
        """The connection that waited is gone."""
        if resume in self._waiting:
            self._waiting.remove(resume)


def _round_up(size: int) -> int:
    """The next power of two, so that buffers fit the next request too."""
    return 1 << (size - 1).bit_length()
