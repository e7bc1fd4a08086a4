"""Delta tables without Spark: batches are committed once, whatever happens in between."""

import contextlib
import datetime as dt
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.spark.files import Files
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.delta_table import DeltaTables, delta_schema
from streams.spark.tables.delta_upkeep import DeltaUpkeep
from streams.spark.tables.model import StagedFile
from streams.spark.tables.removal import OlderThan, TopicRange
from streams.spark.types import list_of
from tests.support.staged_files import staged

SCHEMA = pa.schema([("Id", pa.int64()), ("v", pa.string()), ("day", pa.string())])
FILE = pa.schema([("Id", pa.int64()), ("v", pa.string())])
UPSERT = pa.schema([*FILE, pa.field("_deleted", pa.bool_()), pa.field("_offset", pa.int64())])


class Killed(Exception):
    """Stands for a kill."""


class MortalFiles(Files):
    """Files that fail after a number of moves."""

    def __init__(self, moves: int) -> None:
        super().__init__()
        self._left = moves

    def move(self, source: str, target: str) -> None:
        """Count."""
        if not self._left:
            raise Killed
        self._left -= 1
        super().move(source, target)


def _tables(files: Files | None = None) -> DeltaTables:
    # Appending and merging never ask the catalog.
    return DeltaTables(cast("Catalog", None), files or Files())


def _entry(folder: Path, schema: pa.Schema = SCHEMA, partition_by: tuple[str, ...] = ()) -> CatalogEntry:
    location = str(folder / "table")
    DeltaTable.create(location, delta_schema(schema), partition_by=list(partition_by))
    return CatalogEntry(name="t", provider="delta", location=location, fields=[], partition_by=())


def _rows(entry: CatalogEntry) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(entry.location).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["Id"] is None, row["Id"]))


def _ids(entry: CatalogEntry) -> list[int]:
    return [row["Id"] for row in _rows(entry)]


def _two_files(folder: Path) -> list[StagedFile]:
    return [staged(folder, [{"Id": number, "v": "x"}], FILE) for number in (1, 2)]


def test_a_batch_that_comes_again_is_skipped(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    files = _two_files(tmp_path)
    tables.append(entry, files, writer="w", batch=0)
    tables.append(entry, files, writer="w", batch=0)
    _tables().append(entry, files, writer="w", batch=0)
    assert _ids(entry) == [1, 2]


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_batch_that_was_killed_between_its_moves_is_finished(tmp_path: Path, moves: int) -> None:
    entry = _entry(tmp_path)
    files = _two_files(tmp_path)
    if moves < 2:
        with pytest.raises(Killed):
            _tables(MortalFiles(moves)).append(entry, files, writer="w", batch=0)
        assert _ids(entry) == []
    else:
        for index, file in enumerate(files):
            Files().move(file.path, f"{entry.location}/part-w-0-{index}.parquet")
    _tables().append(entry, files, writer="w", batch=0)
    assert _ids(entry) == [1, 2]


def test_a_lost_staged_file_is_no_silent_loss(tmp_path: Path) -> None:
    entry = _entry(tmp_path)
    files = _two_files(tmp_path)
    Path(files[0].path).unlink()
    with pytest.raises(FileNotFoundError):
        _tables().append(entry, files, writer="w", batch=0)
    assert _ids(entry) == []


def test_writers_do_not_hinder_each_other(tmp_path: Path) -> None:
    entry, one, other = _entry(tmp_path), _tables(), _tables()
    for batch in range(3):
        for number, tables in enumerate((one, other)):
            file = staged(tmp_path, [{"Id": batch * 2 + number}], FILE)
            tables.append(entry, [file], writer=f"w{number}", batch=batch)
    assert _ids(entry) == [0, 1, 2, 3, 4, 5]


def test_files_of_partitions_carry_their_values(tmp_path: Path) -> None:
    entry = _entry(tmp_path, partition_by=("day",))
    values = ["2024-01-01", "a b/ü%", None]
    files = [staged(tmp_path, [{"Id": i}], FILE, partition={"day": value}) for i, value in enumerate(values)]
    _tables().append(entry, files, writer="w", batch=0)
    assert [row["day"] for row in _rows(entry)] == values


def test_files_with_narrower_types_are_widened_and_missing_columns_null(tmp_path: Path) -> None:
    wide = pa.schema([("Id", pa.int64()), ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])), ("n", pa.int8())])
    narrow = pa.schema([("Id", pa.int16()), ("s", pa.struct([("a", pa.int8())]))])
    entry = _entry(tmp_path, wide)
    _tables().append(entry, [staged(tmp_path, [{"Id": 1, "s": {"a": 2}}], narrow)], writer="w", batch=0)
    assert _rows(entry) == [{"Id": 1, "s": {"a": 2, "b": None}, "n": None}]


def test_the_log_describes_files_so_that_readers_skip_them(tmp_path: Path) -> None:
    schema = pa.schema([("Id", pa.int64()), ("at", TIMESTAMP), ("v", pa.string())])
    entry = _entry(tmp_path, schema)
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    for batch in range(3):
        rows = [{"Id": batch, "at": moment + dt.timedelta(days=batch), "v": f"v{batch}"}]
        _tables().append(entry, [staged(tmp_path, rows, schema)], writer="w", batch=batch)
    table = DeltaTable(entry.location)
    assert len(table.file_uris(file_pruning_predicate='"Id" = 1')) == 1
    assert len(table.file_uris(file_pruning_predicate="v > 'v0'")) == 2
    assert table.count() == 3
    assert table.to_pyarrow_table(filters=[("at", ">", moment)]).num_rows == 2


def _upsert(folder: Path, rows: Sequence[tuple[int | None, str, bool]], offset: int = 0) -> StagedFile:
    content = [{"Id": key, "v": v, "_deleted": gone, "_offset": offset + i} for i, (key, v, gone) in enumerate(rows)]
    return staged(folder, content, UPSERT)


def _merge(tables: DeltaTables, entry: CatalogEntry, file: StagedFile, batch: int) -> None:
    tables.merge(entry, [file], keys=["Id"], deleted="_deleted", order=["_offset"], writer="w", batch=batch)


def test_upserts_insert_update_and_delete_by_key(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    _merge(tables, entry, _upsert(tmp_path, [(1, "a", False), (2, "b", False), (3, "c", False)]), 0)
    _merge(tables, entry, _upsert(tmp_path, [(2, "B", False), (3, "", True), (4, "", True), (5, "e", False)], 10), 1)
    assert [(row["Id"], row["v"]) for row in _rows(entry)] == [(1, "a"), (2, "B"), (5, "e")]
    assert DeltaTable(entry.location).to_pyarrow_table().column_names == SCHEMA.names


def test_a_writer_that_never_deletes_upserts_as_well(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    columns = pa.schema([*FILE, pa.field("_offset", pa.int64())])
    for batch, value in enumerate(["a", "b"]):
        file = staged(tmp_path, [{"Id": 1, "v": value, "_offset": batch}], columns)
        _merge(tables, entry, file, batch)
    assert [(row["Id"], row["v"]) for row in _rows(entry)] == [(1, "b")]


def test_of_many_changes_of_one_key_in_a_batch_the_last_counts(tmp_path: Path) -> None:
    entry = _entry(tmp_path)
    changes = [(1, "a", False), (1, "", True), (2, "x", False), (1, "b", False), (2, "", True)]
    _merge(_tables(), entry, _upsert(tmp_path, changes), 0)
    assert [(row["Id"], row["v"]) for row in _rows(entry)] == [(1, "b")]


def test_null_is_a_key_as_any_other(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    _merge(tables, entry, _upsert(tmp_path, [(None, "a", False), (1, "one", False)]), 0)
    _merge(tables, entry, _upsert(tmp_path, [(None, "b", False)], 10), 1)
    assert [(row["Id"], row["v"]) for row in _rows(entry)] == [(1, "one"), (None, "b")]


def test_a_merge_that_comes_again_is_skipped(tmp_path: Path) -> None:
    entry = _entry(tmp_path)
    first = _upsert(tmp_path, [(1, "first", False)])
    _merge(_tables(), entry, first, 0)
    _merge(_tables(), entry, _upsert(tmp_path, [(1, "second", False)], 10), 1)
    _merge(_tables(), entry, first, 0)
    assert [row["v"] for row in _rows(entry)] == ["second"]


def test_a_row_that_moves_to_another_partition_leaves_the_old_one(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path, partition_by=("day",)), _tables()
    schema = pa.schema([*FILE, pa.field("_deleted", pa.bool_()), pa.field("_offset", pa.int64())])
    for batch, day in enumerate(["a b", "c/d"]):
        rows = [{"Id": 1, "v": day, "_deleted": False, "_offset": batch}]
        _merge(tables, entry, staged(tmp_path, rows, schema, partition={"day": day}), batch)
    assert [(row["v"], row["day"]) for row in _rows(entry)] == [("c/d", "c/d")]


def test_merges_go_on_while_another_program_compacts(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    ended = threading.Event()

    def compact() -> None:
        while not ended.is_set():
            # Whoever is second loses: here the compaction, elsewhere the merge, which tries again.
            with contextlib.suppress(CommitFailedError):
                DeltaTable(entry.location).optimize.compact()

    other = threading.Thread(target=compact)
    other.start()
    try:
        for batch in range(20):
            changes = [(batch, "new", False), (batch - 1, "seen", False)]
            _merge(tables, entry, _upsert(tmp_path, changes, batch * 10), batch)
    finally:
        ended.set()
        other.join(30)
    assert [row["v"] for row in _rows(entry)] == ["seen"] * 20 + ["new"]


def test_a_table_that_was_made_anew_forgets_what_was_written_to_the_old_one(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    tables.append(entry, _two_files(tmp_path), writer="w", batch=5)
    Files().delete(entry.location)
    DeltaTable.create(entry.location, delta_schema(SCHEMA))
    tables.append(entry, [staged(tmp_path, [{"Id": 7}], FILE)], writer="w", batch=5)
    assert _ids(entry) == [7]


def test_a_file_between_move_and_commit_survives_a_vacuum(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path), _tables()
    files = _two_files(tmp_path)
    with pytest.raises(Killed):
        _tables(MortalFiles(1)).append(entry, files, writer="w", batch=0)
    Files().write(f"{entry.location}/leftover.parquet", b"an orphan")
    upkeep = DeltaUpkeep(entry=entry, files=Files(), tables=tables)
    upkeep.compact(1 << 20, dry_run=False, retention_hours=0)
    tables.append(entry, files, writer="w", batch=0)
    assert _ids(entry) == [1, 2]
    assert not Files().exists(f"{entry.location}/leftover.parquet")


def test_compaction_makes_one_file_of_many(tmp_path: Path) -> None:
    entry, tables = _entry(tmp_path, partition_by=("day",)), _tables()
    for batch in range(4):
        file = staged(tmp_path, [{"Id": batch}], FILE, partition={"day": "a b/c"})
        tables.append(entry, [file], writer="w", batch=batch)
    upkeep = DeltaUpkeep(entry=entry, files=Files(), tables=tables)
    assert upkeep.compact(1 << 20, dry_run=True).files_removed == 4
    result = upkeep.compact(1 << 20, dry_run=False, retention_hours=0)
    assert (result.files_removed, result.files_added) == (4, 1)
    assert _ids(entry) == [0, 1, 2, 3]
    left = [file for file in Files().walk(entry.location) if "_delta_log" not in file.path]
    assert len(left) == 1


def test_rows_are_removed_by_age_and_by_place_in_a_topic(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("Id", pa.int64()),
            ("at", TIMESTAMP),
            ("_topic", pa.string()),
            ("_partition", pa.int32()),
            ("_offset", pa.int64()),
        ]
    )
    entry, tables = _entry(tmp_path, schema), _tables()
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    rows = [
        {"Id": i, "at": moment + dt.timedelta(hours=i), "_topic": "it's", "_partition": i % 2, "_offset": i}
        for i in range(10)
    ]
    rows.append({"Id": 99, "at": None, "_topic": "other", "_partition": 0, "_offset": 8})
    tables.append(entry, [staged(tmp_path, rows, schema)], writer="w", batch=0)
    upkeep = DeltaUpkeep(entry=entry, files=Files(), tables=tables)
    older = OlderThan("at", TIMESTAMP, moment + dt.timedelta(hours=3))
    assert upkeep.remove(older, dry_run=True).rows_removed == 3
    assert upkeep.remove(older, dry_run=False).rows_removed == 3
    range_ = TopicRange(topic="it's", partition=0, first=4, last=8)
    assert upkeep.remove(range_, dry_run=True).rows_removed == 3
    assert upkeep.remove(range_, dry_run=False).rows_removed == 3
    assert _ids(entry) == [3, 5, 7, 9, 99]


@pytest.mark.parametrize(
    ("has", "then"),
    [
        (pa.schema([("Id", pa.int32())]), pa.schema([("Id", pa.int64()), ("n", pa.string())])),
        (pa.schema([("Id", pa.int32())]), pa.schema([("Id", pa.float64())])),
        (
            pa.schema([("Id", pa.int32()), ("s", pa.struct([("a", pa.int8())]))]),
            pa.schema([("Id", pa.int32()), ("s", pa.struct([("a", pa.int8()), ("t", pa.struct([("b", pa.int8())]))]))]),
        ),
        (
            pa.schema([("Id", pa.int32()), ("l", list_of(pa.struct([("a", pa.int8())])))]),
            pa.schema([("Id", pa.int32()), ("l", list_of(pa.struct([("a", pa.int8()), ("b", pa.int8())])))]),
        ),
    ],
)
def test_columns_grow_and_old_rows_stay(tmp_path: Path, has: pa.Schema, then: pa.Schema) -> None:
    entry, tables = _entry(tmp_path, has), _tables()
    tables.append(entry, [staged(tmp_path, [{"Id": 5}], has)], writer="w", batch=0)
    tables._change(entry, then)  # The public way asks the catalog, and is tested with Spark.
    assert tables.schema(entry) == then
    tables.append(entry, [staged(tmp_path, [{"Id": 6}], then)], writer="w", batch=1)
    tables.append(entry, [staged(tmp_path, [{"Id": 6}], then)], writer="w", batch=1)
    assert _ids(entry) == [5, 6]


CHILD = """
import sys
from pathlib import Path
import pyarrow as pa
from tests.support.staged_files import staged
from tests.unit.streams.spark.tables.test_delta_table import FILE, Files, StagedFile, _tables, CatalogEntry
location, folder = sys.argv[1:]
entry = CatalogEntry(name="t", provider="delta", location=location, fields=[], partition_by=())
tables = _tables()
for batch in range(int(sys.stdin.readline()), 100000):
    staging = Path(folder) / f"{batch}.parquet"
    if not staging.exists() and not Path(location, f"part-w-{batch}-0.parquet").exists():
        draft = staged(Path(folder), [{"Id": batch}], FILE)
        Path(draft.path).replace(staging)
    file = StagedFile.of(str(staging), FILE, rows=1, size=1, partition={})
    tables.append(entry, [file], writer="w", batch=batch)
    print(batch, flush=True)
"""


@pytest.mark.processes
def test_a_writer_that_is_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    entry = _entry(tmp_path)
    done = -1
    for goal in (5, 9, 14):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), entry.location, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[5],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child:
            # It does not know whether the batch after the last it has output of is done.
            child.stdin.write(f"{max(done, 0)}\n")
            child.stdin.flush()
            while done < goal:
                done = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
    found = _ids(entry)
    assert found == list(range(len(found)))
    assert len(found) > done
