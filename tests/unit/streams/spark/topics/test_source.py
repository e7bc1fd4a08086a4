import json
import pickle

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from streams.errors import WrongOption
from streams.spark.topics.source import TopicSource
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess

OPTIONS = {"kafka.bootstrap.servers": "nowhere:9092", "subscribe": "orders"}


def test_the_columns_are_known_without_asking_the_cluster() -> None:
    names = TopicSource(OPTIONS).schema().fieldNames()
    assert names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert TopicSource({**OPTIONS, "includeHeaders": "true"}).schema().fieldNames() == [*names, "headers"]


def test_boundaries_of_streams_and_of_batches_are_not_mixed_up() -> None:
    ending = TopicSource({**OPTIONS, "endingOffsets": "latest"})
    ending.reader(ending.schema())
    with pytest.raises(WrongOption, match="endingOffsets: is only for batches"):
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


@pytest.mark.processes
def test_keys_and_values_are_decoded_each_by_their_schemas(
    broker: BrokerProcess, registry: RegistryProcess, name: str
) -> None:
    create_topic(broker, name)
    document = {"title": "Order", "type": "object", "properties": {"n": {"type": "integer"}}}
    with SchemaRegistryClient({"url": registry.url}) as client:
        key = AvroSerializer(client, '"string"')("k", SerializationContext(name, MessageField.KEY))
        value = JSONSerializer(json.dumps(document), client)({"n": 5}, SerializationContext(name, MessageField.VALUE))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for pair in ((key, value), (b"bad key", value), (key, b"bad value"), (b"bad key", b"bad value"), (None, None)):
        producer.produce(name, key=pair[0], value=pair[1])
    assert producer.flush(30) == 0
    source = TopicSource(
        {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": name,
            "decode": "registry",
            "decodeKey": "avro",
            "schema.registry.url": registry.url,
        }
    )
    schema = source.schema()
    assert (schema["key"].dataType, schema["value"].dataType) == (
        StringType(),
        StructType([StructField("n", LongType())]),
    )
    reader = pickle.loads(pickle.dumps(source.reader(schema)))
    (rows,) = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    found = rows.to_pydict()
    assert found["key"] == ["k", None, "k", None, None]
    assert found["value"] == [{"n": 5}, {"n": 5}, None, None, None]
    assert found["_rawKey"] == [None, b"bad key", None, b"bad key", None]
    assert found["_raw"] == [None, None, b"bad value", b"bad value", None]
    errors = found["_error"]
    assert (errors[0], errors[4]) == (None, None)
    assert errors[1].startswith("key: ")
    assert errors[2]
    assert not errors[3].startswith("key: ")
