"""A cache that drops the least recently used values first."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by key, up to a total weight; the least recently used ones are dropped first. Thread-safe."""

    def __init__(self, *, weight_max: int) -> None:
        self._weight_max = weight_max
        self._weight = 0
        self._lock = threading.Lock()
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, if it is still in the cache."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, *, weight: int) -> None:
        """Add a value, unless it is heavier than the whole cache may be."""
        if weight > self._weight_max:
            return
        with self._lock:
            _, replaced = self._values.pop(key, (value, 0))
            self._values[key] = (value, weight)
            self._weight += weight - replaced
            while self._weight > self._weight_max:
                _, (_, dropped) = self._values.popitem(last=False)
                self._weight -= dropped
