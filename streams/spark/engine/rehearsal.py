"""`python -m streams.spark.engine.rehearsal FOLDER ARCHIVE`: does what engines do while Java archives its classes."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streams.settings import SparkSettings
from streams.spark.engine.class_archive import recording_options
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.session import start_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_END_TIMEOUT_S: Final = 300.0
_STATEMENTS: Final = (
    "CREATE TABLE rehearsal (id BIGINT, name STRING, amount DECIMAL(9,2), at TIMESTAMP) PARTITIONED BY (name)",
    "INSERT INTO rehearsal (id, name, amount, at) VALUES (1, 'a', 1.5, current_timestamp()), (2, 'b', 2.5, NULL)",
    "SELECT name, count(*), sum(amount), max(at) FROM rehearsal WHERE id > 0 GROUP BY name ORDER BY name",
    "SELECT a.id, from_json('{\"x\":1}', 'x INT').x FROM rehearsal a JOIN rehearsal b USING (id)",
    "DESCRIBE TABLE EXTENDED rehearsal",
    "SHOW TABLES",
)


def main(folder: str, archive: str) -> int:
    """Start, work, and end cleanly: Java writes the archive when it exits."""
    settings = SparkSettings.parse(
        {
            "spark.master": "local[2]",
            "spark.caudal.data.dir": folder,
            "spark.caudal.connect.port": "0",
            "spark.driver.extraJavaOptions": " ".join(recording_options(Path(archive))),
        }
    )
    spark = start_spark(settings, EngineFolder(settings.data_dir).create())
    rehearse(spark.session, Path(folder))
    spark.session.stop()
    assert spark.process.stdin is not None, "Java exits when its input ends"
    spark.process.stdin.close()
    return spark.process.wait(_END_TIMEOUT_S)


def rehearse(session: "SparkSession", folder: Path) -> None:
    """A little of everything: statements, Python workers, a stream into a table."""
    for statement in _STATEMENTS:
        session.sql(statement).collect()
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = (
        stream.mapInArrow(_pass_through, "timestamp TIMESTAMP, value BIGINT")
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(_save)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(int(_END_TIMEOUT_S))
    session.table("rehearsed").count()


def _pass_through(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    yield from batches


def _save(frame: "DataFrame", _: int) -> None:
    frame.write.mode("append").format("parquet").saveAsTable("rehearsed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
