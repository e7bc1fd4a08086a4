"""A bounded map from keys to their newest offsets, for the part of a log that compaction reads.

Short keys are stored directly; longer ones are replaced by a 128-bit hash, so an entry costs about the same for any
key. When the limit is reached, the cleaner stops reading and cleans only up to that offset.
"""

from hashlib import blake2b

ENTRY_BYTES = 192
"""Memory per key: dictionary slot, key and offset, measured on CPython 3.11 and rounded up."""

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
        """Store the offset; False if the key is new and there is no room for it. Offsets must be increasing."""
        short = _shorten(key)
        if len(self._offsets) >= self.capacity and short not in self._offsets:
            return False
        self._offsets[short] = offset
        return True

    def newest(self, key: bytes) -> int:
        """Newest offset of the key; -1 if it was not read."""
        return self._offsets.get(_shorten(key), -1)


def _shorten(key: bytes) -> bytes:
    """The key itself, or its hash, which is one byte longer than any key stored directly, so they never collide."""
    if len(key) <= _DIGEST_BYTES:
        return key
    return b"#" + blake2b(key, digest_size=_DIGEST_BYTES).digest()
