"""Partitions of windowed keys: as in Kafka Streams, all windows of a key are in one partition."""

from functools import lru_cache
from typing import Final

import pyarrow as pa

from streams.model.sources import WindowInfo

_MASK: Final = 0xFFFFFFFF
_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_CACHED: Final = 100_000
_WINDOW_BYTES: Final = {"TUMBLING": 8, "HOPPING": 8, "SESSION": 16}
"""How long the window is that follows a key."""


def windowed_partitions(keys: pa.Array, window: WindowInfo, count: int) -> pa.Array:
    """The partition of each key, chosen by what is before its window."""
    behind = _WINDOW_BYTES[window.kind]
    chosen = [None if key is None else _partition(key[:-behind], count) for key in keys.to_pylist()]
    return pa.array(chosen, pa.int32())


@lru_cache(maxsize=_CACHED)
def _partition(key: bytes, count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """The hash by which Kafka's clients choose partitions."""
    found = _SEED ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _FACTOR & _MASK
        word = (word ^ (word >> 24)) * _FACTOR & _MASK
        found = (found * _FACTOR & _MASK) ^ word
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    found = (found ^ (found >> 13)) * _FACTOR & _MASK
    return found ^ (found >> 15)
