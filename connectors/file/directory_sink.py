"""DirectorySink: writes records to files that are complete when they get their name, each record to one of them.

    <path>/<topics.dir>/<topic>/<partition=0 or year=…/month=…/day=… or field=value>/
        <topic>+<partition>+<first offset>.<extension>

A file is written under another name (below `<path>/.caudal/<connector>`) and renamed when it is full or old enough;
only then may the offsets of its records be committed. A ledger (ledger.py) says what is in finished files, so that
records that are delivered again after a crash are skipped, however records were divided into files.
"""

import logging
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.errors import DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkContext, SinkTask, TopicPartition
from connectors.file.config import DirectorySinkConfig
from connectors.file.ledger import Ledger, LedgerChanged, Rename
from connectors.file.open_file import OpenFile
from connectors.file.partitioners import folder_name, partitioner_of
from connectors.file.writers import FORMATS

log = logging.getLogger(__name__)

HIDDEN = ".caudal"
MEMORY_BYTES_MAX = 256 << 20
"""About the most bytes of unfinished files in memory."""


class _Part(NamedTuple):
    """Encoded records for one file."""

    file: OpenFile
    records: Sequence[SinkRecord]
    encoded: Any


class _Rewind(NamedTuple):
    """The offset to which a partition was rewound, and the offset that was delivered instead."""

    start: int
    instead: int | None = None


class _Partition:
    """The state of one partition of a topic."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.next = -1
        """The offset after the last record that was added."""
        self.files: dict[str, OpenFile] = {}
        """The open file of each folder."""
        self.complete: list[OpenFile] = []
        """Files to which no more records are added, in the order of their records."""

    @property
    def unfinished(self) -> list[OpenFile]:
        return [*self.complete, *self.files.values()]


class DirectorySinkTask(SinkTask):
    """Writes files of its partitions."""

    config: DirectorySinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        super().__init__(config, context)
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._rewinds: dict[TopicPartition, _Rewind] = {}
        """Partitions that were rewound, until their records are delivered."""

    @override
    def start(self) -> None:
        """Create the folder if need be."""
        self._root = Path(self.config.path)
        self._hidden = self._root / HIDDEN / folder_name(self.context.connector)
        self._format = FORMATS[self.config.kind](self.config)
        self._folder_of = partitioner_of(self.config)
        self._topic_folders: dict[str, str] = {}
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RetriableError(f"cannot create {self.config.path}: {error}") from error

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        """Begin these partitions as their ledgers say."""
        self.close(places)

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Add records to files; those that are full or old enough are finished first."""
        self._finish_due()
        runs = [(place, list(run)) for place, run in groupby(records, attrgetter("place"))]
        wanted = [(place, run) for place, run in runs if place not in self._rewinds or self._is_rewound(place, run[0])]
        for part in [part for place, run in wanted for part in self._plan(place, run)]:
            self._add(part)

    @override
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets before which every record is in a finished file."""
        self._finish_due()
        free: dict[TopicPartition, int] = {}
        for place, offset in offsets.items():
            if place in self._rewinds:
                continue
            partition = self._partitions.get(place)
            unfinished = partition.unfinished if partition else []
            free[place] = min([offset, *(file.first.original_offset for file in unfinished)])
            if partition:
                partition.ledger.kafka_commits()
        return free

    @override
    def close(self, places: Collection[TopicPartition]) -> None:
        """Discard unfinished files: their offsets were not committed, so their records are delivered again."""
        for place in places:
            self._rewinds.pop(place, None)
            partition = self._partitions.pop(place, None)
            for file in partition.unfinished if partition else []:
                try:
                    file.spool.discard()
                except OSError as error:
                    extra = {"file": str(file.spool.path), "error": str(error)}
                    log.warning("an unfinished file cannot be deleted", extra=extra)

    @override
    def stop(self) -> None:
        """Discard unfinished files."""
        self.close(list(self._partitions))

    # --- adding records ---

    def _plan(self, place: TopicPartition, records: list[SinkRecord]) -> Iterator[_Part]:
        """The encoded records for each file. No file is changed yet, since any record may turn out to be bad."""
        partition = self._partition(place)
        current = dict(partition.files)
        counts: dict[OpenFile, int] = {}
        for folder, group in self._by_folder(partition, records).items():
            while group:
                file = current.get(folder)
                if file is None or not file.takes(group[0], counts.get(file, 0)):
                    temporaries = self._temporaries(place)
                    file = OpenFile(place, folder, group[0], self._format, temporaries=temporaries)
                    current[folder] = file
                count = file.run(group, counts.get(file, 0))
                yield _Part(file, group[:count], file.format.encode(file.shape, group[:count]))
                counts[file] = counts.get(file, 0) + count
                group = group[count:]

    def _by_folder(self, partition: _Partition, records: list[SinkRecord]) -> dict[str, list[SinkRecord]]:
        folders: dict[str, list[SinkRecord]] = {}
        folder_of, knows, start = self._folder_of, partition.ledger.knows, partition.next
        for record in records:
            if record.original_offset < start:
                continue  # Put again after an error: it is in an unfinished file already.
            if record.value is None:
                if self.config.behavior_on_null_values == "fail":
                    raise DataError("the record has no value, and behavior.on.null.values is fail")
                continue
            topic_folder = self._topic_folders.get(record.topic)
            if topic_folder is None:
                topic_folder = self._topic_folders[record.topic] = folder_name(record.topic)
            folder = f"{topic_folder}/{folder_of(record)}"
            if not knows(record, folder):
                folders.setdefault(folder, []).append(record)
        return folders

    def _add(self, part: _Part) -> None:
        partition = self._partition(part.file.place)
        previous = partition.files.get(part.file.folder)
        if previous is not part.file:
            if previous is not None:
                partition.complete.append(previous)
            partition.files[part.file.folder] = part.file
        part.file.add(part.records, part.encoded)
        partition.next = max(partition.next, part.records[-1].original_offset + 1)

    # --- finishing files ---

    def _finish_due(self) -> None:
        """Finish files that are full or old, and write large ones to disk."""
        if not self._partitions:
            return
        if not self._root.is_dir():
            raise RetriableError(f"{self.config.path} does not exist")
        self._complete_surplus()
        try:
            for place, partition in list(self._partitions.items()):
                self._finish_partition(place, partition)
        except OSError as error:
            raise RetriableError(f"cannot write to {self.config.path}: {error}") from error

    def _finish_partition(self, place: TopicPartition, partition: _Partition) -> None:
        try:
            now = time.monotonic()
            for folder, file in list(partition.files.items()):
                if file.is_due(now):
                    partition.complete.append(partition.files.pop(folder))
            if partition.complete:
                self._finish(place, partition)
            for file in partition.files.values():
                if file.spool.is_large:
                    file.spool.spill()
        except (FileNotFoundError, LedgerChanged) as error:
            # Another task writes this partition, or its files were deleted: start over with unfinished records.
            start = min(file.first.original_offset for file in partition.unfinished)
            extra = {"topic": place[0], "partition": place[1], "offset": start, "error": str(error)}
            log.warning("unfinished files are written again", extra=extra)
            self.close([place])
            self._rewinds[place] = _Rewind(start)
            self.context.rewind({place: start})

    def _is_rewound(self, place: TopicPartition, first: SinkRecord) -> bool:
        """Whether these are the records after a rewind; otherwise they are skipped, and it is rewound again."""
        start, instead = self._rewinds[place]
        # The record may be gone by now (compaction): then another one is delivered, the same each time.
        if first.original_offset in (start, instead):
            del self._rewinds[place]
            return True
        self._rewinds[place] = _Rewind(start, first.original_offset)
        self.context.rewind({place: start})
        return False

    def _complete_surplus(self) -> None:
        """Complete the least recently changed files when there are too many, and the largest ones in memory."""
        files = [file for partition in self._partitions.values() for file in partition.files.values()]
        files.sort(key=lambda file: file.changed_at)
        surplus = files[: max(0, len(files) - self.config.open_files_max)]
        rest = sorted(files[len(surplus) :], key=lambda file: file.in_memory)
        memory = sum(file.in_memory for file in rest)
        while memory > MEMORY_BYTES_MAX:
            surplus.append(rest.pop())
            memory -= surplus[-1].in_memory
        for file in surplus:
            partition = self._partition(file.place)
            partition.complete.append(partition.files.pop(file.folder))

    def _finish(self, place: TopicPartition, partition: _Partition) -> None:
        """Make files durable, then record them in the ledger, then give them their names."""
        partition.ledger.finish()
        complete = partition.complete
        for file in complete:
            file.end()
        first = min((file.first for file in partition.unfinished), key=lambda record: record.original_offset)
        rest = [file.first.original_offset for file in partition.files.values()]
        renames = []
        for file in complete:
            name = f"{place[0]}+{place[1]}+{file.first.original_offset:010}.{self._format.extension}"
            final = Path(self.config.topics_dir) / file.folder / name
            renames.append(Rename(file.spool.path.relative_to(self._root).as_posix(), final.as_posix()))
        partition.ledger.commit(
            first,
            end=min(rest, default=partition.next),
            through={file.folder: file.next for file in complete},
            renames=renames,
        )
        partition.complete = []
        self.context.request_commit()
        log.debug("files finished", extra={"topic": place[0], "partition": place[1], "files": len(complete)})

    # --- partitions ---

    def _partition(self, place: TopicPartition) -> _Partition:
        """The state of a partition; at first, what an earlier task has left unfinished is deleted."""
        known = self._partitions.get(place)
        if known is None:
            try:
                ledger = Ledger(ledger_path(self._hidden, place), self._root)
                ledger.finish()
                shutil.rmtree(self._temporaries(place), ignore_errors=True)
            except OSError as error:
                raise RetriableError(f"cannot read {self.config.path}: {error}") from error
            known = self._partitions[place] = _Partition(ledger)
        return known

    def _temporaries(self, place: TopicPartition) -> Path:
        return self._hidden / "unfinished" / f"{place[0]}+{place[1]}"


class DirectorySinkConnector(SinkConnector):
    """Writes records to files in a folder that all tasks see."""

    config_class = DirectorySinkConfig
    task_class: ClassVar[type[SinkTask]] = DirectorySinkTask
    aliases = ("DirectorySink",)

    @override
    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """The path must not be a file; the folder may be created later."""
        assert isinstance(config, DirectorySinkConfig)
        path = Path(config.path)
        if path.exists() and not path.is_dir():
            yield Problem("path", f"Invalid value {config.path} for configuration path: must be a folder")

    @override
    def alter_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Records are wanted again: forget which are in finished files."""
        hidden = Path(self.config.given["path"]) / HIDDEN / folder_name(self.context.name)
        for place in offsets:
            ledger_path(hidden, place).unlink(missing_ok=True)
        return False


def ledger_path(hidden: Path, place: TopicPartition) -> Path:
    """The ledger of a partition."""
    return hidden / f"{place[0]}+{place[1]}.json"
