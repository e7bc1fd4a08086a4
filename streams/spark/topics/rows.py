"""The columns of the source: those of Spark's Kafka source, with keys and values decoded on request."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streams.spark.decoding.spec import DecoderSpec
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.decoded import decode_column, open_decoder
from streams.spark.topics.fetching import HEADERS, RawBatch, read_range
from streams.spark.topics.ranges import OffsetRange

_MS_MAX: Final = (2**63 - 1) // 1000
TIMESTAMP: Final = pa.timestamp("us", "UTC")
RAW_SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("timestampType", pa.int32()),
        ("headers", HEADERS),
    ]
)


ERROR, RAW, RAW_KEY = "_error", "_raw", "_rawKey"


def spark_schema(*, include_headers: bool, key: DataType | None = None, value: DataType | None = None) -> StructType:
    """The columns. Keys and values are bytes unless their types are given, which adds columns for errors."""
    fields = [
        StructField("key", key or BinaryType()),
        StructField("value", value or BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if include_headers:
        pair = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
        fields.append(StructField("headers", ArrayType(pair)))
    if key or value:
        fields.append(StructField(ERROR, StringType()))
    if value:
        fields.append(StructField(RAW, BinaryType()))
    if key:
        fields.append(StructField(RAW_KEY, BinaryType()))
    return StructType(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Reads ranges as rows, on the executors."""

    cluster: Cluster
    schema: pa.Schema
    """Exactly the schema that Spark expects."""
    timeout_ms: int
    fail_on_data_loss: bool
    key: DecoderSpec | None = None
    value: DecoderSpec | None = None

    def read(self, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
        """The records of a range, in batches."""
        raw = read_range(self.cluster, wanted, timeout_ms=self.timeout_ms, fail_on_data_loss=self.fail_on_data_loss)
        for batch in raw:
            columns = raw_columns(batch, wanted, include_headers="headers" in self.schema.names)
            if self.key or self.value:
                columns = self._decode(columns, batch, wanted.topic)
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _decode(self, columns: list[pa.Array], batch: RawBatch, topic: str) -> list[pa.Array]:
        errors: list[pa.Array] = []
        raw: list[pa.Array] = []
        for index, spec in ((1, self.value), (0, self.key)):
            if spec is not None:
                wanted = self.schema.field(index).type
                column = decode_column(open_decoder(spec), columns[index], topic, headers=batch.headers, wanted=wanted)
                raw.append(pc.if_else(pc.is_valid(column.errors), columns[index], None))
                columns[index] = column.data
                errors.append(column.errors)
        if len(errors) > 1:
            errors[1] = pc.binary_join_element_wise("key: ", errors[1], "")
        return [*columns, pc.coalesce(*errors), *raw]


def raw_columns(batch: RawBatch, wanted: OffsetRange, *, include_headers: bool) -> list[pa.Array]:
    """The columns of RAW_SCHEMA, in its order; headers only if they are wanted."""
    count = len(batch)
    columns = [
        batch.keys,
        batch.values,
        pa.repeat(pa.scalar(wanted.topic, pa.string()), count),
        pa.repeat(pa.scalar(wanted.partition, pa.int32()), count),
        batch.offsets,
        timestamps(batch.timestamps_ms),
        batch.timestamp_types,
    ]
    if include_headers:
        columns.append(pa.nulls(count, HEADERS) if batch.headers is None else batch.headers)
    return columns


def timestamps(milliseconds: pa.Array) -> pa.Array:
    """Times in Spark's type; those out of its range become the first or the last that it can hold."""
    try:
        return milliseconds.cast(pa.timestamp("ms", "UTC")).cast(TIMESTAMP)
    except pa.ArrowInvalid:
        near = pc.max_element_wise(pc.min_element_wise(milliseconds, _MS_MAX), -_MS_MAX)
        return near.cast(pa.timestamp("ms", "UTC")).cast(TIMESTAMP)
