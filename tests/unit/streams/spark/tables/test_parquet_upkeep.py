"""Which files become one, and that a kill leaves all rows once."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from streams.spark.files import FileInfo, Files
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.parquet_upkeep import ParquetUpkeep, small_groups

ROOT = Path(__file__).parents[5]
FIELDS = [{"name": "id", "type": "long"}]


def _files(**sizes: int) -> list[FileInfo]:
    return [FileInfo(f"/t/{path.replace('__', '/')}", size, 1, is_dir=False) for path, size in sizes.items()]


def _groups(found: list[FileInfo], target: int) -> list[list[str]]:
    return [[entry.path.removeprefix("/t/") for entry in group] for group in small_groups(found, target)]


def test_small_files_of_one_folder_are_put_together_up_to_the_target() -> None:
    found = _files(a=40, b=40, c=40, d=40, e=10)
    assert _groups(found, 100) == [["a", "b"], ["c", "d", "e"]]


def test_files_of_two_partitions_are_never_mixed() -> None:
    found = _files(k1__a=1, k1__b=1, k2__a=1, k3__a=1, k3__b=1)
    assert _groups(found, 100) == [["k1/a", "k1/b"], ["k3/a", "k3/b"]]


def test_large_files_and_single_ones_stay() -> None:
    assert _groups(_files(a=76, b=90, c=1), 100) == []


def test_files_of_a_writers_last_batch_stay() -> None:
    names = ["part-w-1-0.parquet", "part-w-2-0.parquet", "part-w-2-1.parquet", "part-v-1-0.parquet", "old.parquet"]
    found = [FileInfo(f"/t/{name}", 1, 1, is_dir=False) for name in names]
    assert _groups(found, 100) == [["old.parquet", "part-w-1-0.parquet"]]


class NoCatalog(Catalog):
    """Stands for Spark's, which has no part in the exchange of files."""

    def __init__(self) -> None:
        """Without a session."""

    def refresh(self, name: str) -> None:
        """Nobody reads here."""


def _upkeep(location: str) -> ParquetUpkeep:
    entry = CatalogEntry(name="t", provider="parquet", location=location, fields=FIELDS, partition_by=())
    return ParquetUpkeep(entry=entry, files=Files(), catalog=NoCatalog(), writing=contextlib.nullcontext)


def compact_for_ever(location: str, first: int) -> None:
    """Add a row, make one file of all, and again, until somebody kills us."""
    for number in range(first, 1_000_000):
        pq.write_table(pa.table({"id": [number]}), f"{location}/.draft")
        Path(location, ".draft").replace(Path(location, f"part-w-{number}-0.parquet"))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        _upkeep(location).compact(1 << 20, dry_run=False)


@pytest.mark.processes
def test_a_compaction_that_is_killed_again_and_again_leaves_every_row_once(tmp_path: Path) -> None:
    program = f"""
from tests.unit.streams.spark.tables.test_parquet_upkeep import compact_for_ever
compact_for_ever({str(tmp_path)!r}, int(input()))
"""
    done = -1
    for goal in (7, 12, 20, 31):
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child:
            child.stdin.write(f"{done + 1}\n")
            child.stdin.flush()
            while done < goal:
                done = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            for line in child.stdout:
                done = int(line)
        _upkeep(str(tmp_path)).recover()
        found = sorted(ds.dataset(str(tmp_path), format="parquet").to_table().column("id").to_pylist())
        done = max(done, found[-1])
        assert found == list(range(done + 1))
