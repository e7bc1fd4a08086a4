"""DirectorySink: records of topics as files that are complete when they have their name, each record in one of them.

    <path>/<topics.dir>/<topic>/<partition=0 or year=…/month=…/day=… or field=value>/
        <topic>+<partition>+<first offset>.<extension>

A file is written under another name (below `<path>/.caudal/<connector>`) and renamed when it is full or old enough;
only then the offsets of its records are free to be committed. What is in finished files is kept in a ledger
(ledger.py), so that records that come again after a crash are left out, however files were cut.
"""

import logging
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.errors import DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkContext, SinkTask, TopicPartition
from connectors.file.config import DirectorySinkConfig
from connectors.file.ledger import Ledger, LedgerChanged, Rename
from connectors.file.open_file import Key, OpenFile
from connectors.file.partitioners import folder_name, partitioner_of
from connectors.file.writers import FORMATS

log = logging.getLogger(__name__)

HIDDEN = ".caudal"
MEMORY_BYTES_MAX = 256 << 20
"""Most bytes of unfinished files in memory, about."""


class _Part(NamedTuple):
    """Records that go to one file, encoded."""

    file: OpenFile
    records: Sequence[SinkRecord]
    encoded: Any


class _Awaited(NamedTuple):
    """The offset that is read from again, and which one came instead, when another one came."""

    start: int
    instead: int | None = None


class _Partition:
    """What the task knows of one partition of a topic."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.next = -1
        """The offset behind the last record that was taken."""
        self.files: dict[str, OpenFile] = {}
        """The file of each folder that records go to."""
        self.complete: list[OpenFile] = []
        """Files that nothing more comes to, in the order of their records."""

    @property
    def unfinished(self) -> list[OpenFile]:
        return [*self.complete, *self.files.values()]


class DirectorySinkTask(SinkTask):
    """Writes files of the partitions that it has."""

    config: DirectorySinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        super().__init__(config, context)
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._awaited: dict[TopicPartition, _Awaited] = {}
        """Partitions that are read again, and from where."""

    @override
    def start(self) -> None:
        """See that the folder is there."""
        self._root = Path(self.config.path)
        self._hidden = self._root / HIDDEN / folder_name(self.context.connector)
        self._format = FORMATS[self.config.kind](self.config)
        self._folder_of = partitioner_of(self.config)
        self._topic_folders: dict[str, str] = {}
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RetriableError(f"{self.config.path} cannot be made: {error}") from error

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        """Begin anew with these partitions, from what the ledgers say."""
        self.close(places)

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records; files that are full or old enough are finished first."""
        self._finish_what_is_due()
        runs = [(place, list(run)) for place, run in groupby(records, _place)]
        wanted = [(place, run) for place, run in runs if place not in self._awaited or self._is_awaited(place, run[0])]
        for part in [part for place, run in wanted for part in self._planned(place, run)]:
            self._add(part)

    @override
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets before which every record is in a finished file."""
        self._finish_what_is_due()
        free: dict[TopicPartition, int] = {}
        for place, offset in offsets.items():
            if place in self._awaited:
                continue
            partition = self._partitions.get(place)
            unfinished = partition.unfinished if partition else []
            free[place] = min([offset, *(file.first.original_offset for file in unfinished)])
            if partition:
                partition.ledger.kafka_commits()
        return free

    @override
    def close(self, places: Collection[TopicPartition]) -> None:
        """Leave what is not finished: its offsets were not committed, so it comes again, to whoever has it then."""
        for place in places:
            self._awaited.pop(place, None)
            partition = self._partitions.pop(place, None)
            for file in partition.unfinished if partition else []:
                self._discard(file)

    @override
    def stop(self) -> None:
        """Leave nothing that is not finished."""
        self.close(list(self._partitions))

    # --- taking records ---

    def _planned(self, place: TopicPartition, records: list[SinkRecord]) -> Iterator[_Part]:
        """Which records go to which file, encoded; nothing is changed yet, because a record may turn out to be bad."""
        partition = self._partition(place)
        current = dict(partition.files)
        counts: dict[OpenFile, int] = {}
        for folder, group in self._by_folder(partition, records).items():
            while group:
                file = current.get(folder)
                if file is None or not file.takes(group[0], counts.get(file, 0)):
                    file = current[folder] = self._new_file(place, folder, group[0])
                count = file.run(group, counts.get(file, 0))
                yield _Part(file, group[:count], file.format.encode(file.shape, group[:count]))
                counts[file] = counts.get(file, 0) + count
                group = group[count:]

    def _by_folder(self, partition: _Partition, records: list[SinkRecord]) -> dict[str, list[SinkRecord]]:
        folders: dict[str, list[SinkRecord]] = {}
        folder_of, knows, start = self._folder_of, partition.ledger.knows, partition.next
        for record in records:
            if record.original_offset < start:
                continue  # given again after an error; it is in a file that is not finished
            if record.value is None:
                self._refuse_null()
                continue
            folder = f"{self._topic_folder(record.topic)}/{folder_of(record)}"
            if not knows(record, folder):
                folders.setdefault(folder, []).append(record)
        return folders

    def _refuse_null(self) -> None:
        if self.config.behavior_on_null_values == "fail":
            raise DataError("a record without a value cannot be written (behavior.on.null.values=fail)")

    def _topic_folder(self, topic: str) -> str:
        if topic not in self._topic_folders:
            self._topic_folders[topic] = folder_name(topic)
        return self._topic_folders[topic]

    def _add(self, part: _Part) -> None:
        partition = self._partition(part.file.place)
        previous = partition.files.get(part.file.folder)
        if previous is not part.file:
            if previous is not None:
                partition.complete.append(previous)
            partition.files[part.file.folder] = part.file
        part.file.add(part.records, part.encoded)
        partition.next = max(partition.next, part.records[-1].original_offset + 1)

    def _new_file(self, place: TopicPartition, folder: str, first: SinkRecord) -> OpenFile:
        return OpenFile(Key(place, folder), first, self._format, temporaries=self._temporaries(place))

    # --- finishing files ---

    def _finish_what_is_due(self) -> None:
        """Finish files that are full or old; bring to the disk what is large."""
        if not self._partitions:
            return
        if not self._root.is_dir():
            raise RetriableError(f"{self.config.path} is not there")
        self._complete_surplus()
        try:
            for place, partition in list(self._partitions.items()):
                self._finish_partition(place, partition)
        except OSError as error:
            raise RetriableError(f"{self.config.path} cannot be written: {error}") from error

    def _finish_partition(self, place: TopicPartition, partition: _Partition) -> None:
        try:
            self._complete_old(partition)
            if partition.complete:
                self._finish(place, partition)
            for file in partition.files.values():
                if file.spool.is_large:
                    file.spool.spill()
        except (FileNotFoundError, LedgerChanged) as error:
            self._begin_again(place, partition, error)

    def _begin_again(self, place: TopicPartition, partition: _Partition, error: Exception) -> None:
        """Another task wrote this partition, or its files were taken away: leave all, and read what is not finished."""
        start = min(file.first.original_offset for file in partition.unfinished)
        extra = {"topic": place[0], "partition": place[1], "offset": start, "error": str(error)}
        log.warning("files that were being written are begun again", extra=extra)
        self.close([place])
        self._awaited[place] = _Awaited(start)
        self.context.rewind({place: start})

    def _is_awaited(self, place: TopicPartition, first: SinkRecord) -> bool:
        """Whether these are the records that were asked for again; else they are left out, and asked for once more."""
        start, instead = self._awaited[place]
        # The record may be gone by now (compaction): then another one comes, and the same one each time.
        if first.original_offset in (start, instead):
            del self._awaited[place]
            return True
        self._awaited[place] = _Awaited(start, first.original_offset)
        self.context.rewind({place: start})
        return False

    def _complete_old(self, partition: _Partition) -> None:
        now = time.monotonic()
        for folder, file in list(partition.files.items()):
            if file.is_due(now):
                partition.complete.append(partition.files.pop(folder))

    def _complete_surplus(self) -> None:
        """Complete the files that have waited longest, when there are too many, and the largest ones in memory."""
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
        """Make files durable, then known in the ledger, then visible by their names."""
        partition.ledger.finish()
        complete = partition.complete
        for file in complete:
            file.end()
        first = min((file.first for file in partition.unfinished), key=lambda record: record.original_offset)
        rest = [file.first.original_offset for file in partition.files.values()]
        partition.ledger.commit(
            first,
            end=min(rest, default=partition.next),
            through={file.folder: file.next for file in complete},
            renames=[self._rename(file) for file in complete],
        )
        partition.complete = []
        self.context.request_commit()
        log.debug("files finished", extra={"topic": place[0], "partition": place[1], "files": len(complete)})

    def _rename(self, file: OpenFile) -> Rename:
        name = f"{file.place[0]}+{file.place[1]}+{file.first.original_offset:010}.{self._format.extension}"
        final = Path(self.config.topics_dir) / file.folder / name
        return Rename(file.spool.path.relative_to(self._root).as_posix(), final.as_posix())

    # --- partitions ---

    def _partition(self, place: TopicPartition) -> _Partition:
        """What is known of a partition; what a task before this one has left is cleared up at first."""
        known = self._partitions.get(place)
        if known is None:
            try:
                ledger = Ledger(ledger_path(self._hidden, place), self._root)
                ledger.finish()
                shutil.rmtree(self._temporaries(place), ignore_errors=True)
            except OSError as error:
                raise RetriableError(f"{self.config.path} cannot be read: {error}") from error
            known = self._partitions[place] = _Partition(ledger)
        return known

    def _temporaries(self, place: TopicPartition) -> Path:
        return self._hidden / "unfinished" / f"{place[0]}+{place[1]}"

    def _discard(self, file: OpenFile) -> None:
        try:
            file.spool.discard()
        except OSError as error:
            log.warning("a file that is not finished stays", extra={"file": str(file.spool.path), "error": str(error)})


class DirectorySinkConnector(SinkConnector):
    """Records of topics into files of a folder that all tasks see."""

    config_class = DirectorySinkConfig
    task_class: ClassVar[type[SinkTask]] = DirectorySinkTask
    aliases = ("DirectorySink",)

    @override
    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """The folder must be one; it may come later."""
        assert isinstance(config, DirectorySinkConfig)
        path = Path(config.path)
        if path.exists() and not path.is_dir():
            yield Problem("path", f"Invalid value {config.path} for configuration path: must be a folder")

    @override
    def alter_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Somebody wants records again: forget which are in finished files."""
        hidden = Path(self.config.given["path"]) / HIDDEN / folder_name(self.context.name)
        for place in offsets:
            ledger_path(hidden, place).unlink(missing_ok=True)
        return False


def ledger_path(hidden: Path, place: TopicPartition) -> Path:
    """Where the ledger of a partition is."""
    return hidden / f"{place[0]}+{place[1]}.json"


def _place(record: SinkRecord) -> TopicPartition:
    return record.original_topic, record.original_partition
