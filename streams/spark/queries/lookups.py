"""Joins of a stream with a table: each worker keeps a copy of the table, which it brings up to date for every batch.

Only the column that is looked up goes to Python: the frame keeps its other columns, and its watermark.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf
from pyspark.sql.types import StructType

from streams.errors import EngineError
from streams.formats.columns import ColumnDecoder
from streams.formats.nulls import without_null_documents
from streams.formats.registry import RegistrySettings
from streams.model.plan import LookupStep
from streams.model.sources import PSEUDO_COLUMNS, ROWOFFSET, ROWPARTITION, ROWTIME, Source
from streams.model.types import quoted, spark_type
from streams.spark.queries.inputs import arrow_schema
from streams.spark.queries.rowtimes import RowTimes
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.decoded import cast_column
from streams.spark.topics.fetching import RawBatch, read_range
from streams.spark.topics.options import Subscription
from streams.spark.topics.positions import Positions
from streams.spark.topics.ranges import OffsetRange, TopicPartition

_BYTES_MAX: Final = 512 << 20
"""Keys and values of the copy of a table, in each worker."""
_REFRESH_SECONDS: Final = 30.0
_TIMEOUT_MS: Final = 60_000
_FOUND: Final = "__found"
_ROW: Final = "__row"


class TableTooLarge(EngineError):
    """A table does not fit into the memory of a worker."""

    def __init__(self, name: str) -> None:
        reason = f"Table {name} has more than {_BYTES_MAX >> 20} MB, which is too much for a join with a stream"
        super().__init__("TableTooLarge", reason)


def look_up(step: LookupStep, frame: DataFrame, cluster: Cluster, registry: RegistrySettings) -> DataFrame:
    """Join a frame with a table, as the table is when a batch runs."""
    fields = _fields(step)
    found = arrow_udf(
        _finder(step.table, arrow_schema(fields), cluster, registry),
        returnType=StructType.fromDDL(f"{fields}, {_FOUND} boolean"),
        functionType=ArrowUDFType.SCALAR,
    ).asNondeterministic()  # else Spark might call it once for each column that is taken out of it
    joined = frame.withColumn(_ROW, found(frame[quoted(step.key)]))
    if step.kind == "INNER":
        joined = joined.where(joined[_ROW][_FOUND])
    kept = [joined[quoted(name)] for name in frame.columns]
    return joined.select(*kept, *(joined[_ROW][column].alias(name) for column, name in step.columns))


def _finder(
    table: Source, fields: pa.Schema, cluster: Cluster, registry: RegistrySettings
) -> Callable[[pa.Array], pa.Array]:
    """What Spark calls in its workers: the rows of keys."""
    document, settings = msgspec.json.encode(table), msgspec.json.encode(registry)

    def find(keys: pa.Array) -> pa.Array:
        return _copy(document, settings, cluster).find(keys, fields)

    return find


_copies: Final[dict[tuple[object, ...], "TableCopy"]] = {}


def _copy(document: bytes, settings: bytes, cluster: Cluster) -> "TableCopy":
    """The copy that this worker keeps."""
    identity = (document, settings, *cluster.key)
    if identity not in _copies:
        table = msgspec.json.decode(document, type=Source)
        _copies[identity] = TableCopy(table, msgspec.json.decode(settings, type=RegistrySettings), cluster)
    return _copies[identity]


class _Stored(msgspec.Struct, frozen=True, gc=False):
    key: bytes
    value: bytes
    timestamp_ms: int
    partition: int
    offset: int


class TableCopy:
    """The latest record of each key of a table."""

    def __init__(self, table: Source, registry: RegistrySettings, cluster: Cluster) -> None:
        self._table = table
        self._cluster = cluster
        self._decoder = ColumnDecoder(table, registry)
        self._times = RowTimes(table.timestamp)
        self._key = table.key[0].name
        self._rows: dict[object, _Stored] = {}
        self._bytes = 0
        self._read: dict[TopicPartition, int] = {}
        self._positions: Positions | None = None
        self._partitions: set[TopicPartition] = set()
        self._next_refresh = 0.0

    def find(self, keys: pa.Array, fields: pa.Schema) -> pa.Array:
        """The rows of keys as structs of these fields, and whether there is one."""
        self._catch_up()
        stored = [self._rows.get(_hashable(key)) for key in keys.to_pylist()]
        present = [row for row in stored if row is not None]
        decoded = self._decoded(present)
        places, place = [], 0
        for row in stored:
            places.append(None if row is None else place)
            place += row is not None
        order = pa.array(places, pa.int64())
        arrays = [cast_column(decoded[field.name], field.type).take(order) for field in fields]
        return pa.StructArray.from_arrays([*arrays, order.is_valid()], names=[*fields.names, _FOUND])

    def _decoded(self, rows: list[_Stored]) -> dict[str, pa.Array]:
        found = self._decoder.decode(
            pa.array([row.key for row in rows], pa.binary()), pa.array([row.value for row in rows], pa.binary())
        ).columns
        found[ROWTIME] = self._times.of(pa.array([row.timestamp_ms for row in rows], pa.int64()), found)
        found[ROWPARTITION] = pa.array([row.partition for row in rows], pa.int32())
        found[ROWOFFSET] = pa.array([row.offset for row in rows], pa.int64())
        return found

    def _catch_up(self) -> None:
        """Read what the topic has got since the last batch."""
        if self._positions is None:
            self._positions = Positions(self._cluster)
        if time.monotonic() >= self._next_refresh:
            topics = Subscription("subscribe", topics=(self._table.topic,))
            self._partitions = self._positions.partitions(topics)
            self._next_refresh = time.monotonic() + _REFRESH_SECONDS
            fresh = self._partitions - self._read.keys()
            self._read |= self._positions.earliest(fresh)
        for place, end in self._positions.latest(self._partitions).items():
            wanted = OffsetRange(*place, self._read[place], end)
            if wanted.size > 0:
                self._read_range(wanted)

    def _read_range(self, wanted: OffsetRange) -> None:
        # Compaction may remove what was not read yet: what comes later replaces it.
        for batch in read_range(self._cluster, wanted, timeout_ms=_TIMEOUT_MS, fail_on_data_loss=False):
            for key, stored in self._records(batch, wanted.partition):
                self._replace(key, stored)
            if self._bytes > _BYTES_MAX:
                raise TableTooLarge(self._table.name)
        self._read[wanted.topic, wanted.partition] = wanted.end

    def _records(self, batch: RawBatch, partition: int) -> Iterator[tuple[object, _Stored | None]]:
        """The keys of records with what is kept of them; without those that cannot be decoded."""
        values = without_null_documents(batch.values, self._table.value_format)
        decoded = self._decoder.decode(batch.keys, values, batch.headers)
        failed = {failure.row for failure in decoded.failures}
        columns = (decoded.columns[self._key], batch.keys, values, batch.timestamps_ms, batch.offsets)
        records = zip(*(column.to_pylist() for column in columns), strict=True)
        for row, (key, key_bytes, value, timestamp_ms, offset) in enumerate(records):
            if row not in failed and key is not None:
                known = value is not None
                yield _hashable(key), _Stored(key_bytes, value, timestamp_ms, partition, offset) if known else None

    def _replace(self, key: object, stored: _Stored | None) -> None:
        before = self._rows.pop(key, None)
        if before is not None:
            self._bytes -= len(before.key) + len(before.value)
        if stored is not None:
            self._rows[key] = stored
            self._bytes += len(stored.key) + len(stored.value)


def _fields(step: LookupStep) -> str:
    """The columns of the table that are wanted, in Spark's SQL."""
    kinds = {column.name: spark_type(column.sql_type) for column in step.table.columns}
    kinds |= {name: "int" if kind == "INTEGER" else "bigint" for name, kind in PSEUDO_COLUMNS.items()}
    return ", ".join(f"{quoted(column)} {kinds[column]}" for column in dict.fromkeys(name for name, _ in step.columns))


def _hashable(key: Any) -> Any:
    """A key of any type as a key of a dictionary."""
    if isinstance(key, dict):
        return tuple((name, _hashable(value)) for name, value in key.items())
    return tuple(map(_hashable, key)) if isinstance(key, list) else key
