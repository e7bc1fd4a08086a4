"""Batches that are decided, carried out and repeated, with a real manifest and tables that fail on demand."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from connect.api.engine import TopicChoice
from connectors.spark.commits import Commits
from connectors.spark.spec import SinkFolders, SinkSpec
from streams.errors import SchemaConflict, WrongOption
from streams.spark.commits.entries import Entry, WrittenRange, WrittenRows
from streams.spark.commits.manifest import Manifest, Reload, Replaced
from streams.spark.commits.outbox import Outbox
from streams.spark.files import Files
from streams.spark.tables import Tables
from streams.spark.tables.model import pack_schema
from tests.support.staged_files import staged

ROW = pa.schema([("id", pa.int64()), ("_topic", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())])
PLACE = ("orders", 0)


class Broken(Exception):
    """Stands for a disk that is full."""


class MortalTables:
    """Records what was done to it, and fails once on demand."""

    def __init__(self, columns: pa.Schema = ROW) -> None:
        self.done: list[tuple[str, object]] = []
        self.fails_at = ""
        self._columns = columns

    def plan(self, _: object, schemas: Sequence[pa.Schema], **__: object) -> list[SchemaConflict | None]:
        return [None for _ in schemas]

    def schema(self, _: str) -> pa.Schema:
        return self._columns

    def evolve(self, *_: object) -> None:
        self._do("evolve", None)

    def append(self, _: object, files: Sequence[Any], *, writer: str, batch: int) -> None:
        self._do("append", sum(file.rows for file in files))

    def remove_range(self, _: str, topic: str, *, partition: int, first: int, last: int) -> None:
        self._do("remove", (topic, partition, first, last))

    def _do(self, what: str, detail: object) -> None:
        if self.fails_at == what:
            self.fails_at = ""
            raise Broken
        if what != "evolve":
            self.done.append((what, detail))


class SilentOutbox:
    """Sends nothing."""

    def send(self, manifest: Manifest) -> None:
        assert manifest.records == ()

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return {topic: f"id of {topic}" for topic in topics}


class World:
    """Commits on real files."""

    def __init__(self, folder: Path, columns: pa.Schema = ROW) -> None:
        kafka = {"bootstrap.servers": "localhost:9092"}
        self.folder = folder
        self.tables = MortalTables(columns)
        self.folders = SinkFolders.of(str(folder), "orders-sink")
        self.spec = SinkSpec(
            connector="orders-sink",
            consumer=kafka,
            producer=kafka,
            admin=kafka,
            group="connect-orders-sink",
            topics=TopicChoice(names=("orders",)),
            options={},
        )
        self.commits = self.opened()
        self.commits.begin({PLACE: 0})

    def opened(self) -> Commits:
        tables, outbox = cast("Tables", self.tables), cast("Outbox", SilentOutbox())
        return Commits(self.spec, self.folders, files=Files(), tables=tables, outbox=outbox)

    def rows(self, start: int, end: int) -> list[Entry]:
        content = [{"id": offset, "_offset": offset} for offset in range(start, end)]
        file = staged(self.folder, content, ROW)
        written = WrittenRows(table="orders", file=file, fingerprint="x", schema_bytes=pack_schema(ROW))
        return [written, WrittenRange(topic="orders", partition=0, start=start, end=end)]

    def reload(self, start: int, end: int) -> int:
        again = Reload(topic="orders", partition=0, start=start, end=end, tables=("orders",))
        return self.commits.reload(again, lambda: self.rows(start, end))


def test_a_range_is_removed_and_written_again_and_the_next_batch_follows(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commits.commit(0, lambda: world.rows(0, 10))
    assert world.reload(2, 5) == 3
    world.commits.commit(1, lambda: world.rows(10, 11))
    assert world.tables.done == [("append", 10), ("remove", ("orders", 0, 2, 4)), ("append", 3), ("append", 1)]


def test_rows_of_a_reload_that_failed_half_way_come_back_before_the_next_batch(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commits.commit(0, lambda: world.rows(0, 10))
    world.tables.fails_at = "append"
    with pytest.raises(Broken):
        world.reload(2, 5)
    world.commits.commit(1, lambda: world.rows(10, 11))
    assert world.tables.done == [("append", 10), ("remove", ("orders", 0, 2, 4)), ("append", 3), ("append", 1)]


def test_rows_of_a_reload_that_was_killed_half_way_come_back_with_the_next_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commits.commit(0, lambda: world.rows(0, 10))
    world.tables.fails_at = "append"
    with pytest.raises(Broken):
        world.reload(2, 5)
    manifest = world.opened().recover()
    assert manifest is not None
    assert manifest.positions == {"orders": {0: 10}}
    assert world.tables.done == [("append", 10), ("remove", ("orders", 0, 2, 4)), ("append", 3)]


def test_a_reload_that_could_never_be_done_is_not_decided(tmp_path: Path) -> None:
    world = World(tmp_path, pa.schema([("id", pa.int64())]))
    world.commits.commit(0, lambda: world.rows(0, 10))
    with pytest.raises(WrongOption, match="_topic, _partition, _offset"):
        world.reload(2, 5)
    world.commits.commit(1, lambda: world.rows(10, 11))
    assert world.tables.done == [("append", 10), ("append", 1)]


def test_the_ids_of_topics_are_kept_with_how_far_they_were_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    later = WrittenRange(topic="later", partition=0, start=0, end=3)
    world.commits.commit(0, lambda: [*world.rows(0, 10), later])
    manifest = world.opened().recover()
    assert manifest is not None
    assert manifest.ids == {"orders": "id of orders", "later": "id of later"}
    assert manifest.positions == {"orders": {0: 10}, "later": {0: 3}}


def test_a_run_that_was_replaced_decides_nothing_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.opened().begin({PLACE: 0})
    with pytest.raises(Replaced):
        world.commits.commit(0, lambda: world.rows(0, 10))
    assert world.tables.done == []
