"""Files that have arrived in a folder, and whether a file is the one that was read before."""

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

from connect.api.data import Value

FINGERPRINT_BYTES: Final = 4096
_UNFINISHED: Final = (".tmp", ".part", ".crdownload")


class Arrival(NamedTuple):
    """A file as it was when it was opened."""

    path: Path
    name: str
    """Its path below the folder."""
    size: int
    modified_ms: int
    fingerprint: int
    """Of its first bytes."""

    @classmethod
    def of(cls, path: Path, folder: Path) -> Self:
        """A file as it is now."""
        status = path.stat()
        name = path.relative_to(folder).as_posix()
        return cls(path, name, status.st_size, status.st_mtime_ns // 1_000_000, _fingerprint(path, status.st_size))

    @property
    def partition(self) -> dict[str, Value]:
        """The source partition of its offsets."""
        return {"filename": self.name}

    @property
    def identity(self) -> dict[str, Value]:
        """What its offsets hold besides the position, so that it is recognised."""
        return {"size": self.size, "modified": self.modified_ms, "fingerprint": self.fingerprint}

    def resumes(self, offset: Mapping[str, Value], *, may_grow: bool) -> bool:
        """Whether an offset belongs to this very file, not to an earlier one of the same name.

        Unless files are kept, a file leaves the folder when all of it was read; one of the same name is another file
        then, even if it looks the same. In doubt it is another file: reading too much is harmless, skipping is not.
        """
        size = offset.get("size")
        if not isinstance(size, int) or size > self.size or _fingerprint(self.path, size) != offset.get("fingerprint"):
            return False
        is_untouched = offset.get("modified") == self.modified_ms and size == self.size
        return is_untouched or may_grow


def arrivals(folder: Path, pattern: str) -> Iterable[Path]:
    """The files that match, in no particular order."""
    for path in folder.glob(pattern):
        below = path.relative_to(folder).parts
        if not any(part.startswith(".") for part in below) and not path.name.endswith(_UNFINISHED) and path.is_file():
            yield path


def _fingerprint(path: Path, size: int) -> int:
    with path.open("rb") as stream:
        return zlib.crc32(stream.read(min(size, FINGERPRINT_BYTES)))
