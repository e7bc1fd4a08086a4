"""A file that is not finished: bytes are kept in memory, and spilled to the disk when there are many of them.

Spilling writes at a known position, so that it can be tried again after an error; the disk is not touched by `write`.
"""

import os
from pathlib import Path
from typing import Final

SPILL_BYTES: Final = 1 << 20


class Spool:
    """Takes bytes; a file-like object for libraries that write by themselves. No descriptor stays open."""

    closed = False
    mode = "wb"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._buffer = bytearray()
        self._spilled = 0

    def write(self, data: bytes) -> int:
        """Add bytes."""
        self._buffer += data
        return len(data)

    def tell(self) -> int:
        """How many bytes there are."""
        return self._spilled + len(self._buffer)

    def flush(self) -> None:
        """Nothing: bytes go to the disk by `spill` and `sync`."""

    def close(self) -> None:
        """Nothing: there is nothing open."""

    def writable(self) -> bool:
        """It is."""
        return True

    def readable(self) -> bool:
        """It is not."""
        return False

    def seekable(self) -> bool:
        """It is not."""
        return False

    @property
    def in_memory(self) -> int:
        """How many bytes are not on the disk."""
        return len(self._buffer)

    @property
    def is_large(self) -> bool:
        """Whether it should be spilled."""
        return len(self._buffer) >= SPILL_BYTES

    def spill(self) -> None:
        """Bring to the disk what is in memory; after an OSError nothing is lost, and it can be called again."""
        self._to_disk(durable=False)

    def sync(self) -> None:
        """The same, and make it durable."""
        self._to_disk(durable=True)

    def discard(self) -> None:
        """Leave nothing behind."""
        self._buffer.clear()
        self.path.unlink(missing_ok=True)

    def _to_disk(self, *, durable: bool) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # What was spilled before must still be there: a file that was taken away is an error, not a hole.
        flags = os.O_WRONLY | (0 if self._spilled else os.O_CREAT | os.O_TRUNC)
        descriptor = os.open(self.path, flags, 0o644)
        try:
            view, done = memoryview(self._buffer), 0
            while done < len(view):
                done += os.pwrite(descriptor, view[done:], self._spilled + done)
            view.release()
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._spilled += done
        self._buffer.clear()


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
