"""Spark's data source "caudal": topics of any Kafka cluster, read and written, as streams and batches.

spark.readStream.format("caudal").option("kafka.bootstrap.servers", "…").option("subscribe", "orders").load()
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructType
from typing_extensions import override

from streams.errors import DataLoss, WrongOption
from streams.spark.decoding.spec import DecoderSpec
from streams.spark.topics.decoded import common_type, open_decoder
from streams.spark.topics.fetching import DATA_LOSS_ADVICE
from streams.spark.topics.options import SourceOptions, source_options
from streams.spark.topics.positions import Positions
from streams.spark.topics.ranges import OffsetRange, RangePartition, split_ranges
from streams.spark.topics.rows import RowMaker, spark_schema
from streams.spark.topics.stream_reader import TopicStreamReader
from streams.spark.topics.writer import TopicStreamWriter, TopicWriter, sink_options

_BOUNDARIES: Final = ("starting", "ending")


class TopicSource(DataSource):
    """Topics as a source and a sink of Spark, with the options of Spark's Kafka source and sink."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(dict(options))

    @override
    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "caudal"

    @override
    def schema(self) -> StructType:
        """The columns; decoded ones get the types of the latest schemas."""
        # Spark does not say yet whether it is a stream or a batch: boundaries, which differ, are checked later.
        given = {key: value for key, value in self.options.items() if not key.lower().startswith(_BOUNDARIES)}
        options = source_options(given, is_stream=False)
        return spark_schema(
            include_headers=options.include_headers,
            key=_decoded_type(options, is_key=True),
            value=_decoded_type(options, is_key=False),
        )

    @override
    def reader(self, schema: StructType) -> "TopicBatchReader":
        """Reads a batch."""
        options = source_options(self.options, is_stream=False)
        return TopicBatchReader(options, _row_maker(options, schema))

    @override
    def streamReader(self, schema: StructType) -> TopicStreamReader:
        """Reads a stream."""
        options = source_options(self.options, is_stream=True)
        return TopicStreamReader(options, _row_maker(options, schema))

    @override
    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        """Writes a batch."""
        if overwrite:
            raise WrongOption("mode", "overwrite", "topics can only be appended to: use mode append")
        return TopicWriter(sink_options(self.options), schema)

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> TopicStreamWriter:
        """Writes a stream."""
        return TopicStreamWriter(sink_options(self.options), schema)


class TopicBatchReader(DataSourceReader):
    """Reads topics once, from one boundary to another."""

    def __init__(self, options: SourceOptions, rows: RowMaker) -> None:
        self.options = options
        self._rows = rows

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """The ranges, split for tasks; resolved when the query is planned."""
        return [RangePartition(item) for item in self.ranges()]

    def ranges(self) -> list[OffsetRange]:
        """The ranges to read."""
        options = self.options
        positions = Positions(options.cluster)
        partitions = positions.existing_partitions(options.subscription)
        start = positions.resolve(options.starting, partitions, late_is_end=options.starts_late_at_end)
        end = positions.resolve(options.ending, partitions, late_is_end=True)
        reversed_ = [item for item in start if start[item] > end.get(item, start[item])]
        if reversed_ and options.fail_on_data_loss:
            (topic, partition), *_ = reversed_
            bounds = f"from {start[topic, partition]} to {end[topic, partition]}"
            raise DataLoss(f"Partition {topic}-{partition} would be read {bounds}. {DATA_LOSS_ADVICE}")
        ranges = [OffsetRange(*item, start[item], end[item]) for item in sorted(start) if item in end]
        return split_ranges(ranges, parts_min=options.min_partitions, rows_max=options.max_records_per_partition)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, on an executor; Spark makes one empty task when there is none."""
        return self._rows.read(partition.range) if isinstance(partition, RangePartition) else iter(())


def register(session: SparkSession) -> None:
    """Make `format("caudal")` known to a session that was not started by the engine."""
    session.dataSource.register(TopicSource)


def _row_maker(options: SourceOptions, schema: StructType) -> RowMaker:
    # A user's schema may choose only the types of the decoded columns.
    types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    expected = spark_schema(
        include_headers=options.include_headers,
        key=types.get("key") if options.decode_key != "none" else None,
        value=types.get("value") if options.decode != "none" else None,
    )
    if [(field.name, field.dataType) for field in expected.fields] != list(types.items()):
        raise WrongOption("schema", schema.simpleString(), f"the columns are {expected.simpleString()}")
    return RowMaker(
        cluster=options.cluster,
        schema=pa.schema(to_arrow_schema(schema, timezone="UTC")),
        timeout_ms=options.poll_timeout_ms,
        fail_on_data_loss=options.fail_on_data_loss,
        key=_spec(options, is_key=True),
        value=_spec(options, is_key=False),
    )


def _spec(options: SourceOptions, *, is_key: bool) -> DecoderSpec | None:
    form = options.decode_key if is_key else options.decode
    return None if form == "none" else DecoderSpec.of(form, options.registry, is_key=is_key)


def _decoded_type(options: SourceOptions, *, is_key: bool) -> DataType | None:
    spec = _spec(options, is_key=is_key)
    if spec is None:
        return None
    option = "decodeKey" if is_key else "decode"
    if not options.registry.get("schema.registry.url"):
        raise WrongOption("schema.registry.url", "", f"must be given with {option}={spec.format.value}")
    decoder = open_decoder(spec)
    topics = sorted({topic for topic, _ in Positions(options.cluster).existing_partitions(options.subscription)})
    if not topics:
        raise WrongOption("subscribePattern", options.subscription.pattern, f"must match a topic if {option} is given")
    found: DataType = from_arrow_type(common_type(option, ((topic, decoder.latest_type(topic)[1]) for topic in topics)))
    return found
