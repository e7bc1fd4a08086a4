"""The ceiling of the Spark sink: the same query, files and commits, fed with rows from memory instead of a topic."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from typing_extensions import override

from connect.api.engine import TopicChoice
from connectors.spark.query import SinkQuery
from connectors.spark.rows import Rows
from connectors.spark.spec import SinkSpec
from connectors.spark.staging import Staging
from connectors.spark.stream_reader import RangesPartition, SinkStreamReader
from core_broker.client.consumer import TopicPartition
from streams.settings import SparkSettings
from streams.spark.commits.entries import Counted, Entry, WrittenRange, pack_entries
from streams.spark.commits.manifest import flatten
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.job import EngineContext
from streams.spark.engine.session import start_spark
from tests.benchmarks.measure import Row, family_cpu_seconds

_PARTITIONS = 4
_CHUNK = 20_000
_PATIENCE_SECONDS = 300.0


class _Reader(SinkStreamReader):
    """Has all the rows at once."""

    rows = 0

    @override
    def _ends(self) -> dict[TopicPartition, int]:
        return {("ceiling", number): self.rows // _PARTITIONS for number in range(_PARTITIONS)}

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangesPartition)
        staging = Staging(self._folders.staging, self._spec.config)
        chunk = _chunk()
        entries: list[Entry] = []
        for one in partition.ranges:
            for first in range(one.start, one.end, _CHUNK):
                count = min(_CHUNK, one.end - first)
                columns = {name: column.slice(0, count) for name, column in chunk.items()}
                columns["_offset"] = pa.array(np.arange(first, first + count))
                staging.add(Rows(self._spec.config.table, columns, np.arange(count)))
            entries.append(WrittenRange(topic=one.topic, partition=one.partition, start=one.start, end=one.end))
        yield pack_entries([*entries, *staging.finish(), Counted(counts={})])


class _Query(SinkQuery):
    @override
    def _reader(self, positions: Mapping[TopicPartition, int]) -> SinkStreamReader:
        reader = _Reader(self._sink, self._folders, positions, parallelism=2)
        reader.rows = self.spec["rows"]
        return reader


def _chunk() -> dict[str, pa.Array]:
    """Rows like those of the topics."""
    generator = np.random.default_rng(1)
    number = np.arange(_CHUNK)
    return {
        "id": pa.array(number),
        "user": pa.array([f"user-{n}" for n in generator.integers(0, 100_000, _CHUNK)]),
        "page": pa.array([f"/pages/{n}" for n in generator.integers(0, 1000, _CHUNK)]),
        "milliseconds": pa.array(generator.integers(0, 100_000, _CHUNK), pa.int32()),
        "score": pa.array(generator.random(_CHUNK)),
        "is_new": pa.array(generator.random(_CHUNK) < 0.1),
        "at": pa.array(generator.integers(0, 10**15, _CHUNK)).cast(pa.timestamp("us", "UTC")),
        "referrer": pa.array([None if n % 2 else "search" for n in number], pa.string()),
        "_topic": pa.repeat("ceiling", _CHUNK),
        "_partition": pa.repeat(pa.scalar(0, pa.int32()), _CHUNK),
        "_timestamp": pa.array(generator.integers(0, 10**15, _CHUNK)).cast(pa.timestamp("us", "UTC")),
    }


def ceilings(directory: Path, rows: int, *, bootstrap: str) -> Iterator[tuple[str, float, Row]]:
    """Rows per second of each format, and how it was measured."""
    settings = SparkSettings.parse(
        {
            "spark.caudal.data.dir": str(directory),
            "spark.caudal.connect.port": "-1",
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
        }
    )
    folder = EngineFolder(settings.data_dir)
    running = start_spark(settings, folder)
    try:
        context = EngineContext(running.session, settings)
        for table_format in ("parquet", "delta"):
            yield table_format, *_measured(context, table_format, rows, bootstrap)
    finally:
        running.session.stop()
        running.process.terminate()
        running.process.wait(30)


def _measured(context: EngineContext, table_format: str, rows: int, bootstrap: str) -> tuple[float, Row]:
    batch = max(1000, rows // 10)
    kafka = {"bootstrap.servers": bootstrap}
    spec = SinkSpec(
        connector=f"ceiling-{table_format}",
        consumer=kafka,
        producer=kafka,
        admin=kafka,
        group=f"ceiling-{table_format}",
        topics=TopicChoice(names=("ceiling",)),
        options={
            "table": f"ceiling_{table_format}",
            "table.format": table_format,
            "batch.max.records": str(batch),
            "trigger.interval.ms": "0",
        },
    )
    query = _Query(context, spec.connector, {**spec.as_json(), "rows": rows})
    query.start()
    try:
        began, before = _wait(query, 1)
        spent = family_cpu_seconds(psutil.Process())
        ended, after = _wait(query, rows // _PARTITIONS * _PARTITIONS)
        cost = family_cpu_seconds(psutil.Process()) - spent
    finally:
        query.stop()
    written = max(1, after - before)
    rate = written / max(ended - began, 1e-9)
    row = Row(
        what=f"ceiling of {table_format}: rows from memory",
        result=f"{rate:,.0f} rows/s",
        how=f"the same sink without topic and decoding: {written:,} rows in batches of {batch:,}, "
        f"{cost / written * 1e6:.2f} CPU-s per million rows",
    )
    return rate, row


def _wait(query: _Query, count: int) -> tuple[float, int]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (done := _done(query)) < count:
        query.check()
        assert time.monotonic() < deadline, "the ceiling's query does not get on"
        time.sleep(0.02)
    return time.monotonic(), done


def _done(query: _Query) -> int:
    manifest: Any = query._commits.manifest
    return 0 if manifest is None else sum(flatten(manifest.positions).values())
