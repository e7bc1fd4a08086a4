"""A cache of bounded size; entries may expire."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from core_broker.service.clock import Clock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key. Thread-safe.

    Reading takes no lock, because it happens once per record. Therefore the oldest entry is dropped first, not the
    least recently used one; a dropped entry that is needed again costs one request.
    """

    __slots__ = ("_capacity", "_clock", "_entries", "_lock", "_ttl_seconds")

    def __init__(self, capacity: int, *, clock: Clock, ttl_seconds: float | None = None) -> None:
        self._capacity = capacity
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._entries: dict[Key, tuple[float, Value]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The value, unless it is missing or expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._ttl_seconds is not None and self._clock.monotonic() - entry[0] >= self._ttl_seconds:
            return None
        return entry[1]

    def put(self, key: Key, value: Value) -> Value:
        """Add a value and return it."""
        with self._lock:
            self._entries.pop(key, None)
            while len(self._entries) >= self._capacity:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = (self._clock.monotonic(), value)
        return value

    def remove(self, matches: Callable[[Key], bool]) -> None:
        """Remove the entries whose keys match, because they are no longer true."""
        with self._lock:
            for key in [key for key in self._entries if matches(key)]:
                del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)
