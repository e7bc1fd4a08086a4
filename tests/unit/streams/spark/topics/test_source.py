import pickle

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from streams.errors import WrongOption
from streams.spark.topics.source import TopicSource

OPTIONS = {"kafka.bootstrap.servers": "nowhere:9092", "subscribe": "orders"}


def test_the_columns_are_known_without_asking_the_cluster() -> None:
    names = TopicSource(OPTIONS).schema().fieldNames()
    assert names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert TopicSource({**OPTIONS, "includeHeaders": "true"}).schema().fieldNames() == [*names, "headers"]


def test_boundaries_of_streams_and_of_batches_are_not_mixed_up() -> None:
    ending = TopicSource({**OPTIONS, "endingOffsets": "latest"})
    ending.reader(ending.schema())
    with pytest.raises(WrongOption, match="endingOffsets: is for batches only"):
        ending.streamReader(ending.schema())
    latest = TopicSource({**OPTIONS, "startingOffsets": "latest"})
    latest.streamReader(latest.schema())
    with pytest.raises(WrongOption, match="startingOffsets: a batch cannot start at the latest"):
        latest.reader(latest.schema())


def test_a_schema_of_the_users_own_is_refused() -> None:
    source = TopicSource(OPTIONS)
    with pytest.raises(WrongOption, match="option schema: the columns are struct<key:binary,value:binary"):
        source.reader(StructType([StructField("id", LongType())]))


def test_the_type_of_what_is_decoded_may_be_chosen() -> None:
    fields = TopicSource(OPTIONS).schema().fields
    chosen = StructType([StructField("id", LongType())])
    columns = [fields[0], StructField("value", chosen), *fields[2:]]
    schema = StructType([*columns, StructField("_error", StringType()), StructField("_raw", fields[0].dataType)])
    source = TopicSource({**OPTIONS, "decode": "avro", "schema.registry.url": "http://nowhere"})
    source.streamReader(schema)
    with pytest.raises(WrongOption, match="option schema"):
        source.streamReader(StructType(columns))


def test_decoding_needs_a_registry() -> None:
    with pytest.raises(WrongOption, match=r"schema\.registry\.url: must be given with decode=avro"):
        TopicSource({**OPTIONS, "decode": "avro"}).schema()


def test_readers_travel() -> None:
    source = pickle.loads(pickle.dumps(TopicSource(OPTIONS)))
    reader = source.streamReader(source.schema())
    assert pickle.loads(pickle.dumps(reader)).options == reader.options
    batch = source.reader(source.schema())
    assert pickle.loads(pickle.dumps(batch)).options == batch.options
