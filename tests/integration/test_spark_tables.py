"""Tables with a real Spark, and with readers of others: pyarrow, delta-rs, plain SQL in another session."""

import datetime as dt
import decimal
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from core_broker.service.clock import ManualClock
from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.errors import SchemaConflict, WrongOption
from streams.settings import SparkSettings
from streams.spark.engine.job import EngineContext
from streams.spark.engine.operations import OPERATIONS
from streams.spark.files import Files, HadoopFiles, join_path
from streams.spark.tables import StagedFile, Tables, TableSpec
from streams.spark.types import list_of, map_of
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session
from tests.support.staged_files import staged

pytestmark = [needs_java, pytest.mark.timeout(900)]

ROW = pa.schema([("id", pa.int64()), ("v", pa.string())])
PLACE = [("_topic", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())]
NOW_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
DAY_MS = 86_400_000

FORMATS = pytest.mark.parametrize("format_", ["parquet", "delta"])


class Killed(Exception):
    """Stands for a kill."""


class MortalFiles(Files):
    """Files that fail after a number of moves, as a killed process does."""

    def __init__(self, session: SparkSession, moves: int) -> None:
        super().__init__(session)
        self._left = moves

    def move(self, source: str, target: str) -> None:
        """Count."""
        if not self._left:
            raise Killed
        self._left -= 1
        super().move(source, target)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for this file."""
    with small_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    """Its tables, on New Year's Day 2024."""
    return Tables(spark, Files(spark), clock=ManualClock(NOW_MS))


def _spec(name: str, format_: Any = "parquet", *partition_by: str) -> TableSpec:
    return TableSpec(name=name.replace("-", "_"), format=format_, partition_by=partition_by)


def _filled(tables: Tables, spec: TableSpec, folder: Path, *, batches: int, files: int = 2) -> list[StagedFile]:
    """A table with ids from 0, one row in each file; the files of the last batch."""
    tables.evolve(spec, [ROW])
    last: list[StagedFile] = []
    for batch in range(batches):
        last = [staged(folder, [{"id": batch * files + i, "v": "x"}], ROW) for i in range(files)]
        tables.append(spec, last, writer="w", batch=batch)
    return last


def _ids(spark: SparkSession, spec: TableSpec, where: str = "true") -> list[int]:
    return sorted(row["id"] for row in spark.sql(f"SELECT id FROM {spec.name} WHERE {where}").collect())


def _location(tables: Tables, spec: TableSpec) -> str:
    (found,) = [info for info in tables.tables() if info.name == spec.name]
    return found.location.removeprefix("file:")


def _foreign_ids(location: str, format_: str) -> list[int]:
    if format_ == "delta":
        return sorted(DeltaTable(location).to_pyarrow_table().column("id").to_pylist())
    return sorted(ds.dataset(location).to_table().column("id").to_pylist())


@FORMATS
def test_appended_rows_are_seen_by_every_reader_at_once_and_once(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(name, format_)
    last = _filled(tables, spec, tmp_path, batches=2)
    assert _ids(spark, spec) == [0, 1, 2, 3]
    tables.append(spec, last, writer="w", batch=1)
    tables.append(spec, [staged(tmp_path, [{"id": 4}], ROW)], writer="w", batch=2)
    assert _ids(spark, spec) == [0, 1, 2, 3, 4]
    assert _ids(spark.newSession(), spec, "id > 1") == [2, 3, 4]
    assert _foreign_ids(_location(tables, spec), format_) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("moves", [0, 1])
def test_an_append_that_was_killed_between_its_moves_is_finished(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, moves: int
) -> None:
    spec = _spec(f"{name}_{moves}")
    _filled(tables, spec, tmp_path, batches=1)
    files = [staged(tmp_path, [{"id": 10 + i}], ROW) for i in range(2)]
    with pytest.raises(Killed):
        Tables(spark, MortalFiles(spark, moves)).append(spec, files, writer="w", batch=1)
    tables.append(spec, files, writer="w", batch=1)
    assert _ids(spark, spec) == [0, 1, 10, 11]


def test_a_staged_file_that_is_lost_is_no_silent_loss(tables: Tables, tmp_path: Path, name: str) -> None:
    spec = _spec(name)
    tables.evolve(spec, [ROW])
    file = staged(tmp_path, [{"id": 1}], ROW)
    Path(file.path).unlink()
    with pytest.raises(FileNotFoundError):
        tables.append(spec, [file], writer="w", batch=0)


NARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("f", pa.float32()),
        ("i32_double", pa.int32()),
        ("d", pa.decimal128(9, 2)),
        ("d_scale", pa.decimal128(9, 2)),
        ("s", pa.struct([("a", pa.int32())])),
        ("l", list_of(pa.int32())),
        ("m", map_of(pa.struct([("y", pa.int16())]))),
    ]
)
WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("i8", pa.int16()),
        ("i16", pa.int64()),
        ("i32", pa.int64()),
        ("f", pa.float64()),
        ("i32_double", pa.float64()),
        ("d", pa.decimal128(20, 2)),
        ("d_scale", pa.decimal128(14, 4)),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])),
        ("l", list_of(pa.int64())),
        ("m", map_of(pa.struct([("y", pa.float64()), ("z", pa.string())]))),
        ("added", TIMESTAMP),
    ]
)
OLD_ROW = {
    "id": 1,
    "i8": -128,
    "i16": 2**15 - 1,
    "i32": -(2**31),
    "f": 1.5,
    "i32_double": 2**31 - 1,
    "d": decimal.Decimal("1234567.89"),
    "d_scale": decimal.Decimal("-1234567.89"),
    "s": {"a": 7},
    "l": [1, None, 2**31 - 1],
    "m": [("k", {"y": 3})],
}
NEW_ROW = {
    "id": 2,
    "i8": 2**15 - 1,
    "i16": 2**40,
    "i32": -(2**40),
    "f": 0.1,
    "i32_double": 0.25,
    "d": decimal.Decimal("123456789012345678.91"),
    "d_scale": decimal.Decimal("1234567890.1234"),
    "s": {"a": 2**40, "b": {"c": "deep"}},
    "l": [2**40],
    "m": [("k", {"y": 0.5, "z": "new"})],
    "added": dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=dt.UTC),
}
EXPECTED_OLD = {
    **OLD_ROW,
    "s": {"a": 7, "b": None},
    "d_scale": decimal.Decimal("-1234567.8900"),
    "m": [("k", {"y": 3.0, "z": None})],
    "added": None,
}


@FORMATS
def test_old_and_new_files_are_read_together_after_types_have_grown(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(name, format_)
    tables.evolve(spec, [NARROW])
    tables.append(spec, [staged(tmp_path, [OLD_ROW] * 3, NARROW)], writer="w", batch=0)
    tables.evolve(spec, [NARROW, WIDE])
    assert tables.schema(spec.name) == WIDE
    tables.append(spec, [staged(tmp_path, [NEW_ROW], WIDE)], writer="w", batch=1)
    tables.append(spec, [staged(tmp_path, [OLD_ROW], NARROW)], writer="w", batch=2)
    for is_vectorized in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)
        try:
            rows = spark.sql(f"SELECT * FROM {spec.name} ORDER BY id").toArrow().to_pylist()
            assert rows == [EXPECTED_OLD] * 4 + [NEW_ROW]
            filters = "i32 = -2147483648 AND f = 1.5 AND d = 1234567.89 AND d_scale = -1234567.89 AND s.a = 7"
            assert spark.sql(f"SELECT id FROM {spec.name} WHERE {filters}").count() == 4
            assert spark.sql(f"SELECT id FROM {spec.name} WHERE i16 = {2**40} AND i32_double = 0.25").count() == 1
        finally:
            spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")
    if format_ == "parquet":
        # Compaction leaves one file with the types of the table.
        tables.append(spec, [staged(tmp_path, [NEW_ROW], WIDE)], writer="w", batch=3)
        assert tables.compact(spec.name).files_removed == 3
        (compacted,) = Path(_location(tables, spec)).glob("compacted-*.parquet")
        assert pq.read_schema(compacted).remove_metadata() == WIDE
        assert spark.table(spec.name).where("s.b IS NULL").count() == 4


@FORMATS
def test_partitions_with_odd_values_are_found_by_spark(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(f"odd.{name}", format_, "day", "k")
    schema = pa.schema([*ROW, pa.field("day", pa.date32()), pa.field("k", pa.string())])
    tables.evolve(spec, [schema])
    values = ["a b/c", "50%'=\\", "ünï:c#?", None]
    for batch in range(2):
        files = [
            staged(tmp_path, [{"id": batch * 10 + i}], ROW, partition={"day": "2024-01-01", "k": value})
            for i, value in enumerate(values)
        ]
        tables.append(spec, files, writer="w", batch=batch)
    rows = spark.sql(f"SELECT id, day, k FROM {spec.name} ORDER BY id").collect()
    assert [row["k"] for row in rows] == values * 2
    assert {row["day"] for row in rows} == {dt.date(2024, 1, 1)}
    assert _ids(spark, spec, "k = 'a b/c'") == [0, 10]
    assert _ids(spark, spec, "k IS NULL AND day = DATE'2024-01-01'") == [3, 13]


def test_a_partition_or_table_that_somebody_drops_comes_back_with_the_next_rows(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    spec = _spec(name, "parquet", "k")
    tables.evolve(spec, [ROW])
    partition: dict[str, str | None] = {"k": "a"}
    tables.append(spec, [staged(tmp_path, [{"id": 1}], ROW, partition=partition)], writer="w", batch=0)
    spark.sql(f"ALTER TABLE {spec.name} DROP PARTITION (k='a')")
    tables.append(spec, [staged(tmp_path, [{"id": 2}], ROW, partition=partition)], writer="w", batch=1)
    assert _ids(spark, spec) == [2]
    spark.sql(f"DROP TABLE {spec.name}")
    tables.append(spec, [staged(tmp_path, [{"id": 3}], ROW, partition=partition)], writer="w", batch=2)
    assert _ids(spark, spec) == [3]


def test_a_dropped_delta_table_is_gone_with_its_rows(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    spec = _spec(name, "delta")
    last = _filled(tables, spec, tmp_path, batches=1)
    location = _location(tables, spec)
    spark.sql(f"DROP TABLE {spec.name}")
    assert not Path(location).exists()
    assert last
    tables.append(spec, [staged(tmp_path, [{"id": 9}], ROW)], writer="w", batch=0)
    assert _ids(spark, spec) == [9]


def test_a_delta_log_that_lost_its_entry_in_the_catalog_is_taken_up_again(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "mine"
    spec = TableSpec(name=name.replace("-", "_"), format="delta", location=str(folder))
    _filled(tables, spec, tmp_path, batches=1)
    spark.sql(f"DROP TABLE {spec.name}")
    again = Tables(spark, Files(spark))
    again.evolve(spec, [pa.schema([*ROW, pa.field("n", pa.int32())])])
    assert _ids(spark, spec, "n IS NULL") == [0, 1]


def test_upserts_are_seen_by_spark(spark: SparkSession, tables: Tables, tmp_path: Path, name: str) -> None:
    spec = _spec(name, "delta", "k")
    schema = pa.schema([*ROW, pa.field("k", pa.string())])
    tables.evolve(spec, [schema])
    upsert = pa.schema([*ROW, pa.field("_deleted", pa.bool_()), pa.field("_offset", pa.int64())])
    batches: list[list[dict[str, Any]]] = [
        [{"id": 1, "v": "a", "_offset": 0}, {"id": 2, "v": "b", "_offset": 1}],
        [{"id": 1, "v": "c", "_offset": 2}, {"id": 2, "_deleted": True, "_offset": 3}, {"id": 3, "_offset": 4}],
    ]
    for batch, rows in enumerate(batches):
        file = staged(tmp_path, rows, upsert, partition={"k": "a b"})
        for _ in range(2):
            tables.merge(spec, [file], keys=["id"], deleted="_deleted", order=["_offset"], writer="w", batch=batch)
    found = spark.sql(f"SELECT * FROM {spec.name} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "c", "a b"), (3, None, "a b")]


def test_upserts_need_a_format_that_knows_them(tables: Tables, tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongOption, match="delta"):
        tables.merge(
            _spec(name), [staged(tmp_path, [{}], ROW)], keys=["id"], deleted="d", order=[], writer="w", batch=0
        )


@FORMATS
def test_what_does_not_fit_is_told_before_and_refused_after(
    tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(name, format_, "k")
    tables.evolve(spec, [pa.schema([*ROW, pa.field("k", pa.string())])])
    good, bad = pa.schema([("id", pa.int32()), ("n", pa.int8())]), pa.schema([("id", pa.string())])
    moved = pa.schema([("k", pa.int32())])
    verdicts = tables.plan(spec, [good, bad, moved])
    assert [verdict and verdict.column for verdict in verdicts] == [None, "id", "k"]
    assert tables.schema(spec.name) == pa.schema([*ROW, pa.field("k", pa.string())])
    with pytest.raises(SchemaConflict):
        tables.evolve(spec, [bad])
    with pytest.raises(SchemaConflict):
        tables.append(spec, [staged(tmp_path, [{"n": 1}], good)], writer="w", batch=0)
    with pytest.raises(WrongOption, match=r"partition\.by"):
        tables.evolve(_spec(name, format_), [ROW])
    with pytest.raises(WrongOption, match=r"table\.format"):
        tables.evolve(_spec(name, "delta" if format_ == "parquet" else "parquet", "k"), [ROW])


def test_columns_without_a_type_come_when_they_have_one(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    spec = _spec(name)
    unknown = pa.schema([("id", pa.int64()), ("later", pa.null())])
    tables.evolve(spec, [unknown])
    tables.append(spec, [staged(tmp_path, [{"id": 1}], unknown)], writer="w", batch=0)
    tables.evolve(spec, [pa.schema([("later", pa.string())])])
    assert [tuple(row) for row in spark.table(spec.name).collect()] == [(1, None)]


def test_spark_learns_that_a_table_has_grown_large(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    spec = _spec(name)
    _filled(tables, spec, tmp_path, batches=1)
    # Hive notes the size of a table whose columns change, and never again.
    tables.evolve(spec, [pa.schema([("n", pa.int32())])])
    rows = [{"id": number, "v": hashlib.sha512(str(number).encode()).hexdigest()} for number in range(10_000)]
    for batch in range(1, 9):
        tables.append(spec, [staged(tmp_path, rows, ROW)], writer="w", batch=batch)
    bytes_ = next(info.bytes for info in tables.tables() if info.name == spec.name)
    plan = spark.table(spec.name)._jdf.queryExecution().optimizedPlan()
    assert bytes_ > 5 << 20
    assert plan.stats().sizeInBytes() > bytes_ / 3


def test_compaction_leaves_what_its_writer_may_look_for(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    spec = _spec(name)
    last = _filled(tables, spec, tmp_path, batches=4)
    assert tables.compact(spec.name, dry_run=True).files_removed == 6
    result = tables.compact(spec.name)
    assert (result.files_removed, result.files_added) == (6, 1)
    tables.append(spec, last, writer="w", batch=3)
    assert _ids(spark, spec) == list(range(8))
    assert tables.compact(spec.name).files_removed == 0
    assert _foreign_ids(_location(tables, spec), "parquet") == list(range(8))


def test_a_compaction_that_was_killed_is_finished_by_the_next_start(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    spec = _spec(name)
    _filled(tables, spec, tmp_path, batches=4)
    with pytest.raises(Killed):
        Tables(spark, MortalFiles(spark, 0)).compact(spec.name)
    assert tables.recover(spec) == 1
    assert tables.recover(spec) == 0
    spark.catalog.refreshTable(spec.name)
    assert _ids(spark, spec) == list(range(8))


@FORMATS
def test_a_sink_appends_while_its_table_is_compacted(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(name, format_)
    tables.evolve(spec, [ROW])
    failures: list[BaseException] = []

    def write() -> None:
        try:
            for batch in range(30):
                tables.append(spec, [staged(tmp_path, [{"id": batch}], ROW)], writer="w", batch=batch)
        except BaseException as error:  # noqa: BLE001 -- raised by the main thread
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        tables.compact(spec.name, target_bytes=1 << 20)
    writer.join()
    assert failures == []
    assert _ids(spark, spec) == list(range(30))


def _placed(tables: Tables, spec: TableSpec, folder: Path) -> None:
    """Two days of ten records each of topic t, five records in a file."""
    schema = pa.schema([*ROW, ("_timestamp", TIMESTAMP), *PLACE])
    partitioned = pa.schema([*schema, *([("day", pa.string())] if spec.partition_by else [])])
    tables.evolve(spec, [partitioned])
    start = dt.datetime(2023, 12, 30, tzinfo=dt.UTC)
    for batch in range(4):
        day = start + dt.timedelta(days=batch // 2)
        rows = [
            {
                "id": offset,
                "_timestamp": day + dt.timedelta(hours=offset % 10),
                "_topic": "t",
                "_partition": 0,
                "_offset": offset,
            }
            for offset in range(batch * 5, batch * 5 + 5)
        ]
        partition: dict[str, str | None] = {"day": f"{day:%Y-%m-%d}"} if spec.partition_by else {}
        tables.append(spec, [staged(folder, rows, schema, partition=partition)], writer="w", batch=batch)


@FORMATS
def test_rows_expire_by_their_time(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(name, format_)
    _placed(tables, spec, tmp_path)
    age = 2 * DAY_MS - 7 * 3_600_000
    assert tables.expire(spec.name, age, dry_run=True).rows_removed == 7
    assert _ids(spark, spec) == list(range(20))
    assert tables.expire(spec.name, age).rows_removed == 7
    assert _ids(spark, spec) == list(range(7, 20))
    assert _foreign_ids(_location(tables, spec), format_) == list(range(7, 20))


@FORMATS
def test_whole_partitions_expire(spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str) -> None:
    spec = _spec(name, format_, "day")
    _placed(tables, spec, tmp_path)
    result = tables.expire(spec.name, DAY_MS, column="day")
    assert result.rows_removed == 10
    assert _ids(spark, spec) == list(range(10, 20))
    if format_ == "parquet":
        assert result.partitions_dropped == 1
        assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {spec.name}").collect()] == ["day=2023-12-31"]


@FORMATS
def test_a_range_of_a_topic_is_removed_and_the_last_batch_stays_idempotent(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(name, format_)
    _placed(tables, spec, tmp_path)
    assert tables.remove_range(spec.name, "other", partition=0, first=0, last=99).rows_removed == 0
    assert tables.remove_range(spec.name, "t", partition=1, first=0, last=99).rows_removed == 0
    assert tables.remove_range(spec.name, "t", partition=0, first=3, last=19, dry_run=True).rows_removed == 17
    assert tables.remove_range(spec.name, "t", partition=0, first=3, last=19).rows_removed == 17
    assert _ids(spark, spec) == [0, 1, 2]
    gone = staged(tmp_path, [{"id": 15}], ROW)
    Path(gone.path).unlink()
    tables.append(spec, [gone], writer="w", batch=3)
    assert _ids(spark, spec) == [0, 1, 2]


@pytest.mark.parametrize(
    ("operation", "arguments", "key"),
    [
        ("compact", {}, "table"),
        ("compact", {"table": "nowhere"}, "table"),
        ("compact", {"table": "x; DROP TABLE y"}, "table"),
        ("compact", {"table": "t", "target_bytes": "1"}, "target_bytes"),
        ("compact", {"table": "t", "target_bytes": 1}, "target_bytes"),
        ("expire", {"table": "t"}, "older_than_ms"),
        ("expire", {"table": "t", "older_than_ms": True}, "older_than_ms"),
        ("remove-range", {"table": "t", "topic": "t", "partition": 0, "first": 0}, "last"),
        ("recover", {"surprise": 1}, "surprise"),
    ],
)
def test_operations_refuse_what_they_do_not_understand(
    spark: SparkSession, operation: str, arguments: dict[str, Any], key: str
) -> None:
    with pytest.raises(WrongOption) as caught:
        OPERATIONS[operation](EngineContext(spark, SparkSettings()), arguments)
    assert caught.value.key == key


@FORMATS
def test_an_overview_says_what_a_table_has(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str, format_: str
) -> None:
    spec = _spec(f"seen.{name}", format_, "k")
    tables.evolve(spec, [pa.schema([*ROW, pa.field("k", pa.string())])])
    files = [staged(tmp_path, [{"id": i}, {"id": i}], ROW, partition={"k": str(i)}) for i in range(3)]
    tables.append(spec, files, writer="w", batch=0)
    spark.sql(f"CREATE VIEW {spec.name}_view AS SELECT 1 AS one")
    context = EngineContext(spark, SparkSettings())
    (info,) = [found for found in OPERATIONS["tables"](context, {}) if found["name"] == spec.name]
    assert (info["format"], info["files"], info["rows"]) == (format_, 3, 6)
    assert info["columns"] == {"id": "bigint", "v": "string", "k": "string"}
    assert info["partitioned_by"] == ("k",)
    assert info["bytes"] > 0
    assert info["changed_ms"] > NOW_MS


def test_hadoops_file_systems_keep_the_same_promises(spark: SparkSession, tmp_path: Path) -> None:
    files = HadoopFiles(spark)
    root = f"file:{tmp_path}"
    path = join_path(root, "a b%2F", "f")
    assert files.write_new(path, b"first")
    assert not files.write_new(path, b"second")
    assert files.read(path) == b"first"
    files.write(path, b"third" * 500_000)
    assert files.read(path) == b"third" * 500_000
    target = join_path(root, "deep", "er", "g")
    files.move(path, target)
    files.move(path, target)
    assert [(entry.name, entry.is_dir) for entry in files.list(root)] == [("a b%2F", True), ("deep", True)]
    info = files.info(target)
    assert info is not None
    assert (info.size, info.is_dir) == (2_500_000, False)
    files.delete(join_path(root, "deep"))
    assert files.info(target) is None
    assert files.list(join_path(root, "nothing")) == []
    with pytest.raises(FileNotFoundError):
        files.read(target)
    with pytest.raises(FileNotFoundError):
        files.move(target, path)
    # No checksums of others beside the files, which a crash would leave behind.
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["a b%2F"]
