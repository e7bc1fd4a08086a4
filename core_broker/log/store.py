"""All logs of this broker: loads them at start, creates and deletes them, and closes them cleanly.

Each directory of log.dirs, and that of metadata.log.dir, is locked and belongs to a node and a cluster. Checkpoints in
each directory store the recovery point, the start offset, the high watermark and the cleaned offset of each log. After
a clean stop, logs are trusted and opened sequentially, which takes about a tenth of a millisecond each; otherwise they
are recovered in threads.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.checkpoints import read_offsets, write_offsets, write_topic_id
from core_broker.log.directory_moves import DirectoryMoves, finish_interrupted_moves
from core_broker.log.group_commit import DEFAULT_TIMEOUT_SECONDS, GroupCommit
from core_broker.log.log_directory import (
    CLEANER_FILE,
    DELETE_SUFFIX,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    META_FILE,
    RECOVERY_POINT_FILE,
    STRAY_SUFFIX,
    LogDirectory,
    TopicPartitionName,
    marked_name,
    new_id,
)
from core_broker.log.partition_log import PartitionLog
from core_broker.log.segment import Segment, segment_name
from core_broker.log.upkeep import Upkeep
from core_broker.protocol.primitives import ZERO_UUID
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings, TopicSettings

log = logging.getLogger(__name__)

METADATA_TOPIC = "__cluster_metadata"
"""Its log is opened by the quorum itself, because it must be replayed before anything else is known."""

_FLUSH_THREADS = 8
_CLOSE_THREADS = 8

Key = tuple[str, int]
"""Topic and partition."""


class LogStore:
    """The logs of one broker. Used on the event loop, except for loading and closing."""

    def __init__(self, log_dirs: Iterable[str | Path], settings: BrokerSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.cluster_id: str | None = settings.cluster_id
        self.high_watermarks: dict[Key, int] = {}
        """High watermarks as of the last checkpoint: where a follower starts before it contacts its leader."""
        self.cleaner_offsets: dict[Key, int] = {}
        """Up to where each compacted log has been cleaned."""
        self.high_watermark_of: Callable[[PartitionLog], int] = self._checkpointed_high_watermark
        """Used before anything is deleted or cleaned; `Partitions` replaces it by what is committed."""
        self._paths = [Path(path) for path in log_dirs]
        self._directories: list[LogDirectory] = []
        self._own_metadata_directory: LogDirectory | None = None
        """Only if metadata.log.dir is not one of log.dirs."""
        self._logs: dict[Key, PartitionLog] = {}
        self._homes: dict[Key, LogDirectory] = {}
        self._failed: dict[Key, str] = {}
        self._prepared: dict[Key, LogDirectory] = {}
        self._commits: dict[Key, GroupCommit] = {}
        self._untouched: dict[Key, tuple[int, Sequence[Segment]]] = {}
        """End and segments of cleanly loaded logs: those that have not changed need not be closed."""
        self._flush_threads = ThreadPoolExecutor(_FLUSH_THREADS, thread_name_prefix="log-flush")
        self._deletions: list[tuple[float, Path]] = []
        self.moves = DirectoryMoves(self)
        """Partitions being moved from one directory to another."""

    # -- looking up ----------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, None if this broker does not have it."""
        return self._logs.get((topic, partition))

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(tuple(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def directories(self) -> tuple[LogDirectory, ...]:
        """The locked directories, for DescribeLogDirs and the registration of the broker."""
        return tuple(self._directories)

    @property
    def was_clean(self) -> bool:
        """Whether the last run ended cleanly for every directory."""
        return all(directory.was_clean for directory in self._directories)

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last run, for BrokerRegistration; -1 unless every directory was left clean by it.

        The controller trusts a broker that sends its previous epoch to have lost nothing (KIP-966): when in doubt, -1.
        """
        epochs = {directory.previous_broker_epoch for directory in self._directories}
        return epochs.pop() if len(epochs) == 1 and not self._failed else -1

    @property
    def metadata_directory(self) -> LogDirectory:
        """The directory of the metadata log; its id is that of this node as a voter."""
        chosen = self.settings.metadata_log_dir
        found = None if chosen is None else self._find_directory(Path(chosen))
        return self._own_metadata_directory or found or self._directories[0]

    def is_current(self, partition_log: PartitionLog) -> bool:
        """Whether the log is still that of its partition, and was not deleted or recreated."""
        return self._logs.get((partition_log.topic, partition_log.partition)) is partition_log

    # -- loading -------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Lock the directories and open every log in them; raises BrokerError if one belongs to another node."""
        try:
            for path in self._paths:
                self._directories.append(LogDirectory(path))
            self._lock_metadata_directory()
            # All directories must belong to this node and one cluster, or none is changed. A node that joins a cluster
            # learns its id later.
            cluster_id = self.cluster_id
            for directory in self._all_directories:
                found = directory.check_identity(node_id=self.settings.node_id, cluster_id=cluster_id)
                cluster_id = found.get("cluster.id") or cluster_id
            for directory in self._all_directories:
                meta = directory.identify(node_id=self.settings.node_id, cluster_id=self.cluster_id)
                self.cluster_id = meta.cluster_id
            if self.cluster_id is not None or self.settings.forms_cluster:
                self.adopt_cluster_id(self.cluster_id or new_id())
            self._check_directory_ids()
            finish_interrupted_moves(self.directories)
            for directory in self._directories:
                self._load_directory(directory)
            self.moves.resume()
        except BaseException:
            self._unlock()
            raise
        log.info("logs loaded", extra={"partitions": len(self._logs), "clean": self.was_clean})

    def _lock_metadata_directory(self) -> None:
        """Lock the directory of the metadata log, and refuse a metadata log in any other."""
        chosen = self.settings.metadata_log_dir
        if chosen is not None and self._find_directory(Path(chosen)) is None:
            self._own_metadata_directory = LogDirectory(Path(chosen), key="metadata.log.dir")
        home = self.metadata_directory
        for directory in self._all_directories:
            if directory is not home and (directory.path / f"{METADATA_TOPIC}-0").exists():
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{directory.path} holds the metadata log, which is expected in {home.path}; set metadata.log.dir="
                    f"{directory.path}, or move {METADATA_TOPIC}-0 to {home.path}",
                )

    def _find_directory(self, path: Path) -> LogDirectory | None:
        return next((found for found in self._directories if found.path.resolve() == path.resolve()), None)

    @property
    def _all_directories(self) -> list[LogDirectory]:
        """The directories of log.dirs, and that of the metadata log."""
        own = self._own_metadata_directory
        return self._directories if own is None else [*self._directories, own]

    def adopt_cluster_id(self, cluster_id: str) -> None:
        """Bind every directory to a cluster; raises BrokerError INCONSISTENT_CLUSTER_ID if one belongs to another."""
        for directory in self._all_directories:
            directory.identify(node_id=self.settings.node_id, cluster_id=cluster_id)
        self.cluster_id = cluster_id

    def _check_directory_ids(self) -> None:
        """Refuse copies of a directory: the controller could not tell which of them has a partition."""
        seen: dict[bytes, LogDirectory] = {}
        for directory in self._all_directories:
            other = seen.setdefault(directory.directory_id, directory)
            if other is not directory:
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{directory.path} and {other.path} have the same directory.id in {META_FILE}: one is a copy of "
                    "the other; remove the copy",
                )

    def _load_directory(self, directory: LogDirectory) -> None:
        is_clean = directory.take_clean_marker()
        recovery_points = read_offsets(directory.path / RECOVERY_POINT_FILE)
        start_offsets = read_offsets(directory.path / LOG_START_FILE)
        self.high_watermarks.update(read_offsets(directory.path / HIGH_WATERMARK_FILE))
        self.cleaner_offsets.update(read_offsets(directory.path / CLEANER_FILE))
        self._deletions.extend((self.clock.monotonic(), path) for path in directory.deleted_directories())
        settings = TopicSettings.resolve({}, self.settings)

        def open_one(name: TopicPartitionName, path: Path) -> None:
            self._open_found(
                name,
                path,
                settings,
                recovery_point=recovery_points.get(name, 0),
                start_offset=start_offsets.get(name, 0),
                clean=is_clean,
            )

        found = {n: path for n, path in directory.partition_directories().items() if n.topic != METADATA_TOPIC}
        for name in found:
            if name in self._homes:
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"partition {name.topic}-{name.partition} is both in {self._homes[name].path} and in "
                    f"{directory.path}; remove one of them",
                )
            self._homes[name] = directory
        if is_clean:
            for name, path in found.items():
                open_one(name, path)
            return
        with ThreadPoolExecutor(self.settings.num_recovery_threads_per_data_dir, "log-recovery") as threads:
            list(threads.map(open_one, found.keys(), found.values()))

    def _open_found(
        self,
        name: TopicPartitionName,
        path: Path,
        settings: TopicSettings,
        *,
        recovery_point: int,
        start_offset: int,
        clean: bool,
    ) -> None:
        """Open a log found at start; if that fails, the error is logged and the partition is offline."""
        try:
            opened = PartitionLog.open(
                path,
                topic=name.topic,
                partition=name.partition,
                settings=settings,
                clock=self.clock,
                recovery_point=recovery_point,
                start_offset=start_offset,
                clean=clean,
                producer_expiration_ms=self.settings.producer_id_expiration_ms,
            )
        except (BrokerError, OSError, ValueError) as error:
            log.exception("log cannot be opened; the partition is offline", extra={"path": str(path)})
            self._failed[name] = str(error)
            return
        self._logs[name] = opened
        if clean:
            self._untouched[name] = (opened.end_offset, opened.segments)

    def remove_strays(self, topic_ids: Mapping[str, bytes]) -> int:
        """Set aside the logs of topics that are not in the metadata, or have another id there."""
        strays = [key for key in self._logs if key[0] not in topic_ids or not self._is_of_topic(key, topic_ids[key[0]])]
        for key in strays:
            self._set_aside(key)
        return len(strays)

    def _is_of_topic(self, key: Key, topic_id: bytes) -> bool:
        found = self._logs[key].topic_id
        return found in (topic_id, ZERO_UUID) or topic_id == ZERO_UUID

    def _set_aside(self, key: Key) -> None:
        path = self._rename(key, STRAY_SUFFIX)
        log.warning("stray log set aside", extra={"topic": key[0], "partition": key[1], "path": str(path)})

    def configure(self, settings: BrokerSettings) -> None:
        """Take settings that changed while the broker runs."""
        before, self.settings = self.settings, settings
        self.moves.bytes_per_second = settings.replica_alter_log_dirs_io_max_bytes_per_second
        if settings.producer_id_expiration_ms != before.producer_id_expiration_ms:
            for partition_log in (*self, *(move.copy for move in self.moves)):
                partition_log.expire_producers_after(settings.producer_id_expiration_ms)

    # -- creating and deleting -----------------------------------------------------------------------------------------

    def create(self, topic: str, partition: int, topic_id: bytes, settings: TopicSettings) -> PartitionLog:
        """The log of a partition with these settings, either existing or new.

        A log of a deleted topic with the same name is set aside first.
        """
        key = (topic, partition)
        if key in self._failed:
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {topic}-{partition} cannot be opened: {self._failed[key]}"
            )
        if key in self._logs and not self._is_of_topic(key, topic_id):
            self._set_aside(key)
        known = self._logs.get(key)
        if known is not None:
            known.configure(settings)
            return known
        return self._create(TopicPartitionName(*key), topic_id, settings)

    async def prepare(self, topic: str, partitions: Sequence[int], topic_id: bytes) -> None:
        """Create the files of many new partitions in a thread: `create` then finds them and does not stall the loop."""
        paths = []
        for partition in partitions:
            directory = self._prepared[topic, partition] = self._choose_directory((topic, partition))
            paths.append(directory.path / f"{topic}-{partition}")
        await asyncio.to_thread(_create_empty_logs, paths, topic_id)

    def _create(self, key: TopicPartitionName, topic_id: bytes, settings: TopicSettings) -> PartitionLog:
        directory = self._prepared.pop(key, None) or self._choose_directory(key)
        created = PartitionLog.open(
            directory.path / f"{key.topic}-{key.partition}",
            topic=key.topic,
            partition=key.partition,
            settings=settings,
            clock=self.clock,
            clean=True,
            topic_id=topic_id,
            producer_expiration_ms=self.settings.producer_id_expiration_ms,
        )
        self._logs[key] = created
        self._homes[key] = directory
        return created

    def _choose_directory(self, key: Key) -> LogDirectory:
        """The requested directory, or else the one with the fewest partitions; ties are broken round-robin."""
        preferred = self.moves.take_preference(key)
        if preferred is not None or len(self._directories) == 1:
            return preferred or self._directories[0]
        counts = Counter(id(directory) for directory in (*self._homes.values(), *self._prepared.values()))
        shift = key[1] % len(self._directories)
        candidates = self._directories[shift:] + self._directories[:shift]
        return min(candidates, key=lambda directory: counts[id(directory)])

    def delete(self, topic: str, partition: int) -> None:
        """Remove a log at once; its files are deleted in the background after file.delete.delay.ms."""
        key = (topic, partition)
        if key not in self._homes:
            return
        known = self._logs.get(key)
        delay_ms = 0 if known is None else known.settings.file_delete_delay_ms
        self.delete_later(self._rename(key, DELETE_SUFFIX), delay_ms)
        log.info("log deleted", extra={"topic": topic, "partition": partition})

    def delete_later(self, path: Path, delay_ms: int) -> None:
        """Delete a directory in the background after a delay."""
        self._deletions.append((self.clock.monotonic() + delay_ms / 1000, path))

    def rehome(self, key: Key, directory: LogDirectory) -> None:
        """Note that the log of a partition has moved to another directory.

        The copy may contain batches as they were before a cleaning that ran meanwhile, so it is cleaned from the start.
        """
        self._homes[key] = directory
        self.cleaner_offsets.pop(key, None)

    def _rename(self, key: Key, suffix: str) -> Path:
        """Remove a log from the store and rename its directory, so that no start opens it again."""
        self.moves.cancel(key)
        removed = self._logs.pop(key, None)
        path = self._homes.pop(key).path / f"{key[0]}-{key[1]}"
        for table in (self._commits, self._failed, self._untouched, self.high_watermarks, self.cleaner_offsets):
            table.pop(key, None)
        if removed is not None:
            for segment in removed.segments:
                segment.release_files()
        return path.rename(path.with_name(marked_name(path.name, suffix)))

    def take_due_directories(self) -> list[Path]:
        """Directories of deleted logs whose deletion is due; the caller deletes them."""
        now = self.clock.monotonic()
        due = [path for at, path in self._deletions if at <= now]
        self._deletions = [(at, path) for at, path in self._deletions if at > now]
        return due

    def note_truncation(self, topic: str, partition: int, offset: int) -> None:
        """Lower the cleaned offset after a truncation: what is appended now was never cleaned (KAFKA-3330)."""
        cleaned = self.cleaner_offsets.get((topic, partition))
        if cleaned is not None and cleaned > offset:
            self.cleaner_offsets[topic, partition] = offset

    # -- durability ----------------------------------------------------------------------------------------------------

    async def flush_now(self, partition_log: PartitionLog, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Return once everything in the log is on disk; concurrent callers share one fdatasync.

        Raises KAFKA_STORAGE_ERROR if the disk fails or is too slow.
        """
        if partition_log.recovery_point >= partition_log.end_offset:
            return
        key = (partition_log.topic, partition_log.partition)
        commit = self._commits.get(key)
        if commit is None:
            commit = self._commits[key] = GroupCommit(partition_log.flush, self._flush_threads)
        await commit.wait(timeout_seconds)

    def _checkpointed_high_watermark(self, of: PartitionLog) -> int:
        """The high watermark before partitions know theirs: a start that fails must not raise it."""
        stored = self.high_watermarks.get((of.topic, of.partition), of.start_offset)
        return min(max(stored, of.start_offset), of.end_offset)

    def checkpoint(self) -> None:
        """Write every checkpoint of every directory."""
        for directory in self._directories:
            for name, offsets in self.checkpoints_of(directory).items():
                write_offsets(directory.path / name, offsets)

    def checkpoints_of(self, directory: LogDirectory) -> dict[str, dict[Key, int]]:
        """The current content of a directory's checkpoint files, by file name."""
        logs = {key: self._logs[key] for key, home in self._homes.items() if home is directory and key in self._logs}
        self.high_watermarks.update({key: self.high_watermark_of(found) for key, found in logs.items()})
        # Copies are included, because at any moment they may become the logs of this directory.
        coming = self.moves.into(directory)
        recovery_points = {key: found.recovery_point for key, found in logs.items()}
        recovery_points |= {key: move.copy.recovery_point for key, move in coming.items()}
        starts = {key: found.start_offset for key, found in logs.items()}
        starts |= {key: move.source.start_offset for key, move in coming.items()}
        return {
            RECOVERY_POINT_FILE: recovery_points,
            LOG_START_FILE: {key: start for key, start in starts.items() if start > 0},
            HIGH_WATERMARK_FILE: {key: self.high_watermarks[key] for key in logs},
            CLEANER_FILE: {key: self.cleaner_offsets[key] for key in logs if key in self.cleaner_offsets},
        }

    # -- run and close -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the background work until cancelled: retention, compaction, flushes, checkpoints, expiry, moves."""
        async with asyncio.TaskGroup() as group:
            group.create_task(Upkeep(self).run())
            group.create_task(self.moves.run())

    def close(self, *, broker_epoch: int = -1) -> None:
        """Sync everything to disk and leave a marker that says so; call it after `run` was cancelled.

        `broker_epoch` is that of the broker's registration, or -1 if it was not registered.
        """
        self._flush_threads.shutdown(wait=True)
        with ThreadPoolExecutor(_CLOSE_THREADS, "log-close") as threads:
            unclean = {key for key in threads.map(self._close_log, tuple(self._logs.items())) if key is not None}
        try:
            self.checkpoint()
            for directory in self._directories:
                if not any(self._homes[key] is directory for key in unclean | set(self._failed)):
                    directory.leave_clean_marker(broker_epoch=broker_epoch)
        finally:
            self._unlock()
        log.info("logs closed", extra={"partitions": len(self._logs), "unclean": len(unclean)})

    def _close_log(self, item: tuple[Key, PartitionLog]) -> Key | None:
        """Close one log; returns its key if it must be recovered at the next start."""
        key, partition_log = item
        had_failed = partition_log.failure is not None
        try:
            partition_log.remove_deleted_files(at_once=True)
            if had_failed or self._untouched.get(key) != (partition_log.end_offset, partition_log.segments):
                partition_log.close()
        except (BrokerError, OSError) as error:
            extra = {"topic": key[0], "partition": key[1], "reason": str(error)}
            log.error("log was not closed cleanly and will be recovered", extra=extra)
            return key
        return key if had_failed else None

    def _unlock(self) -> None:
        for directory in self._all_directories:
            directory.close()


def _create_empty_logs(paths: Sequence[Path], topic_id: bytes) -> None:
    """Create the files of new logs. Errors are ignored here: `create` tries again and reports them."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.mkdir()
            write_topic_id(path, topic_id)
            (path / f"{segment_name(0)}.log").touch()
