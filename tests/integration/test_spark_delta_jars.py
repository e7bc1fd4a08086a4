"""Delta tables in a session with Delta's own jars: CAUDAL_SPARK_JARS names their folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from streams.spark.files import Files
from streams.spark.tables import Tables, TableSpec
from tests.support.spark_session import small_session
from tests.support.staged_files import staged

JARS = sorted(Path(os.environ.get("CAUDAL_SPARK_JARS", "/nonexistent")).glob("delta-*.jar"))
pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not JARS, reason="CAUDAL_SPARK_JARS names no folder with jars of Delta"),
]

ROW = pa.schema([("id", pa.int64()), ("v", pa.string()), ("k", pa.string())])
FILE = pa.schema([("id", pa.int64()), ("v", pa.string()), ("_deleted", pa.bool_())])


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as Delta's documentation configures it."""
    properties = {
        "spark.jars": ",".join(map(str, JARS)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    with small_session(tmp_path_factory.mktemp("spark"), properties) as session:
        yield session


def test_tables_are_native_and_filled_all_the_same(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables = Tables(spark, Files(spark))
    spec = TableSpec(name=name.replace("-", "_"), format="delta", partition_by=("k",))
    tables.evolve(spec, [ROW])
    first = FILE.remove(FILE.get_field_index("_deleted"))
    tables.append(spec, [staged(tmp_path, [{"id": 1}, {"id": 2}], first, partition={"k": "a b"})], writer="w", batch=0)
    upsert = staged(tmp_path, [{"id": 2, "_deleted": True}, {"id": 3}], FILE, partition={"k": "a b"})
    for _ in range(2):
        tables.merge(spec, [upsert], keys=["id"], deleted="_deleted", order=[], writer="w", batch=1)
    tables.evolve(spec, [pa.schema([("n", pa.int32())])])
    (info,) = tables.tables()
    found = DeltaTable(info.location.removeprefix("file:")).to_pyarrow_table()
    assert sorted(found.column("id").to_pylist()) == [1, 3]
    assert found.column_names == ["id", "v", "k", "n"]
    assert info.columns == {"id": "bigint", "v": "string", "k": "string", "n": "int"}
    try:
        rows = spark.sql(f"SELECT id, n, k FROM {spec.name} ORDER BY id").collect()
    except Exception as error:
        if "NoSuchMethodError" in str(error):
            pytest.skip("these jars are for another version of Spark, which can write but not read with them")
        raise
    assert [tuple(row) for row in rows] == [(1, None, "a b"), (3, None, "a b")]
