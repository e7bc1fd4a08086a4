"""Rows for an upsert."""

from pathlib import Path

import pyarrow as pa

from streams.spark.files import Files
from streams.spark.tables.delta_table import last_rows, staged_rows
from tests.support.staged_files import staged

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("day", pa.date32())])


def test_the_last_row_of_every_key_is_kept_whatever_the_order_in_the_files() -> None:
    rows = pa.table({"id": [1, 2, 1, None, None], "at": [5, 1, 4, 1, 2], "v": ["new", "b", "old", "n1", "n2"]})
    kept = last_rows(rows, ["id"], ["at"])
    assert {(row["id"], row["v"]) for row in kept.to_pylist()} == {(1, "new"), (2, "b"), (None, "n2")}


def test_keys_of_several_columns_are_told_apart() -> None:
    rows = pa.table({"a": [1, 1, 1], "b": ["x", "y", "x"], "at": [0, 0, 1], "v": [1, 2, 3]})
    assert sorted(last_rows(rows, ["a", "b"], ["at"]).column("v").to_pylist()) == [2, 3]


def test_without_an_order_the_later_row_wins() -> None:
    rows = pa.table({"id": [1, 1], "v": ["first", "second"]})
    assert last_rows(rows, ["id"], []).column("v").to_pylist() == ["second"]


def test_partition_columns_come_back_with_their_types_and_narrow_files_are_widened(tmp_path: Path) -> None:
    narrow = pa.schema([("id", pa.int32()), ("_deleted", pa.bool_()), ("other", pa.int8())])
    files = [
        staged(tmp_path, [{"id": 1, "_deleted": True}], narrow, partition={"day": "2024-02-29"}),
        staged(tmp_path, [{"id": 2, "v": "b"}], pa.schema([("id", pa.int64()), ("v", pa.string())])),
    ]
    rows = staged_rows(Files(), files, SCHEMA, extra=["_deleted"])
    assert rows.schema == pa.schema([*SCHEMA, pa.field("_deleted", pa.bool_())])
    assert [str(day) for day in rows.column("day").to_pylist()] == ["2024-02-29", "None"]
