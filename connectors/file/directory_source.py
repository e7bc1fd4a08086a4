"""DirectorySource: every record of the files that arrive in a folder, each once.

Offsets: `{"filename": path below the folder}` → `{"position": entries read, "is_last": …}` and what the file looked
like, so that a new file of an old name is read from its start. A file leaves the folder only when the offsets of all
its records are safe.
"""

import logging
import shutil
import time
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.data import Schema, Value
from connect.api.errors import DataError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceTask
from connectors.file.arrivals import Arrival, arrivals
from connectors.file.config import DirectorySourceConfig
from connectors.file.readers import READERS, Chunk
from core_broker.service.clock import Clock, SystemClock

log = logging.getLogger(__name__)

TASKS_KEY = "directory.tasks"
"""How many tasks share the files; the connector tells its tasks."""
LONGEST_WAIT_SECONDS = 1.0
LOOKING_SHARE = 20
"""Looking for files takes one part of so many of the time at most."""


class _OpenFile:
    """A file that is being read; looks one chunk ahead, to know which record is the last."""

    def __init__(self, arrival: Arrival, config: DirectorySourceConfig, *, position: int) -> None:
        self.arrival = arrival
        self.position = position
        self._chunks: Iterator[Chunk] = READERS[config.kind](arrival.path, config, skip=position)
        self._ahead = next(self._chunks, None)

    @property
    def is_at_end(self) -> bool:
        return self._ahead is None

    def next_chunk(self) -> Chunk:
        chunk = self._ahead
        assert chunk is not None, "asked at the end"
        self._ahead = next(self._chunks, None)
        return chunk


class DirectorySourceTask(SourceTask):
    """Reads its share of the files, one after the other."""

    config: DirectorySourceConfig
    clock: Clock = SystemClock()

    _file: _OpenFile | None = None

    @override
    def start(self) -> None:
        """Nothing is known of the folder yet."""
        self._folder = Path(self.config.path)
        self._tasks = int(self.config.given.get(TASKS_KEY, "1"))
        self._lets_go = self.config.finished_policy != "keep"
        self._finished_below = _below(self._folder, self.config.finished_path)
        self._queue: deque[Path] = deque()
        self._look_again = 0.0
        self._progress: dict[str, Mapping[str, Value]] = {}
        """The last offset of each file that is in the folder."""
        self._unsafe: Counter[str] = Counter()
        """How many records of a file are not yet told as safe."""
        self._told: set[str] = set()
        """Files that have entries which were told as bad."""
        self._leaving: dict[str, Path | None] = {}
        """Files that were read to their end, and where they go; None: nowhere, they are deleted."""

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """The next records of the file that is read, or of the next one."""
        try:
            if self._file is None and not self._open_next():
                self.context.wait(min(self.config.poll_interval_ms / 1000, LONGEST_WAIT_SECONDS))
                return []
            return self._read()
        except OSError as error:
            self._file = None
            self._queue.clear()
            raise RetriableError(f"{self.config.path} cannot be read: {error}") from error

    @override
    def commit_record(self, record: SourceRecord) -> None:
        """One record less to wait for."""
        if self._lets_go:
            self._unsafe[record.source_partition["filename"]] -= 1

    @override
    def commit(self) -> None:
        """Let the files go whose records are all safe."""
        for name in [name for name in self._leaving if self._unsafe[name] <= 0]:
            self._let_go(name)

    @override
    def stop(self) -> None:
        """Nothing is open between polls but the file that is read."""
        self._file = None

    # --- which file is next ---

    def _open_next(self) -> bool:
        """Open the next file that has something to read."""
        if not self._queue and time.monotonic() >= self._look_again:
            self._queue.extend(self._arrived())
        while self._queue:
            path = self._queue.popleft()
            try:
                arrival = Arrival.of(path, self._folder)
                if arrival.name not in self._leaving:
                    self._open(arrival)
                    return True
            except FileNotFoundError:
                continue
            except DataError as error:
                self._fail(Arrival.of(path, self._folder), error)
        return False

    def _arrived(self) -> list[Path]:
        if not self._folder.is_dir():
            raise RetriableError(f"{self.config.path} is no folder, or not there yet")
        begin = time.monotonic()
        oldest_ms = self.clock.now_ms() - self.config.file_minimum_age_ms
        found: list[tuple[int, Path]] = []
        present: set[str] = set()
        for path in arrivals(self._folder, self.config.pattern):
            name = path.relative_to(self._folder).as_posix()
            if not self._is_mine(name):
                continue
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            modified_ms = status.st_mtime_ns // 1_000_000
            present.add(name)
            if self._is_read(name, status.st_size, modified_ms):
                continue
            if modified_ms <= oldest_ms or not self.config.file_minimum_age_ms:
                found.append((modified_ms if self.config.files_order == "modified" else 0, path))
        self._progress = {name: offset for name, offset in self._progress.items() if name in present}
        # A folder with very many files must not be looked at all the time.
        pause = max(self.config.poll_interval_ms / 1000, LOOKING_SHARE * (time.monotonic() - begin))
        self._look_again = time.monotonic() + pause
        return [path for _, path in sorted(found)]

    def _is_read(self, name: str, size: int, modified_ms: int) -> bool:
        """Whether all of a file was read, and it has not changed since."""
        offset = self._progress.get(name) or {}
        return bool(offset.get("is_last")) and (offset["size"], offset["modified"]) == (size, modified_ms)

    def _is_mine(self, name: str) -> bool:
        """Whether this task reads a file; none does that was put aside below the same folder."""
        if self._finished_below and name.startswith(self._finished_below):
            return False
        return zlib.crc32(name.encode()) % self._tasks == self.context.task % self._tasks

    # --- reading ---

    def _open(self, arrival: Arrival) -> None:
        offset = self._progress.get(arrival.name) or self.context.offset(arrival.partition)
        may_grow = self.config.finished_policy == "keep" or not (offset or {}).get("is_last")
        position = offset["position"] if offset and arrival.resumes(offset, may_grow=may_grow) else 0
        if offset and position and offset.get("is_last") and arrival.resumes(offset, may_grow=False):
            self._finish(arrival, position)
            return
        self._file = _OpenFile(arrival, self.config, position=position)
        if self._file.is_at_end:
            self._finish(arrival, position)

    def _read(self) -> Sequence[SourceRecord]:
        file = self._file
        if file is None:
            return []
        try:
            chunk = file.next_chunk()
        except DataError as error:
            self._fail(file.arrival, error)
            return []
        first, file.position = file.position, file.position + len(chunk.values)
        records = self._records(file, chunk, first)
        if self._lets_go:
            self._unsafe[file.arrival.name] += len(records)
        self._progress[file.arrival.name] = self._offset(file.arrival, file.position, is_last=file.is_at_end)
        if file.is_at_end:
            self._finish(file.arrival, file.position)
        return records

    def _records(self, file: _OpenFile, chunk: Chunk, first: int) -> list[SourceRecord]:
        topic, partition, schema = self.config.topic, file.arrival.partition, chunk.schema
        size, modified, fingerprint = file.arrival.identity.values()
        key_field, key_schema = self.config.key_field, self._key_schema(chunk.schema)
        bad, last = chunk.bad, _last_good(chunk) if file.is_at_end else -1
        for index, entry in bad.items():
            if entry is None:
                continue
            offset = self._offset(file.arrival, first + index + 1, is_last=False)
            self._told.add(file.arrival.name)
            self.context.report(entry.data, entry.error, partition=partition, offset=offset)
        return [
            SourceRecord(
                topic=topic,
                key_schema=key_schema,
                key=value.get(key_field) if key_field and type(value) is dict else None,
                value_schema=schema,
                value=value,
                source_partition=partition,
                source_offset={
                    "position": first + index + 1 if index != last else file.position,
                    "is_last": index == last,
                    "size": size,
                    "modified": modified,
                    "fingerprint": fingerprint,
                },
            )
            for index, value in enumerate(chunk.values)
            if index not in bad
        ]

    def _key_schema(self, schema: Schema | None) -> Schema | None:
        return schema.field(self.config.key_field) if schema and self.config.key_field else None

    def _offset(self, arrival: Arrival, position: int, *, is_last: bool) -> Mapping[str, Value]:
        return {"position": position, "is_last": is_last, **arrival.identity}

    # --- what becomes of a file ---

    def _finish(self, arrival: Arrival, position: int) -> None:
        """Everything was read: the file leaves as soon as its records are safe."""
        self._file = None
        name = arrival.name
        self._progress[name] = self._offset(arrival, position, is_last=True)
        if not self._lets_go:
            return
        target = self.config.finished_path if self.config.finished_policy == "move" else None
        self._leaving[name] = Path(target) / name if target else None
        # What was told as bad is only in the file until the dead letters are safe, as they are before `commit`.
        if self._unsafe[name] <= 0 and not (target is None and name in self._told):
            self._let_go(name)

    def _fail(self, arrival: Arrival, error: DataError) -> None:
        """A file that cannot be read is told as a bad record, and kept."""
        self._file = None
        offset = self._offset(arrival, 0, is_last=True)
        self._progress[arrival.name] = offset
        self.context.report(arrival.name, error, partition=arrival.partition, offset=offset)
        if self.config.finished_policy == "move" and self.config.finished_path:
            self._leaving[arrival.name] = Path(self.config.finished_path) / "failed" / arrival.name
            if self._unsafe[arrival.name] <= 0:
                self._let_go(arrival.name)

    def _let_go(self, name: str) -> None:
        path, target = self._folder / name, self._leaving.pop(name)
        del self._unsafe[name]
        self._told.discard(name)
        try:
            # Another file may have come in its place meanwhile: that one is not finished.
            if Arrival.of(path, self._folder).resumes(self._progress[name], may_grow=False):
                path.unlink() if target is None else _move(path, target)
            del self._progress[name]
        except OSError as error:
            # Its records are safe and it is known as read: no reason to stop.
            log.warning("a finished file stays where it is", extra={"file": str(path), "error": str(error)})


class DirectorySourceConnector(SourceConnector):
    """Files of a folder into one topic; the files are shared among the tasks by their names."""

    config_class = DirectorySourceConfig
    task_class: ClassVar[type[SourceTask]] = DirectorySourceTask
    tasks_limit = None
    aliases = ("DirectorySource",)
    is_exactly_once = True

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """The same for all, and how many they are."""
        return [{**self.config.given, TASKS_KEY: str(tasks_max)}] * tasks_max

    @override
    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """The folder must be one; it may come later."""
        assert isinstance(config, DirectorySourceConfig)
        path = Path(config.path)
        if path.exists() and not path.is_dir():
            yield Problem("path", f"Invalid value {config.path} for configuration path: must be a folder")


def _below(folder: Path, other: str | None) -> str:
    """What names of files begin with that are in the other folder; empty when it is elsewhere."""
    if not other or not Path(other).resolve().is_relative_to(folder.resolve()):
        return ""
    return f"{Path(other).resolve().relative_to(folder.resolve()).as_posix()}/"


def _last_good(chunk: Chunk) -> int:
    return next((index for index in reversed(range(len(chunk.values))) if index not in chunk.bad), -1)


def _move(path: Path, target: Path) -> None:
    """Move a file, beside those that are there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    free, number = target, 1
    while free.exists():
        free, number = target.with_name(f"{target.name}.{number}"), number + 1
    shutil.move(path, free)
