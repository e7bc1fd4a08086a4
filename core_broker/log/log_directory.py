"""A directory of log.dirs, or that of metadata.log.dir: its lock, its identity, and whether it was closed cleanly.

`.lock` keeps a second broker out, Apache Kafka's included, `meta.properties` binds the directory to its node and
cluster, and `.kafka_cleanshutdown` says that the last run wrote everything before it ended, and under which broker
epoch; it is removed at start, so that a crash while loading counts as unclean, too.
"""

import base64
import contextlib
import errno
import fcntl
import json
import os
import re
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.checkpoints import sync_directory

LOCK_FILE = ".lock"
META_FILE = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

_META_VERSION = "1"
_META_VERSIONS_READ = ("0", _META_VERSION)
_MOVE_MARKER = ".moved."
_PARTITION_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})")
_MARKED_NAME = re.compile(r"(?P<name>.+)\.(?P<id>[0-9a-f]{32})(?P<suffix>-delete|-stray|-future)")
_NAME_LENGTH_MAX = 255
_WHOLE_FILE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""A lock that the one of the Java runtime conflicts with, which `flock` does not."""


class TopicPartitionName(NamedTuple):
    """Topic and partition from the name of a directory."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryMeta:
    """The content of meta.properties."""

    node_id: int
    cluster_id: str | None
    directory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSpace:
    """The size of a disk and its free space."""

    total_bytes: int
    usable_bytes: int


class LogDirectory:
    """One locked directory; close it to release the lock. `key` is the setting that names it, for errors."""

    def __init__(self, path: Path, *, key: str = "log.dirs") -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _storage_error(f"{key}: {path} cannot be created: {error.strerror}") from error
        self._lock_fd = _lock(path, key)
        self.was_clean = False
        self.previous_broker_epoch = -1
        """The epoch of the broker when it last stopped cleanly; -1 if it did not, or if the epoch is unknown."""
        self.meta: DirectoryMeta | None = None

    def identify(self, *, node_id: int, cluster_id: str | None) -> DirectoryMeta:
        """Check that the directory belongs to this node and cluster, or claim a new one for them.

        A node that has not joined its cluster yet has no cluster id: the directory is then claimed for the node only,
        and for the cluster by a second call.
        """
        path = self.path / META_FILE
        found = self.check_identity(node_id=node_id, cluster_id=cluster_id)
        directory_id = found.get("directory.id", "") or new_id()
        known_cluster = found.get("cluster.id") or cluster_id
        self.meta = DirectoryMeta(node_id=node_id, cluster_id=known_cluster, directory_id=directory_id)
        wanted = {"version": _META_VERSION, "node.id": str(node_id), "directory.id": directory_id}
        if known_cluster is not None:
            wanted["cluster.id"] = known_cluster
        if found != wanted:
            _write_properties(path, wanted)
        return self.meta

    def check_identity(self, *, node_id: int, cluster_id: str | None) -> dict[str, str]:
        """The content of meta.properties, empty for a new directory; raises BrokerError if it is not for this node."""
        path = self.path / META_FILE
        found = _read_properties(path)
        if found.get("version", _META_VERSION) not in _META_VERSIONS_READ:
            raise _storage_error(
                f"{path} has version {found['version']}, but this broker reads versions 0 and 1: the directory belongs "
                "to newer software; use that, or another directory for this broker"
            )
        _check_same(path, "node.id", found.get("node.id", found.get("broker.id")), str(node_id))
        _check_same(path, "cluster.id", found.get("cluster.id"), cluster_id)
        return found

    @property
    def directory_id(self) -> bytes:
        """The id of the directory, as the broker registers it; zero before `identify`."""
        return bytes(16) if self.meta is None else base64.urlsafe_b64decode(self.meta.directory_id + "==")

    def space(self) -> DiskSpace:
        """The space of the disk; raises OSError."""
        disk = os.statvfs(self.path)
        return DiskSpace(total_bytes=disk.f_frsize * disk.f_blocks, usable_bytes=disk.f_frsize * disk.f_bavail)

    def take_clean_marker(self) -> bool:
        """Whether the last run ended cleanly; removes the marker."""
        marker = self.path / CLEAN_SHUTDOWN_FILE
        self.was_clean = marker.exists()
        if self.was_clean:
            self.previous_broker_epoch = _read_broker_epoch(marker)
            marker.unlink()
            sync_directory(self.path)
        return self.was_clean

    def leave_clean_marker(self, *, broker_epoch: int = -1) -> None:
        """Write the marker that everything is on disk, in Kafka's JSON format since KIP-966."""
        marker = self.path / CLEAN_SHUTDOWN_FILE
        marker.write_text(json.dumps({"version": 0, "brokerEpoch": broker_epoch}), encoding="utf-8")
        sync_directory(self.path)

    def partition_directories(self) -> dict[TopicPartitionName, Path]:
        """Directories with the name of a partition."""
        found = {}
        with os.scandir(self.path) as listing:
            for entry in listing:
                name = parse_partition_name(entry.name)
                if name is not None and entry.is_dir(follow_symlinks=False):
                    found[name] = self.path / entry.name
        return found

    def future_directories(self) -> list[tuple[TopicPartitionName, Path]]:
        """Copies of logs that are being moved to this directory."""
        found = []
        for path in self.path.glob(f"*{FUTURE_SUFFIX}"):
            match = _MARKED_NAME.fullmatch(path.name)
            name = None if match is None else parse_partition_name(match["name"])
            if name is not None and path.is_dir():
                found.append((name, path))
        return found

    def marker_of_move(self, name: str) -> Path:
        """The file that makes the partition directory of this name win if another log directory has one, too."""
        return self.path / f"{_MOVE_MARKER}{name}"

    def markers_of_moves(self) -> list[tuple[Path, str]]:
        """The markers of moves interrupted by a crash, and the names of their partition directories."""
        return [(path, path.name.removeprefix(_MOVE_MARKER)) for path in self.path.glob(f"{_MOVE_MARKER}*")]

    def deleted_directories(self) -> list[Path]:
        """Directories whose deletion was interrupted by a stop."""
        return [path for path in self.path.glob(f"*{DELETE_SUFFIX}") if is_marked(path.name) and path.is_dir()]

    def close(self) -> None:
        """Release the lock."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def parse_partition_name(name: str) -> TopicPartitionName | None:
    """Topic and partition of `<topic>-<n>`; None for any other name, including marked ones."""
    if is_marked(name):
        return None
    match = _PARTITION_NAME.fullmatch(name)
    return None if match is None else TopicPartitionName(match["topic"], int(match["partition"]))


def is_marked(name: str) -> bool:
    """Whether a directory is marked for deletion, as a stray, or as a copy being moved."""
    return _MARKED_NAME.fullmatch(name) is not None


def marked_name(name: str, suffix: str) -> str:
    """`<topic>-<n>.<random id><suffix>`; the topic is shortened if the file name would be too long."""
    tail = f".{uuid.uuid4().hex}{suffix}"
    topic, _, partition = name.rpartition("-")
    room = _NAME_LENGTH_MAX - len(tail) - len(partition) - 1
    return f"{topic[:room]}-{partition}{tail}"


def new_id() -> str:
    """A random id in Kafka's format: 22 characters of URL-safe base64 that do not begin with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def _lock(path: Path, key: str) -> int:
    """Lock the directory for the lifetime of the process; the file contains the holder's pid."""
    fd = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _WHOLE_FILE)
    except OSError as error:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise _storage_error(f"{key}: {path} cannot be locked: {error.strerror}") from error
        raise _storage_error(f"{key}: {path} is in use by another broker (pid {holder}); stop it first") from error
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _read_broker_epoch(marker: Path) -> int:
    """The epoch in a clean-shutdown file; -1 if it has none, as in the empty file of older versions of Kafka."""
    try:
        content = json.loads(marker.read_bytes())
    except (OSError, ValueError):
        return -1
    epoch = content.get("brokerEpoch") if isinstance(content, dict) and content.get("version") == 0 else None
    return epoch if isinstance(epoch, int) and epoch >= 0 else -1


def _check_same(path: Path, key: str, found: str | None, wanted: str | None) -> None:
    if found is not None and wanted is not None and found != wanted:
        raise BrokerError(
            ErrorCode.INCONSISTENT_CLUSTER_ID if key == "cluster.id" else ErrorCode.INVALID_CONFIG,
            f"{path} belongs to {key}={found}, but this broker has {key}={wanted}; "
            f"correct log.dirs, or use another directory for this broker",
        )


def _read_properties(path: Path) -> dict[str, str]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise _storage_error(f"{path} is not a text file; restore or remove it") from error
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith(("#", "!")))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{key}={value}\n" for key, value in sorted(properties.items()))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    with contextlib.suppress(OSError):
        sync_directory(path.parent)


def _storage_error(message: str) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message)
