"""The data source that Spark knows as "caudal": topics of any Kafka cluster, read and written, as streams and batches.

spark.readStream.format("caudal").option("kafka.bootstrap.servers", "…").option("subscribe", "orders").load()
"""

from collections.abc import MutableMapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructType
from typing_extensions import override

from streams.errors import WrongOption
from streams.spark.decoding.spec import DecoderSpec
from streams.spark.topics.batch_reader import TopicBatchReader
from streams.spark.topics.decoded import common_type, opened
from streams.spark.topics.options import SourceOptions, source_options
from streams.spark.topics.positions import Positions
from streams.spark.topics.rows import RowMaker, spark_schema
from streams.spark.topics.stream_reader import TopicStreamReader
from streams.spark.topics.writer import TopicStreamWriter, TopicWriter, sink_options


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
        """The columns; those that are decoded get the types of the latest schemas now."""
        # Whether a stream or a batch is meant is not told yet: what only one of them may have is looked at later.
        options = source_options(self._without_boundaries(), is_stream=False)
        return spark_schema(
            include_headers=options.include_headers,
            key=_decoded_type(options, is_key=True),
            value=_decoded_type(options, is_key=False),
        )

    @override
    def reader(self, schema: StructType) -> TopicBatchReader:
        """A batch."""
        options = source_options(self.options, is_stream=False)
        return TopicBatchReader(options, _row_maker(options, schema))

    @override
    def streamReader(self, schema: StructType) -> TopicStreamReader:
        """A stream."""
        options = source_options(self.options, is_stream=True)
        return TopicStreamReader(options, _row_maker(options, schema))

    @override
    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        """A batch that is written."""
        if overwrite:
            raise WrongOption("mode", "overwrite", "records are only ever appended to topics: use mode append")
        return TopicWriter(sink_options(self.options), schema)

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> TopicStreamWriter:
        """A stream that is written."""
        return TopicStreamWriter(sink_options(self.options), schema)

    def _without_boundaries(self) -> dict[str, str]:
        return {key: value for key, value in self.options.items() if not key.lower().startswith(("starting", "ending"))}


def register(session: SparkSession) -> None:
    """Make `format("caudal")` known to a session that was not started by the engine."""
    session.dataSource.register(TopicSource)


def _row_maker(options: SourceOptions, schema: StructType) -> RowMaker:
    _check_columns(options, schema)
    return RowMaker(
        cluster=options.cluster,
        schema=pa.schema(to_arrow_schema(schema, timezone="UTC")),
        timeout_ms=options.poll_timeout_ms,
        fail_on_data_loss=options.fail_on_data_loss,
        key=_spec(options, is_key=True),
        value=_spec(options, is_key=False),
    )


def _check_columns(options: SourceOptions, schema: StructType) -> None:
    """The columns are given; only the types of those that are decoded may be chosen by a schema of the user's."""
    types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    expected = spark_schema(
        include_headers=options.include_headers,
        key=types.get("key") if options.decode_key != "none" else None,
        value=types.get("value") if options.decode != "none" else None,
    )
    if [(field.name, field.dataType) for field in expected.fields] != list(types.items()):
        raise WrongOption("schema", schema.simpleString(), f"the columns are {expected.simpleString()}")


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
    decoder = opened(spec)
    topics = sorted({topic for topic, _ in Positions(options.cluster).existing_places(options.subscription)})
    if not topics:
        raise WrongOption("subscribePattern", options.subscription.pattern, f"must fit a topic when {option} is given")
    found: DataType = from_arrow_type(common_type(option, ((topic, decoder.latest_type(topic)[1]) for topic in topics)))
    return found
