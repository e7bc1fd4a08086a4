"""All logs of this broker: finding them at the start, making and deleting them, and leaving them in order.

Each directory of log.dirs is locked and knows its node and cluster. Text checkpoints per directory say how far each log
is on disk, where it starts, what was committed and what was cleaned. After a clean stop logs are trusted and opened one
after the other, which takes about a tenth of a millisecond each; after any other stop they are recovered in threads.
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
"""Its log belongs to the quorum, which opens it itself: it must be replayed before anything else is known."""

_FLUSH_THREADS = 8
_CLOSE_THREADS = 8

Key = tuple[str, int]
"""Topic and partition."""


class LogStore:
    """The logs of one broker. Belongs to the event loop, except while it loads and closes."""

    def __init__(self, log_dirs: Iterable[str | Path], settings: BrokerSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.cluster_id: str | None = settings.cluster_id
        self.high_watermarks: dict[Key, int] = {}
        """High watermarks as of the last checkpoint: where a follower starts before it hears from its leader."""
        self.cleaner_offsets: dict[Key, int] = {}
        """Up to where each compacted log has been cleaned."""
        self.high_watermark_of: Callable[[PartitionLog], int] = _end_offset
        """Asked before anything is deleted or cleaned; the replicated cluster puts its own knowledge here."""
        self._paths = [Path(path) for path in log_dirs]
        self._directories: list[LogDirectory] = []
        self._logs: dict[Key, PartitionLog] = {}
        self._homes: dict[Key, LogDirectory] = {}
        self._failed: dict[Key, str] = {}
        self._prepared: dict[Key, LogDirectory] = {}
        self._commits: dict[Key, GroupCommit] = {}
        self._untouched: dict[Key, tuple[int, Sequence[Segment]]] = {}
        """End and segments of logs as they were found in order: those that are still so need no closing."""
        self._flush_threads = ThreadPoolExecutor(_FLUSH_THREADS, thread_name_prefix="log-flush")
        self._doomed: list[tuple[float, Path]] = []
        self.moves = DirectoryMoves(self)
        """Partitions on their way from one directory to another."""

    # -- looking up ----------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, None when it is not here."""
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
        """Whether the last run left every directory in order."""
        return all(directory.was_clean for directory in self._directories)

    def is_current(self, partition_log: PartitionLog) -> bool:
        """Whether the log is still the one of its partition, and not deleted or made anew."""
        return self._logs.get((partition_log.topic, partition_log.partition)) is partition_log

    # -- loading -------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Lock the directories and open every log in them; raises BrokerError when a directory is not ours."""
        try:
            for path in self._paths:
                self._directories.append(LogDirectory(path))
            self._identify()
            finish_interrupted_moves(self.directories)
            for directory in self._directories:
                self._load_directory(directory)
            self.moves.resume()
        except BaseException:
            self._unlock()
            raise
        log.info("logs loaded", extra={"partitions": len(self._logs), "clean": self.was_clean})

    def _identify(self) -> None:
        """All directories must belong to this node and to one cluster; a first start gives it an id."""
        for directory in self._directories:
            meta = directory.identify(node_id=self.settings.node_id, cluster_id=self.cluster_id)
            self.cluster_id = meta.cluster_id
        if self.cluster_id is None:
            self.cluster_id = new_id()
        for directory in self._directories:
            directory.identify(node_id=self.settings.node_id, cluster_id=self.cluster_id)

    def _load_directory(self, directory: LogDirectory) -> None:
        is_clean = directory.take_clean_marker()
        recovery_points = read_offsets(directory.path / RECOVERY_POINT_FILE)
        start_offsets = read_offsets(directory.path / LOG_START_FILE)
        self.high_watermarks.update(read_offsets(directory.path / HIGH_WATERMARK_FILE))
        self.cleaner_offsets.update(read_offsets(directory.path / CLEANER_FILE))
        self._doomed.extend((self.clock.monotonic(), path) for path in directory.doomed_directories())
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
        self._settle(directory, found)
        if is_clean:
            for name, path in found.items():
                open_one(name, path)
            return
        with ThreadPoolExecutor(self.settings.num_recovery_threads_per_data_dir, "log-recovery") as threads:
            list(threads.map(open_one, found.keys(), found.values()))

    def _settle(self, directory: LogDirectory, names: Iterable[TopicPartitionName]) -> None:
        for name in names:
            if name in self._homes:
                raise BrokerError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"partition {name.topic}-{name.partition} is in {self._homes[name].path} and in {directory.path}; "
                    "move one of them away",
                )
            self._homes[name] = directory

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
        """Open a log found at the start; one that cannot be opened is told, and its partition is offline."""
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
            log.exception("log cannot be opened, partition is offline", extra={"path": str(path)})
            self._failed[name] = str(error)
            return
        self._logs[name] = opened
        if clean:
            self._untouched[name] = (opened.end_offset, opened.segments)

    def remove_strays(self, topic_ids: Mapping[str, bytes]) -> int:
        """Put aside the logs of topics that the cluster's metadata does not know, or knows by another id."""
        strays = [key for key in self._logs if key[0] not in topic_ids or not self._is_of_topic(key, topic_ids[key[0]])]
        for key in strays:
            self._put_aside(key)
        return len(strays)

    def _is_of_topic(self, key: Key, topic_id: bytes) -> bool:
        found = self._logs[key].topic_id
        return found in (topic_id, ZERO_UUID) or topic_id == ZERO_UUID

    def _put_aside(self, key: Key) -> None:
        path = self._rename(key, STRAY_SUFFIX)
        log.warning("stray log put aside", extra={"topic": key[0], "partition": key[1], "path": str(path)})

    def configure(self, settings: BrokerSettings) -> None:
        """Take settings that changed while the broker runs."""
        before, self.settings = self.settings, settings
        self.moves.bytes_per_second = settings.replica_alter_log_dirs_io_max_bytes_per_second
        if settings.producer_id_expiration_ms != before.producer_id_expiration_ms:
            for partition_log in (*self, *(move.copy for move in self.moves)):
                partition_log.expire_producers_after(settings.producer_id_expiration_ms)

    # -- making and deleting -------------------------------------------------------------------------------------------

    def create(self, topic: str, partition: int, topic_id: bytes, settings: TopicSettings) -> PartitionLog:
        """The log of a partition, with these settings: the one that is here, or a new one.

        A log of a deleted topic with the same name is put aside first.
        """
        key = (topic, partition)
        if key in self._failed:
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"log of {topic}-{partition} could not be opened: {self._failed[key]}"
            )
        if key in self._logs and not self._is_of_topic(key, topic_id):
            self._put_aside(key)
        known = self._logs.get(key)
        if known is not None:
            known.configure(settings)
            return known
        return self._create(TopicPartitionName(*key), topic_id, settings)

    async def prepare(self, topic: str, partitions: Sequence[int], topic_id: bytes) -> None:
        """Make the files of many new partitions in a thread: `create` then finds them and does not stall the loop."""
        folders = []
        for partition in partitions:
            directory = self._prepared[topic, partition] = self._place_for((topic, partition))
            folders.append(directory.path / f"{topic}-{partition}")
        await asyncio.to_thread(_make_empty_logs, folders, topic_id)

    def _create(self, key: TopicPartitionName, topic_id: bytes, settings: TopicSettings) -> PartitionLog:
        directory = self._prepared.pop(key, None) or self._place_for(key)
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

    def _place_for(self, key: Key) -> LogDirectory:
        """The directory that was asked for, or else that with the fewest partitions; among equals they take turns."""
        turn, wanted = key[1], self.moves.take_preference(key)
        if wanted is not None or len(self._directories) == 1:
            return wanted or self._directories[0]
        counts = Counter(id(directory) for directory in (*self._homes.values(), *self._prepared.values()))
        shift = turn % len(self._directories)
        candidates = self._directories[shift:] + self._directories[:shift]
        return min(candidates, key=lambda directory: counts[id(directory)])

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log at once; its files are removed in the background after file.delete.delay.ms."""
        key = (topic, partition)
        if key not in self._homes:
            return
        known = self._logs.get(key)
        delay_ms = 0 if known is None else known.settings.file_delete_delay_ms
        self.doom(self._rename(key, DELETE_SUFFIX), delay_ms)
        log.info("log deleted", extra={"topic": topic, "partition": partition})

    def doom(self, path: Path, delay_ms: int) -> None:
        """Remove a directory in the background after some time."""
        self._doomed.append((self.clock.monotonic() + delay_ms / 1000, path))

    def rehome(self, key: Key, directory: LogDirectory) -> None:
        """The log of a partition is in another directory from now on.

        What was cleaned while it was copied may stand in the copy as it was before: it is cleaned from the start.
        """
        self._homes[key] = directory
        self.cleaner_offsets.pop(key, None)

    def _rename(self, key: Key, suffix: str) -> Path:
        """Take a log out and give its directory a name under which it is not found again."""
        self.moves.cancel(key)
        gone = self._logs.pop(key, None)
        path = self._homes.pop(key).path / f"{key[0]}-{key[1]}"
        for known in (self._commits, self._failed, self._untouched, self.high_watermarks, self.cleaner_offsets):
            known.pop(key, None)
        if gone is not None:
            for segment in gone.segments:
                segment.release_files()
        return path.rename(path.with_name(marked_name(path.name, suffix)))

    def take_due_directories(self) -> list[Path]:
        """Directories of deleted logs that are to be removed now; whoever takes them removes them."""
        now = self.clock.monotonic()
        due = [path for at, path in self._doomed if at <= now]
        self._doomed = [(at, path) for at, path in self._doomed if at > now]
        return due

    def note_truncation(self, topic: str, partition: int, offset: int) -> None:
        """A log was truncated: what is appended from there on was never cleaned (KAFKA-3330)."""
        cleaned = self.cleaner_offsets.get((topic, partition))
        if cleaned is not None and cleaned > offset:
            self.cleaner_offsets[topic, partition] = offset

    # -- durability ----------------------------------------------------------------------------------------------------

    async def flush_now(self, partition_log: PartitionLog, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Return once all that the log holds now is on disk; shares one fdatasync with all others who wait.

        Raises KAFKA_STORAGE_ERROR when the disk fails or does not answer in time.
        """
        if partition_log.recovery_point >= partition_log.end_offset:
            return
        key = (partition_log.topic, partition_log.partition)
        commit = self._commits.get(key)
        if commit is None:
            commit = self._commits[key] = GroupCommit(partition_log.flush, self._flush_threads)
        await commit.wait(timeout_seconds)

    def checkpoint(self) -> None:
        """Write every checkpoint of every directory."""
        for directory in self._directories:
            for name, offsets in self.checkpoints_of(directory).items():
                write_offsets(directory.path / name, offsets)

    def checkpoints_of(self, directory: LogDirectory) -> dict[str, dict[Key, int]]:
        """What the checkpoint files of a directory should say now, by file name."""
        logs = {key: self._logs[key] for key, home in self._homes.items() if home is directory and key in self._logs}
        self.high_watermarks.update({key: self.high_watermark_of(found) for key, found in logs.items()})
        # Copies are told as well: from one moment to the next they are the logs of this directory.
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

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Do the background work until cancelled: retention, compaction, flushes, checkpoints, expiry, moves."""
        async with asyncio.TaskGroup() as group:
            group.create_task(Upkeep(self).run())
            group.create_task(self.moves.run())

    def close(self) -> None:
        """Leave everything on disk, with a marker that says so; to be called after `run` was cancelled."""
        self._flush_threads.shutdown(wait=True)
        with ThreadPoolExecutor(_CLOSE_THREADS, "log-close") as threads:
            unclean = {key for key in threads.map(self._close_log, tuple(self._logs.items())) if key is not None}
        try:
            self.checkpoint()
            for directory in self._directories:
                if not any(self._homes[key] is directory for key in unclean | set(self._failed)):
                    directory.leave_clean_marker()
        finally:
            self._unlock()
        log.info("logs closed", extra={"partitions": len(self._logs), "unclean": len(unclean)})

    def _close_log(self, item: tuple[Key, PartitionLog]) -> Key | None:
        """Close one log; returns its key when it must be recovered at the next start."""
        key, partition_log = item
        had_failed = partition_log.failure is not None
        try:
            partition_log.remove_deleted_files(at_once=True)
            if had_failed or self._untouched.get(key) != (partition_log.end_offset, partition_log.segments):
                partition_log.close()
        except (BrokerError, OSError) as error:
            extra = {"topic": key[0], "partition": key[1], "reason": str(error)}
            log.error("log not closed in order, it will be recovered", extra=extra)
            return key
        return key if had_failed else None

    def _unlock(self) -> None:
        for directory in self._directories:
            directory.close()


def _end_offset(partition_log: PartitionLog) -> int:
    """With one replica everything written is committed."""
    return partition_log.end_offset


def _make_empty_logs(folders: Sequence[Path], topic_id: bytes) -> None:
    """What a new log looks like on disk. One that cannot be made is left to `create`, which tells why."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir()
            write_topic_id(folder, topic_id)
            (folder / f"{segment_name(0)}.log").touch()
