"""DirectorySource: reads the records of files that arrive in a folder, each once.

Offsets: `{"filename": path below the folder}` → `{"position": entries read, "is_last": …}` and what identifies the
file, so that a new file of an old name is read from its beginning. A file leaves the folder only when the offsets of
all its records are committed.
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
from connect.api.data import Value
from connect.api.errors import DataError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceTask
from connectors.file.arrivals import Arrival, arrivals
from connectors.file.config import DirectorySourceConfig
from connectors.file.readers import READERS, Chunk
from core_broker.service.clock import Clock, SystemClock

log = logging.getLogger(__name__)

TASKS_KEY = "directory.tasks"
"""How many tasks share the files; set by the connector."""
LONGEST_WAIT_SECONDS = 1.0
LOOKING_SHARE = 20
"""Listing files takes at most one part in this many of the time."""


class _OpenFile:
    """A file that is being read, one chunk ahead, to know which record is the last."""

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
        """Begin with what offsets say: nothing is known of the folder yet."""
        self._folder = Path(self.config.path)
        self._tasks = int(self.config.given.get(TASKS_KEY, "1"))
        self._removes_files = self.config.finished_policy != "keep"
        self._finished_prefix = _prefix_below(self._folder, self.config.finished_path)
        self._queue: deque[Path] = deque()
        self._next_listing = 0.0
        self._progress: dict[str, Mapping[str, Value]] = {}
        """The last offset of each file in the folder."""
        self._uncommitted: Counter[str] = Counter()
        """How many records of each file are not committed yet."""
        self._reported: set[str] = set()
        """Files with entries that were reported as bad."""
        self._finished: dict[str, Path | None] = {}
        """Files that were read to their end, and where they are moved; None: they are deleted."""

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
            raise RetriableError(f"cannot read {self.config.path}: {error}") from error

    @override
    def commit_record(self, record: SourceRecord) -> None:
        """One record less to wait for."""
        if self._removes_files:
            self._uncommitted[record.source_partition["filename"]] -= 1

    @override
    def commit(self) -> None:
        """Remove the files whose records are all committed."""
        for name in [name for name in self._finished if self._uncommitted[name] <= 0]:
            self._remove(name)

    @override
    def stop(self) -> None:
        """Close the file that is being read."""
        self._file = None

    # --- which file is next ---

    def _open_next(self) -> bool:
        """Open the next file that has something to read."""
        if not self._queue and time.monotonic() >= self._next_listing:
            self._queue.extend(self._list_files())
        while self._queue:
            path = self._queue.popleft()
            try:
                arrival = Arrival.of(path, self._folder)
                if arrival.name not in self._finished:
                    self._open(arrival)
                    return True
            except FileNotFoundError:
                continue
            except DataError as error:
                self._fail(Arrival.of(path, self._folder), error)
        return False

    def _list_files(self) -> list[Path]:
        if not self._folder.is_dir():
            raise RetriableError(f"{self.config.path} is not a folder, or does not exist yet")
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
        # A folder with very many files must not be listed all the time.
        pause = max(self.config.poll_interval_ms / 1000, LOOKING_SHARE * (time.monotonic() - begin))
        self._next_listing = time.monotonic() + pause
        return [path for _, path in sorted(found)]

    def _is_read(self, name: str, size: int, modified_ms: int) -> bool:
        """Whether all of a file was read, and it has not changed since."""
        offset = self._progress.get(name) or {}
        return bool(offset.get("is_last")) and (offset["size"], offset["modified"]) == (size, modified_ms)

    def _is_mine(self, name: str) -> bool:
        """Whether this task reads a file; no task reads files that were moved to a folder below."""
        if self._finished_prefix and name.startswith(self._finished_prefix):
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
        if self._removes_files:
            self._uncommitted[file.arrival.name] += len(records)
        self._progress[file.arrival.name] = self._offset(file.arrival, file.position, is_last=file.is_at_end)
        if file.is_at_end:
            self._finish(file.arrival, file.position)
        return records

    def _records(self, file: _OpenFile, chunk: Chunk, first: int) -> list[SourceRecord]:
        topic, partition, schema = self.config.topic, file.arrival.partition, chunk.schema
        size, modified, fingerprint = file.arrival.identity.values()
        key_field = self.config.key_field
        key_schema = schema.field(key_field) if schema and key_field else None
        bad, last = chunk.bad, -1
        if file.is_at_end:
            last = next((index for index in reversed(range(len(chunk.values))) if index not in bad), -1)
        for index, entry in bad.items():
            if entry is None:
                continue
            offset = self._offset(file.arrival, first + index + 1, is_last=False)
            self._reported.add(file.arrival.name)
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

    def _offset(self, arrival: Arrival, position: int, *, is_last: bool) -> Mapping[str, Value]:
        return {"position": position, "is_last": is_last, **arrival.identity}

    # --- finished files ---

    def _finish(self, arrival: Arrival, position: int) -> None:
        """The file was read to its end, and is removed as soon as its records are committed."""
        self._file = None
        name = arrival.name
        self._progress[name] = self._offset(arrival, position, is_last=True)
        if not self._removes_files:
            return
        target = self.config.finished_path if self.config.finished_policy == "move" else None
        self._finished[name] = Path(target) / name if target else None
        # Bad entries are only in the file until their dead letters are safe, which they are before `commit`.
        if self._uncommitted[name] <= 0 and not (target is None and name in self._reported):
            self._remove(name)

    def _fail(self, arrival: Arrival, error: DataError) -> None:
        """A file that cannot be read is reported as a bad record, and kept."""
        self._file = None
        offset = self._offset(arrival, 0, is_last=True)
        self._progress[arrival.name] = offset
        self.context.report(arrival.name, error, partition=arrival.partition, offset=offset)
        if self.config.finished_policy == "move" and self.config.finished_path:
            self._finished[arrival.name] = Path(self.config.finished_path) / "failed" / arrival.name
            if self._uncommitted[arrival.name] <= 0:
                self._remove(arrival.name)

    def _remove(self, name: str) -> None:
        path, target = self._folder / name, self._finished.pop(name)
        del self._uncommitted[name]
        self._reported.discard(name)
        try:
            # Another file may have taken its place meanwhile, which is not finished.
            if Arrival.of(path, self._folder).resumes(self._progress[name], may_grow=False):
                path.unlink() if target is None else _move(path, target)
            del self._progress[name]
        except OSError as error:
            # Its records are committed and it is not read again: no reason to stop.
            log.warning("a finished file cannot be removed", extra={"file": str(path), "error": str(error)})


class DirectorySourceConnector(SourceConnector):
    """Reads files of a folder into one topic; files are distributed among tasks by their names."""

    config_class = DirectorySourceConfig
    task_class: ClassVar[type[SourceTask]] = DirectorySourceTask
    tasks_limit = None
    aliases = ("DirectorySource",)
    is_exactly_once = True

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """The same for all tasks, with their number."""
        return [{**self.config.given, TASKS_KEY: str(tasks_max)}] * tasks_max

    @override
    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """The path must not be a file; the folder may be created later."""
        assert isinstance(config, DirectorySourceConfig)
        path = Path(config.path)
        if path.exists() and not path.is_dir():
            yield Problem("path", f"Invalid value {config.path} for configuration path: must be a folder")


def _prefix_below(folder: Path, other: str | None) -> str:
    """The prefix of names of files in the other folder; empty when it is not below this one."""
    if not other or not Path(other).resolve().is_relative_to(folder.resolve()):
        return ""
    return f"{Path(other).resolve().relative_to(folder.resolve()).as_posix()}/"


def _move(path: Path, target: Path) -> None:
    """Move a file, under another name if there is one of its name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    free, number = target, 1
    while free.exists():
        free, number = target.with_name(f"{target.name}.{number}"), number + 1
    shutil.move(path, free)
