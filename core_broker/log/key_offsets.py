"""Key → newest offset, for the part of a log that compaction is about to read: a map with a limit.

Short keys stand for themselves; longer ones are replaced by a 128-bit hash, so an entry costs about the same whatever
the key. When the limit is reached the cleaner stops reading there and cleans up to that offset only.
"""

from hashlib import blake2b

ENTRY_BYTES = 192
"""What one key costs in memory: dictionary slot, key and offset, measured on CPython 3.11 and rounded up."""

_DIGEST_BYTES = 16


class KeyOffsets:
    """The newest offset of each key seen so far, at most `capacity` keys."""

    __slots__ = ("_offsets", "capacity", "end_offset")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.end_offset = 0
        """Everything below this offset has been read."""
        self._offsets: dict[bytes, int] = {}

    @classmethod
    def of_size(cls, memory_bytes: int, *, load_factor: float = 0.9) -> "KeyOffsets":
        """A map that stays within `memory_bytes` (log.cleaner.dedupe.buffer.size)."""
        return cls(max(1, int(memory_bytes * load_factor) // ENTRY_BYTES))

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Remember the offset; False when the key is new and there is no room for it. Offsets must rise."""
        short = _shorten(key)
        if len(self._offsets) >= self.capacity and short not in self._offsets:
            return False
        self._offsets[short] = offset
        return True

    def newest(self, key: bytes) -> int:
        """Newest offset of the key; -1 when it does not occur in what was read."""
        return self._offsets.get(_shorten(key), -1)


def _shorten(key: bytes) -> bytes:
    """The key itself, or its hash, which is one byte longer than any key that stands for itself: they never meet."""
    if len(key) <= _DIGEST_BYTES:
        return key
    return b"#" + blake2b(key, digest_size=_DIGEST_BYTES).digest()
