"""Which rows upkeep removes."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.errors import WrongOption
from streams.spark.tables.removal import OlderThan, TopicRange, Verdict

DAY = dt.datetime(2024, 1, 10, 5, tzinfo=dt.UTC)


def _metadata(folder: Path, rows: pa.Table) -> pq.FileMetaData:
    pq.write_table(rows, folder / "f.parquet", row_group_size=2)
    return pq.read_metadata(folder / "f.parquet")


@pytest.mark.parametrize(
    ("hours", "verdict", "matches"),
    [
        ([-3, -2, -1], Verdict.DROP, [True, True, True]),
        ([0, 1, 2], Verdict.KEEP, [False, False, False]),
        ([-1, 0, 1], Verdict.FILTER, [True, False, False]),
        ([-1, None, 1], Verdict.FILTER, [True, False, False]),
    ],
)
def test_age_is_decided_by_the_footer_where_possible(
    tmp_path: Path, hours: list[int | None], verdict: Verdict, matches: list[bool]
) -> None:
    times = [None if hour is None else DAY + dt.timedelta(hours=hour) for hour in hours]
    rows = pa.table({"at": pa.array(times, TIMESTAMP)})
    older = OlderThan("at", TIMESTAMP, DAY)
    assert older.verdict(_metadata(tmp_path, rows), {}) is verdict
    assert older.matches(rows, {}).to_pylist() == matches


@pytest.mark.parametrize(
    ("value", "verdict"),
    [("2024-01-09", Verdict.DROP), ("2024-01-10", Verdict.KEEP), (None, Verdict.KEEP)],
)
def test_a_folders_day_is_older_when_all_of_it_is(tmp_path: Path, value: str | None, verdict: Verdict) -> None:
    metadata = _metadata(tmp_path, pa.table({"id": [1]}))
    assert OlderThan("day", pa.string(), DAY).verdict(metadata, {"day": value}) is verdict


def test_a_folder_that_is_no_day_is_refused(tmp_path: Path) -> None:
    metadata = _metadata(tmp_path, pa.table({"id": [1]}))
    with pytest.raises(WrongOption, match="yesterday"):
        OlderThan("day", pa.string(), DAY).verdict(metadata, {"day": "yesterday"})


def _places(topic: str, partition: int, offsets: list[int | None]) -> pa.Table:
    return pa.table(
        {
            "_topic": [topic] * len(offsets),
            "_partition": pa.array([partition] * len(offsets), pa.int32()),
            "_offset": pa.array(offsets, pa.int64()),
        }
    )


@pytest.mark.parametrize(
    ("rows", "verdict", "matches"),
    [
        (_places("t", 0, [3, 4, 5]), Verdict.DROP, [True, True, True]),
        (_places("t", 0, [2, 3, 6]), Verdict.FILTER, [False, True, False]),
        (_places("t", 0, [0, 1, 2]), Verdict.KEEP, [False, False, False]),
        (_places("t", 1, [3, 4, 5]), Verdict.KEEP, [False, False, False]),
        (_places("s", 0, [3, 4, 5]), Verdict.KEEP, [False, False, False]),
        (_places("t", 0, [3, None, 5]), Verdict.FILTER, [True, False, True]),
    ],
)
def test_a_range_of_offsets_is_decided_by_the_footer_where_possible(
    tmp_path: Path, rows: pa.Table, verdict: Verdict, matches: list[bool]
) -> None:
    range_ = TopicRange(topic="t", partition=0, first=3, last=5)
    assert range_.verdict(_metadata(tmp_path, rows), {}) is verdict
    assert range_.matches(rows, {}).to_pylist() == matches


@pytest.mark.parametrize(("topic", "number", "expected"), [("t", "10", True), ("s", "10", False), ("t", "9", False)])
def test_folders_stand_for_topic_and_partition(tmp_path: Path, topic: str, number: str, *, expected: bool) -> None:
    rows = pa.table({"_offset": [3, 4]})
    range_ = TopicRange(topic="t", partition=10, first=3, last=5)
    folders = {"_topic": topic, "_partition": number}
    assert range_.verdict(_metadata(tmp_path, rows), folders) is (Verdict.DROP if expected else Verdict.KEEP)
    assert range_.matches(rows, folders).to_pylist() == [expected, expected]
