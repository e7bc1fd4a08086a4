"""Moves partitions from one directory of log.dirs to another while they are in use (AlterReplicaLogDirs).

As in Kafka, the batches are copied in the background into a directory named `<topic>-<partition>.<id>-future`. Once the
copy has caught up, the log switches to it: the event loop copies the rest, syncs it to disk, renames the copy to the
partition's name, and renames the former directory for deletion. After a crash before the first rename, the next start
continues with the copy. A crash between the two leaves the partition in both directories, and a marker says which one
is valid.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.checkpoints import sync_directory, write_offsets
from core_broker.log.log_directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    LogDirectory,
    marked_name,
)
from core_broker.log.partition_log import PartitionLog
from core_broker.log.segment_chain import LogSlice
from core_broker.service.clock import Clock
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 1024 * 1024
"""How much is copied at once, and the most that is copied while the event loop is blocked."""
_PAUSE_SECONDS: Final = 0.05
_PREFERENCES_MAX: Final = 10_000

Key = tuple[str, int]
"""Topic and partition."""


class Store(Protocol):
    """What moves need from the store, which imports this module."""

    settings: BrokerSettings
    clock: Clock

    @property
    def directories(self) -> tuple[LogDirectory, ...]:
        """The directories of log.dirs."""
        ...

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition."""
        ...

    def checkpoints_of(self, directory: LogDirectory) -> dict[str, dict[Key, int]]:
        """The current content of a directory's checkpoint files."""
        ...

    def rehome(self, key: Key, directory: LogDirectory) -> None:
        """Note that the log of a partition has moved to another directory."""
        ...

    def delete_later(self, path: Path, delay_ms: int) -> None:
        """Delete a directory in the background after a delay."""
        ...


class Move(msgspec.Struct, kw_only=True, eq=False):
    """A partition being moved to another directory."""

    source: PartitionLog
    copy: PartitionLog
    destination: LogDirectory
    checkpointed_start: int = -1
    """The start offset of the log in the last checkpoint of the destination."""

    @property
    def lag(self) -> int:
        """By how many offsets the copy is behind."""
        return max(0, self.source.end_offset - self.copy.end_offset)


class DirectoryMoves:
    """The moves of one store; used on the event loop, copies in a thread."""

    def __init__(self, store: Store) -> None:
        self.bytes_per_second = LONG_MAX
        """replica.alter.log.dirs.io.max.bytes.per.second, for all moves together; 0 pauses them."""
        self._store = store
        self._moves: dict[Key, Move] = {}
        self._preferences: dict[Key, LogDirectory] = {}
        self._begun = asyncio.Event()

    def __iter__(self) -> Iterator[Move]:
        return iter(tuple(self._moves.values()))

    def into(self, directory: LogDirectory) -> dict[Key, Move]:
        """The moves with a directory as their destination."""
        return {key: move for key, move in self._moves.items() if move.destination is directory}

    def begin(self, topic: str, partition: int, path: str) -> bool:
        """Move a partition to the directory at an absolute path; False if this broker has no log of it (yet).

        Cancels a move to another directory, and does nothing if the log is there already. If there is no log yet, it
        will be created in that directory. Raises BrokerError.
        """
        key, name = (topic, partition), f"{topic}-{partition}"
        copy_name = marked_name(name, FUTURE_SUFFIX)
        if not copy_name.startswith(f"{name}."):
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} cannot be moved: its name is too long")
        directory = next((d for d in self._store.directories if str(d.path.absolute()) == path), None)
        if directory is None:
            raise BrokerError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs")
        source = self._store.get(topic, partition)
        if source is None:
            if len(self._preferences) < _PREFERENCES_MAX:
                self._preferences[key] = directory
            return False
        known = self._moves.get(key)
        if known is not None and known.destination is not directory:
            self.cancel(key)
        if key not in self._moves and source.directory.parent != directory.path:
            copy = self._open(source, directory.path / copy_name, clean=True)
            self._add(key, Move(source=source, copy=copy, destination=directory))
        return True

    def take_preference(self, key: Key) -> LogDirectory | None:
        """The directory requested for a new log, if any."""
        return self._preferences.pop(key, None)

    def cancel(self, key: Key) -> None:
        """Cancel a move and delete the copy."""
        move = self._moves.pop(key, None)
        if move is not None:
            self._discard(key, move.copy.directory)

    def resume(self) -> None:
        """Continue the moves that the last run did not finish; call it once all logs are open."""
        for directory in self._store.directories:
            for name, path in directory.future_directories():
                self._resume(name, path, directory)

    def _resume(self, key: Key, path: Path, directory: LogDirectory) -> None:
        source = self._store.get(*key)
        if source is None or source.directory.parent == directory.path or key in self._moves:
            self._discard(key, path)
            return
        try:
            copy = self._open(source, path, clean=False)
            # After a power failure the copy may have more than the log itself.
            copy.truncate_to(source.end_offset)
        except (BrokerError, OSError, ValueError) as error:
            log.error("unusable copy of a log deleted", extra={"path": str(path), "reason": str(error)})
            self._discard(key, path)
            return
        self._add(key, Move(source=source, copy=copy, destination=directory))

    # -- copying -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Copy until cancelled, one piece of each move in turn."""
        with ThreadPoolExecutor(1, thread_name_prefix="log-move") as thread:
            while True:
                if not self._moves:
                    self._begun.clear()
                    await self._begun.wait()
                for key, move in tuple(self._moves.items()):
                    if self._moves.get(key) is move:
                        await self._advance(key, move, thread)

    async def _advance(self, key: Key, move: Move, thread: Executor) -> None:
        """Copy one piece, or finish the move if little is left."""
        extra = {"topic": key[0], "partition": key[1], "directory": str(move.destination.path)}
        try:
            copied_bytes: float = await self._copy_piece(key, move, thread)
        except Exception:
            if self._moves.get(key) is move:
                log.exception("move of a partition to another directory failed", extra=extra)
                self.cancel(key)
            return
        if key not in self._moves and move.source.directory == move.copy.directory:
            log.info("partition moved to another directory", extra=extra)
        # Wait as long as the rate requires; a change of the rate takes effect soon.
        while copied_bytes > 0:
            rate = self.bytes_per_second
            seconds = min(copied_bytes / rate, _PAUSE_SECONDS) if rate else _PAUSE_SECONDS
            await asyncio.sleep(seconds)
            copied_bytes -= seconds * rate

    async def _copy_piece(self, key: Key, move: Move, thread: Executor) -> int:
        """Do the next step of a move; returns the number of bytes copied."""
        rate = self.bytes_per_second
        if not rate:
            await asyncio.sleep(_PAUSE_SECONDS)
            return 0
        if move.source.failure is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, move.source.failure)
        if move.copy.settings is not move.source.settings:
            move.copy.configure(move.source.settings)
        limit = min(_CHUNK_BYTES, rate)
        piece = _next_piece(move, limit)
        if piece is not None and (piece.length > limit or piece.next_offset < move.source.end_offset):
            await self._in(thread, lambda: _copy(move.copy, piece))
            return piece.length
        if move.checkpointed_start != move.source.start_offset:
            # Sync most of the copy to disk, and write the log start to the checkpoint of its destination.
            start = move.source.start_offset
            await self._in(thread, move.copy.flush)
            await self._in(thread, self._checkpoint_writer(LOG_START_FILE, move.destination))
            move.checkpointed_start = start
            return 0
        with move.source.without_flushes() as is_granted:
            if is_granted:
                if piece is not None:
                    _copy(move.copy, piece)
                self._finish(key, move)
                return 0
        await asyncio.sleep(_PAUSE_SECONDS)  # a flush is running, which uses the names of the files
        return 0

    def _checkpoint_writer(self, name: str, directory: LogDirectory) -> Callable[[], None]:
        return partial(write_offsets, directory.path / name, self._store.checkpoints_of(directory)[name])

    def _finish(self, key: Key, move: Move) -> None:
        """Switch the log to the copy. Runs without awaiting, so nothing is appended meanwhile."""
        source, directory = move.source, move.destination
        former, name = source.directory, f"{key[0]}-{key[1]}"
        move.copy.complete_from(source)
        self._checkpoint_writer(RECOVERY_POINT_FILE, directory)()
        marker = directory.marker_of_move(name)
        marker.touch()
        move.copy.rename_directory(directory.path / name)
        sync_directory(directory.path)
        del self._moves[key]
        segments = source.continue_in(move.copy)
        self._store.rehome(key, directory)
        try:
            renamed = former.rename(former.with_name(marked_name(name, DELETE_SUFFIX)))
        except OSError as error:  # the marker stays, so the next start does it
            log.error(
                "former directory of a moved log cannot be deleted", extra={"path": str(former), "reason": str(error)}
            )
            return
        for segment in segments:
            segment.relocate(renamed)
        marker.unlink(missing_ok=True)
        self._store.delete_later(renamed, source.settings.file_delete_delay_ms)

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _add(self, key: Key, move: Move) -> None:
        self._moves[key] = move
        self._begun.set()
        extra = {"topic": key[0], "partition": key[1], "directory": str(move.destination.path), "lag": move.lag}
        log.info("moving a partition to another directory", extra=extra)

    def _open(self, source: PartitionLog, path: Path, *, clean: bool) -> PartitionLog:
        return PartitionLog.open(
            path,
            topic=source.topic,
            partition=source.partition,
            settings=source.settings,
            clock=self._store.clock,
            start_offset=source.start_offset,
            clean=clean,
            topic_id=source.topic_id,
            producer_expiration_ms=self._store.settings.producer_id_expiration_ms,
        )

    def _discard(self, key: Key, path: Path) -> None:
        """Rename a copy at once, so that no start continues with it, and delete it in the background."""
        try:
            renamed = path.rename(path.with_name(marked_name(f"{key[0]}-{key[1]}", DELETE_SUFFIX)))
            self._store.delete_later(renamed, 0)
        except OSError as error:
            log.warning("copy of a log cannot be deleted", extra={"path": str(path), "reason": str(error)})

    @staticmethod
    async def _in(thread: Executor, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(thread, work)


def finish_interrupted_moves(directories: tuple[LogDirectory, ...]) -> None:
    """Mark the former directory of a log for deletion if a crash came between the two renames of a move."""
    for directory in directories:
        for marker, name in directory.markers_of_moves():
            is_complete = (directory.path / name).is_dir()
            for other in directories:
                former = other.path / name
                if is_complete and other is not directory and former.is_dir():
                    former.rename(former.with_name(marked_name(name, DELETE_SUFFIX)))
                    sync_directory(other.path)
            marker.unlink(missing_ok=True)


def _next_piece(move: Move, max_bytes: int) -> LogSlice | None:
    """The next piece that the copy is missing; None if it has all batches."""
    source, copy = move.source, move.copy
    if copy.end_offset < source.start_offset:  # retention has deleted the next batches
        copy.truncate_fully_and_start_at(source.start_offset)
    piece = source.read(copy.end_offset, max_bytes, upper_offset=source.end_offset)
    if piece is not None:
        first = int.from_bytes(piece.file.read(piece.position, 8), "big")
        if first < copy.end_offset:  # the log starts within a batch
            copy.truncate_fully_and_start_at(first)
    return piece


def _copy(copy: PartitionLog, piece: LogSlice) -> None:
    copy.append_as_follower(bytearray(piece.file.read(piece.position, piece.length)))
