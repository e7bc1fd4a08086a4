"""Topics as a sink: rows with the columns of Spark's Kafka sink become records, at least once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType
from typing_extensions import override

from streams.errors import StreamsError, WrongOption
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.column_producer import ANY_PARTITION, ColumnProducer
from streams.spark.topics.options import GROUP, checked_names, cluster_of

_TEXT_OR_BYTES: Final = (StringType(), BinaryType())
_TIMEOUT_MS: Final = 150_000
"""Longer than a record may take, so that it is the record that is told about."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All that a user may say about writing topics."""

    cluster: Cluster
    topic: str | None


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Options as a user gave them, checked; WrongOption says which is wrong, and what is allowed."""
    options = checked_names(given)
    if "kafka.transactional.id" in options:
        raise WrongOption("kafka.transactional.id", options["kafka.transactional.id"], "records are sent at least once")
    cluster = cluster_of({key: value for key, value in options.items() if key != GROUP})
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise WrongOption("topic", topic, "must be the name of a topic")
    return SinkOptions(cluster, topic)


@dataclass
class Written(WriterCommitMessage):
    """What one task has written."""

    rows: int


class _Sender:
    """What the writers of batches and streams share: it is made on the driver and sends on the executors."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task, and wait until all are written; raises NotSent."""
        producer = ColumnProducer(self._options.cluster.settings(timeout_ms=_TIMEOUT_MS))
        try:
            rows = 0
            for batch in iterator:
                send_rows(producer, batch, topic=self._options.topic)
                rows += batch.num_rows
            producer.flush()
            return Written(rows)
        finally:
            producer.close()


class TopicWriter(_Sender, DataSourceArrowWriter):
    """Writes a batch. What was sent stays, also when the batch fails."""

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task."""
        return super().write(iterator)


class TopicStreamWriter(_Sender, DataSourceStreamArrowWriter):
    """Writes a stream. A batch that is done again is sent again."""

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task."""
        return super().write(iterator)

    @override
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """All is written already."""

    @override
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """What is written stays."""


def check_columns(options: SinkOptions, schema: StructType) -> None:
    """Refuse rows that are no records; columns with other names are left out, as Spark's Kafka sink does."""
    types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise WrongOption("value", sorted(types), "there must be a column value")
    if "topic" not in types and options.topic is None:
        raise WrongOption("topic", None, "must be given, or there must be a column topic")
    allowed: dict[str, tuple[DataType, ...]] = {
        "key": _TEXT_OR_BYTES,
        "value": _TEXT_OR_BYTES,
        "topic": (StringType(),),
        "partition": (IntegerType(),),
    }
    for name, kinds in allowed.items():
        if name in types and not isinstance(types[name], tuple(type(kind) for kind in kinds)):
            told = " or ".join(kind.simpleString() for kind in kinds)
            raise WrongOption(name, types[name].simpleString(), f"the column must be {told}")
    if "headers" in types and not _are_headers(types["headers"]):
        told = "the column must be array<struct<key:string,value:binary>>"
        raise WrongOption("headers", types["headers"].simpleString(), told)


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    types = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return types == [("key", StringType), ("value", BinaryType)]


def send_rows(producer: ColumnProducer, batch: pa.RecordBatch, *, topic: str | None) -> None:
    """Queue the rows of one batch as records."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    producer.send(
        topic or _topics(columns["topic"]),
        _bytes(columns["value"]),
        keys=_bytes(columns["key"]) if "key" in columns else None,
        partitions=_partitions(columns["partition"]) if "partition" in columns else None,
        headers=_headers(columns["headers"]) if "headers" in columns else None,
    )


def _topics(column: pa.Array) -> list[str]:
    if column.null_count:
        raise StreamsError("A row has no topic: set the option topic, or give each row one in the column topic")
    topics: list[str] = column.to_pylist()
    return topics


def _bytes(column: pa.Array) -> list[bytes | None]:
    values: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return values


def _partitions(column: pa.Array) -> list[int]:
    partitions: list[int] = column.fill_null(ANY_PARTITION).to_pylist()
    return partitions


def _headers(column: pa.Array) -> Iterable[list[tuple[str, bytes | None]] | None]:
    if column.null_count == len(column):
        return [None] * len(column)
    rows: list[list[dict[str, Any]] | None] = column.to_pylist()
    return [[(pair["key"], pair["value"]) for pair in row if pair] if row else None for row in rows]
