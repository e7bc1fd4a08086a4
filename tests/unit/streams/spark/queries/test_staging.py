"""Rows on their way to the driver."""

from pathlib import Path

import pyarrow as pa

from streams.formats.registry import RegistrySettings
from streams.model.sources import Column, WindowInfo
from streams.spark.queries.staging import RecordStage, RowStage, Staged
from tests.support.streams_queries import source


def _rows(*numbers: int) -> pa.RecordBatch:
    count = len(numbers)
    return pa.RecordBatch.from_pydict(
        {
            "ID": pa.array([f"k{number}" for number in numbers], pa.string()),
            "N": pa.array(numbers, pa.int64()),
            "ROWTIME": pa.array([7] * count, pa.int64()),
            "WINDOWSTART": pa.array([1] * count, pa.int64()),
            "WINDOWEND": pa.array([2] * count, pa.int64()),
            "__deleted": pa.array([number < 0 for number in numbers], pa.bool_()),
        }
    )


def _stage(folder: Path, *, window: WindowInfo | None = None) -> RecordStage:
    sink = source("t", "TABLE", key={"ID": "STRING"}, value={"N": "BIGINT"}, window=window)
    return RecordStage(sink, RegistrySettings(), str(folder), partitions=4)


def _staged(report: pa.RecordBatch) -> Staged:
    ((path, data, count),) = zip(*(column.to_pylist() for column in report.columns), strict=True)
    return Staged(path, data, count)


def test_a_few_records_need_no_file(tmp_path: Path) -> None:
    (report,) = _stage(tmp_path / "staged")(iter([_rows(), _rows(1, -2)]))
    staged = _staged(report)
    assert (staged.path, staged.count) == (None, 2)
    assert [batch.to_pylist() for batch in staged.batches()] == [
        [
            {"key": b"k1", "value": b'{"N":1}', "timestamp": 7, "partition": None},
            {"key": b"k-2", "value": None, "timestamp": 7, "partition": None},
        ]
    ]
    assert not (tmp_path / "staged").exists()


def test_many_records_are_in_a_file(tmp_path: Path) -> None:
    batches = [_rows(*range(start, start + 5_000)) for start in (0, 5_000, 10_000)]
    (report,) = _stage(tmp_path / "staged")(iter(batches))
    staged = _staged(report)
    assert (staged.data, staged.count) == (None, 15_000)
    assert staged.path is not None
    keys = [key for batch in staged.batches() for key in batch.column("key").to_pylist()]
    assert keys == [b"k%d" % number for number in range(15_000)]


def test_nothing_is_reported_of_no_rows(tmp_path: Path) -> None:
    assert list(_stage(tmp_path)(iter([_rows()]))) == []


def test_windowed_records_have_the_partition_of_their_key(tmp_path: Path) -> None:
    (report,) = _stage(tmp_path, window=WindowInfo(kind="TUMBLING", size_ms=1))(iter([_rows(1, 1)]))
    (batch,) = _staged(report).batches()
    assert batch.column("key").to_pylist() == [b"k1" + (1).to_bytes(8, "big")] * 2
    assert len(set(batch.column("partition").to_pylist())) == 1


def test_rows_for_clients_are_json(tmp_path: Path) -> None:
    (report,) = RowStage((Column("N", "BIGINT"), Column("ID", "STRING")), str(tmp_path))(iter([_rows(1, -2)]))
    (batch,) = _staged(report).batches()
    assert batch.to_pylist() == [{"row": b'[1,"k1"]', "deleted": False}, {"row": b'[-2,"k-2"]', "deleted": True}]
