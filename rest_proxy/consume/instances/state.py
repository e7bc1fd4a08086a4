"""Consumer instances on disk, so that they survive a restart of the proxy.

One small JSON file per instance, replaced as a whole and named by a hash. Its positions never go further than what the
client is known to have received: after a crash it may get records again, but misses none. Files are not synced to disk:
they survive the process, and mostly the machine.
"""

import hashlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from core_broker.service.clock import Clock
from rest_proxy.consume.instances.config import InstanceConfig

log = logging.getLogger(__name__)

_SUFFIX, _UNFINISHED = ".instance.json", ".new"
_MAX_FILE_BYTES = 16 * 1024 * 1024


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The position of a client in a partition."""

    topic: str
    partition: int
    offset: int
    is_explicit: bool = False
    """Whether it is the target of a seek: then it takes precedence over the group's commit."""


class Key(NamedTuple):
    """What tells instances apart. A caller cannot see instances of others, not even by name."""

    owner: str
    """The principal that it belongs to; empty where callers do not log in."""
    group: str
    name: str


class SavedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """All that an instance needs to continue, except the password or token of its owner."""

    group: str
    name: str
    owner: str = ""
    config: InstanceConfig
    topics: list[str] = []
    pattern: str | None = None
    assigned: list[tuple[str, int]] = []
    """Partitions that the client assigned itself."""
    positions: list[Position] = []

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return Key(self.owner, self.group, self.name)


class InstanceFiles:
    """A folder of saved instances, created with the first one. With an empty name nothing is saved."""

    def __init__(self, folder: str, *, timeout_ms: int, clock: Clock) -> None:
        self._folder = Path(folder) if folder else None
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._encode = msgspec.json.Encoder().encode
        if self._folder:
            _check_writable(self._folder)

    @property
    def is_kept(self) -> bool:
        """Whether instances survive a restart."""
        return self._folder is not None

    def save(self, instance: SavedInstance) -> None:
        """Save an instance; a failure is only logged, since the instance works without its file."""
        path = self._path(instance.key)
        if path is None:
            return
        unfinished = path.with_suffix(_UNFINISHED)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(self._encode(instance))
            unfinished.replace(path)
        except OSError as error:
            log.error("consumer instance cannot be saved", extra={"path": str(path), "reason": str(error)})

    def touch(self, key: Key) -> None:
        """Record that an instance was used just now."""
        if path := self._path(key):
            try:
                os.utime(path)
            except OSError:
                pass  # It is written with the next change.

    def load(self, key: Key) -> SavedInstance | None:
        """An instance that an earlier process has saved and that has not expired; None if there is none."""
        path = self._path(key)
        if path is None:
            return None
        try:
            if self._has_expired(path) or path.stat().st_size > _MAX_FILE_BYTES:
                return None
            found = msgspec.json.decode(path.read_bytes(), type=SavedInstance)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.error("saved consumer instance cannot be read", extra={"path": str(path), "reason": str(error)})
            return None
        return found if found.key == key else None

    def is_expired(self, key: Key) -> bool:
        """Whether an earlier process has saved this instance, but too long ago."""
        path = self._path(key)
        return path is not None and path.exists() and self._has_expired(path)

    def remove(self, key: Key) -> None:
        """Delete the file of an instance."""
        if path := self._path(key):
            path.unlink(missing_ok=True)

    def sweep(self, used: Iterable[Key]) -> None:
        """Delete the files of expired instances, except those in use."""
        if self._folder is None or not self._folder.is_dir():
            return
        kept = {self._path(key) for key in used}
        with os.scandir(self._folder) as entries:
            files = [Path(entry.path) for entry in entries if entry.name.endswith((_SUFFIX, _UNFINISHED))]
        for path in files:
            try:
                if path not in kept and self._has_expired(path):
                    path.unlink(missing_ok=True)
            except OSError:
                pass  # It was deleted meanwhile.

    def _has_expired(self, path: Path) -> bool:
        return self._clock.now_ms() - path.stat().st_mtime_ns // 1_000_000 > self._timeout_ms

    def _path(self, key: Key) -> Path | None:
        if self._folder is None:
            return None
        named = [key.group, key.name, *([key.owner] if key.owner else ())]
        digest = hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:40]
        return self._folder / f"{digest}{_SUFFIX}"


def _check_writable(folder: Path) -> None:
    """Raise ValueError unless files can be created in the folder, or the folder itself can be created."""
    nearest = folder.absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ValueError(
            f"state.dir {str(folder)!r} is not writable ({nearest} is not a folder, or not writable): choose another"
            " folder, or set it to nothing to keep consumer instances in memory only"
        )
