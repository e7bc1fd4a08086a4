"""The data source `delta`, as Spark's Python workers call it."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, IsNull, Not, StringContains
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from streams.errors import WrongOption
from streams.spark.tables.catalog import LOCATION_KEY, PUSHDOWN_KEY
from streams.spark.tables.delta_source import DeltaReader, DeltaSource, FilteringReader, file_predicate

ROWS = pa.table(
    {"id": [1, 2, 3], "day": ["a b", "c/d", None], "at": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 3},
    schema=pa.schema([("id", pa.int64()), ("day", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
)


@pytest.fixture
def location(tmp_path: Path) -> str:
    """A table of three partitions with a file each."""
    path = str(tmp_path / "a folder" / "table")
    write_deltalake(path, ROWS, partition_by=["day"])
    return path


def _read(reader: DeltaReader) -> list[dict[str, object]]:
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row["id"])


def test_rows_come_in_exactly_the_schema_that_spark_asks_for(location: str) -> None:
    source = DeltaSource({"path": f"file:{location}"})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert {batch.schema for batch in batches} == {to_arrow_schema(schema, timezone="UTC")}
    assert _read(reader) == ROWS.to_pylist()


def test_a_table_of_the_catalog_says_by_its_first_column_where_it_is(location: str) -> None:
    schema = DeltaSource({"path": location}).schema()
    schema.fields[0].metadata = {LOCATION_KEY: f"file:{location}"}
    reader = DeltaSource({}).reader(schema)
    assert not isinstance(reader, FilteringReader)
    assert len(_read(reader)) == 3
    schema.fields[0].metadata[PUSHDOWN_KEY] = "true"
    assert isinstance(DeltaSource({}).reader(schema), FilteringReader)


def test_without_a_folder_the_message_says_what_is_missing() -> None:
    with pytest.raises(WrongOption, match="path"):
        DeltaSource({}).reader(StructType())


def test_files_that_filters_rule_out_are_not_read(location: str) -> None:
    reader = FilteringReader(location, DeltaSource({"path": location}).schema())
    filters: list[Filter] = [EqualTo(("id",), 2), StringContains(("day",), "c")]
    assert list(reader.pushFilters(filters)) == filters
    assert [row["id"] for row in _read(reader)] == [2]


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path / "t"), ROWS.schema)
    source = DeltaSource({"path": str(tmp_path / "t")})
    assert _read(source.reader(source.schema())) == []


def test_columns_that_came_later_are_null_in_old_files(location: str) -> None:
    write_deltalake(location, ROWS.slice(0, 1).append_column("n", pa.array([7])), mode="append", schema_mode="merge")
    source = DeltaSource({"path": location})
    assert [row["n"] for row in _read(source.reader(source.schema()))].count(None) == 3


@pytest.mark.parametrize(
    ("filters", "predicate"),
    [
        ([EqualTo(("id",), 2), GreaterThan(("id",), 1)], '"id" = 2 AND "id" > 1'),
        ([EqualTo(("day",), "it's")], "\"day\" = 'it''s'"),
        ([In(("id",), (1, 2))], '"id" IN (1, 2)'),
        ([IsNull(("day",)), IsNotNull(("id",))], '"day" IS NULL AND "id" IS NOT NULL'),
        ([Not(EqualTo(("id",), 2))], None),
        ([EqualTo(("id", "nested"), 2)], None),
        ([EqualTo(("unknown",), 2)], None),
        ([EqualTo(("at",), dt.datetime(2024, 1, 1, tzinfo=dt.UTC))], None),
        ([In(("id",), (1, None))], None),
        ([EqualTo(("id",), True)], None),
    ],
)
def test_only_filters_that_the_log_can_answer_are_asked(filters: list[Filter], predicate: str | None) -> None:
    assert file_predicate(filters, ROWS.schema) == predicate
