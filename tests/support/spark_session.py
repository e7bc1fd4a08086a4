"""A small classic Spark session with a Hive catalog of its own, for tests that need Spark itself and no engine."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from streams.spark.engine.class_archive import archive_file, archive_options

_ROOT = Path(__file__).parents[2]
_OURS = (_ROOT / "streams" / "spark" / "discovery", _ROOT)


@contextmanager
def small_session(folder: Path, properties: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """One that lives as long as the block, with everything it writes below the folder."""
    before = dict(os.environ)
    # Spark's Python workers find our data sources and our code by the path.
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, _OURS))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master("local[2]").appName(folder.name)
    for key, value in {**_properties(folder), **(properties or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        os.environ.clear()
        os.environ.update(before)


def _properties(folder: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.metadataCacheTTLSeconds": "1",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.driver.extraJavaOptions": " ".join(
            [
                f"-Dderby.system.home={folder} -Dderby.stream.error.file={folder}/derby.log",
                *archive_options(archive_file(os.environ)),
            ]
        ),
    }
