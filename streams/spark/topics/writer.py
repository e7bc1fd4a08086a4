"""Topics as a sink: rows with the columns of Spark's Kafka sink become records, at least once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import DataType, StructType
from typing_extensions import override

from core_broker.client.handshake import check_handshake
from streams.errors import StreamsError, WrongOption
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.column_producer import ANY_PARTITION, ColumnProducer
from streams.spark.topics.options import GROUP, normalize_names, parse_cluster

_COLUMN_TYPES: Final = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_TIMEOUT_MS: Final = 150_000
"""Longer than a record may take, so that the error is about the record."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All options for writing topics."""

    cluster: Cluster
    topic: str | None


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse a user's options; WrongOption says which is wrong, and what is allowed."""
    options = normalize_names(given)
    if "kafka.transactional.id" in options:
        given_id = options["kafka.transactional.id"]
        raise WrongOption("kafka.transactional.id", given_id, "is not supported: records are sent at least once")
    cluster = parse_cluster({key: value for key, value in options.items() if key != GROUP})
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise WrongOption("topic", topic, "must be the name of a topic")
    return SinkOptions(cluster, topic)


@dataclass
class Written(WriterCommitMessage):
    """The result of one task."""

    rows: int


class _Sender:
    """Common to the writers of batches and streams: created on the driver, sends on the executors."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(options, schema)
        check_handshake(options.cluster.settings())  # on executors the library would go on trying
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task and wait until all are written; raises NotSent."""
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
    """Writes a batch. Records that were sent stay, even if the batch fails."""

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task."""
        return super().write(iterator)


class TopicStreamWriter(_Sender, DataSourceStreamArrowWriter):
    """Writes a stream. A batch that is repeated is sent again."""

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of one task."""
        return super().write(iterator)

    @override
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: everything is written already."""

    @override
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: records that were written stay."""


def check_columns(options: SinkOptions, schema: StructType) -> None:
    """Refuse rows that are not records; columns with other names are ignored, as in Spark's Kafka sink."""
    types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise WrongOption("value", sorted(types), "there must be a column value")
    if "topic" not in types and options.topic is None:
        raise WrongOption("topic", None, "must be given, or there must be a column topic")
    for name, allowed in _COLUMN_TYPES.items():
        if name in types and types[name].simpleString().partition(" ")[0] not in allowed:  # without a collation
            raise WrongOption(name, types[name].simpleString(), f"the column must be {' or '.join(allowed)}")


def send_rows(producer: ColumnProducer, batch: pa.RecordBatch, *, topic: str | None) -> None:
    """Queue the rows of one batch as records."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    producer.send(
        topic or _topics(columns["topic"]),
        columns["value"].cast(pa.binary()).to_pylist(),
        keys=columns["key"].cast(pa.binary()).to_pylist() if "key" in columns else None,
        partitions=columns["partition"].fill_null(ANY_PARTITION).to_pylist() if "partition" in columns else None,
        headers=_headers(columns["headers"]) if "headers" in columns else None,
    )


def _topics(column: pa.Array) -> list[str]:
    if column.null_count:
        raise StreamsError("A row has no topic: set the option topic, or fill the column topic in every row")
    topics: list[str] = column.to_pylist()
    return topics


def _headers(column: pa.Array) -> Iterable[list[tuple[str, bytes | None]] | None]:
    if column.null_count == len(column):
        return [None] * len(column)
    rows: list[list[dict[str, Any]] | None] = column.to_pylist()
    return [[(pair["key"], pair["value"]) for pair in row if pair] if row else None for row in rows]
