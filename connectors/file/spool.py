"""An unfinished file: its bytes are in memory, and are written to disk when there are many of them.

They are written at a known position, so that it can be tried again after an error; `write` does not touch the disk.
"""

import os
from pathlib import Path
from typing import Final

SPILL_BYTES: Final = 1 << 20


class Spool:
    """A file-like object that collects bytes. No descriptor stays open."""

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
        """Does nothing: bytes are written to disk by `spill` and `sync`."""

    def close(self) -> None:
        """Does nothing: no file is open."""

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
        """How many bytes are not on disk."""
        return len(self._buffer)

    @property
    def is_large(self) -> bool:
        """Whether it should be spilled."""
        return len(self._buffer) >= SPILL_BYTES

    def spill(self) -> None:
        """Write to disk what is in memory; after an OSError nothing is lost, and it can be called again."""
        self._write_to_disk(durable=False)

    def sync(self) -> None:
        """The same, and make it durable."""
        self._write_to_disk(durable=True)

    def discard(self) -> None:
        """Delete everything."""
        self._buffer.clear()
        self.path.unlink(missing_ok=True)

    def _write_to_disk(self, *, durable: bool) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # What was written before must still be there: a file that was deleted is an error, not a hole.
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
