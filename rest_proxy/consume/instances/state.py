"""Consumer instances on disk, so that they survive a restart of the proxy.

One small JSON file for each instance, replaced as a whole and named by a hash. What is in it is at most as far as the
client has told, by coming back, that it has got: after a crash it may be answered records again that it had, never
miss one. Files are not forced to disk: they survive the process, and mostly the machine.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from core_broker.service.clock import Clock
from rest_proxy.consume.instances.config import InstanceConfig

log = logging.getLogger(__name__)

_SUFFIX, _UNFINISHED = ".instance.json", ".new"
_MAX_FILE_BYTES = 16 * 1024 * 1024


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where a client stands in a partition."""

    topic: str
    partition: int
    offset: int
    is_sought: bool = False
    """Whether the client went there by itself: then it counts more than what the group has committed."""


class SavedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """All that an instance needs to go on."""

    group: str
    name: str
    config: InstanceConfig
    topics: list[str] = []
    pattern: str | None = None
    assigned: list[tuple[str, int]] = []
    """Partitions of the client's own choice."""
    positions: list[Position] = []


class InstanceFiles:
    """A folder of instances; made when the first is written. An empty name keeps nothing."""

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
        """Write an instance down; what cannot be written is logged, for the instance lives on without it."""
        path = self._path(instance.group, instance.name)
        if path is None:
            return
        beside = path.with_suffix(_UNFINISHED)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(self._encode(instance))
            beside.replace(path)
        except OSError as error:
            log.error("consumer instance cannot be written down", extra={"path": str(path), "reason": str(error)})

    def touch(self, group: str, name: str) -> None:
        """Note that an instance was used just now."""
        if path := self._path(group, name):
            try:
                os.utime(path)
            except OSError:
                pass  # It is written with the next change.

    def load(self, group: str, name: str) -> SavedInstance | None:
        """An instance that an earlier process has left, and that has not expired since; None if there is none."""
        path = self._path(group, name)
        if path is None:
            return None
        try:
            if self._has_expired(path) or path.stat().st_size > _MAX_FILE_BYTES:
                return None
            found = msgspec.json.decode(path.read_bytes(), type=SavedInstance)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.error("consumer instance cannot be read", extra={"path": str(path), "reason": str(error)})
            return None
        return found if (found.group, found.name) == (group, name) else None

    def is_expired(self, group: str, name: str) -> bool:
        """Whether an earlier process has left this instance, too long ago."""
        path = self._path(group, name)
        return path is not None and path.exists() and self._has_expired(path)

    def remove(self, group: str, name: str) -> None:
        """Forget an instance."""
        if path := self._path(group, name):
            path.unlink(missing_ok=True)

    def sweep(self, used: Iterable[tuple[str, str]]) -> None:
        """Remove the files of instances that have expired, save those that are in use."""
        kept = {self._path(group, name) for group, name in used}
        for path in self._files():
            try:
                if path not in kept and self._has_expired(path):
                    path.unlink(missing_ok=True)
            except OSError:
                pass  # Somebody else has removed it.

    def _has_expired(self, path: Path) -> bool:
        return self._clock.now_ms() - path.stat().st_mtime_ns // 1_000_000 > self._timeout_ms

    def _files(self) -> Iterator[Path]:
        if self._folder and self._folder.is_dir():
            with os.scandir(self._folder) as entries:
                yield from (Path(entry.path) for entry in entries if entry.name.endswith((_SUFFIX, _UNFINISHED)))

    def _path(self, group: str, name: str) -> Path | None:
        if self._folder is None:
            return None
        digest = hashlib.sha256(msgspec.json.encode([group, name])).hexdigest()[:40]
        return self._folder / f"{digest}{_SUFFIX}"


def _check_writable(folder: Path) -> None:
    """Raise ValueError unless files can be made in the folder, or the folder itself."""
    nearest = folder.absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ValueError(
            f"state.dir {str(folder)!r} cannot be written to ({nearest} is no folder, or not writable): choose another"
            " folder, or set it to nothing, which keeps consumer instances in memory alone"
        )
