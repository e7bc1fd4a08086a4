import pickle

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from streams.errors import StreamsError, WrongOption
from streams.spark.topics.column_producer import NotSent
from streams.spark.topics.fetching import HEADERS
from streams.spark.topics.source import TopicSource
from streams.spark.topics.writer import Written
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes

PAIRS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(column, kind) for column, kind in columns.items()])


def source(servers: str = "nowhere:9092", **options: str) -> TopicSource:
    named = {key.replace("_", "."): value for key, value in options.items()}
    return TopicSource({"kafka.bootstrap.servers": servers, **named})


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({"key": StringType()}, {"topic": "t"}, "there must be a column value"),
        ({"value": StringType()}, {}, "topic: must be given, or there must be a column topic"),
        ({"value": LongType()}, {"topic": "t"}, "'bigint' for option value: the column must be string or binary"),
        ({"value": StringType(), "key": LongType()}, {"topic": "t"}, "option key: the column must be string or binary"),
        ({"value": StringType(), "topic": BinaryType()}, {}, "option topic: the column must be string"),
        ({"value": StringType(), "partition": LongType()}, {"topic": "t"}, "partition: the column must be int"),
        ({"value": StringType(), "headers": StringType()}, {"topic": "t"}, "headers: the column must be array<struct"),
        ({"value": StringType()}, {"topic": " "}, "topic: must be the name of a topic"),
        ({"value": StringType()}, {"topics": "t"}, "option topics: is unknown"),
        ({"value": StringType()}, {"topic": "t", "kafka_transactional_id": "x"}, "sent at least once"),
        ({"value": StringType()}, {"topic": "t", "kafka_value_serializer": "x"}, "is not needed"),
    ],
)
def test_rows_that_are_no_records_are_refused(
    columns: dict[str, DataType], options: dict[str, str], expected: str
) -> None:
    with pytest.raises(WrongOption) as caught:
        source(**options).streamWriter(schema(**columns), overwrite=False)
    assert expected in str(caught.value)


def test_topics_are_not_overwritten() -> None:
    with pytest.raises(WrongOption, match="'overwrite' for option mode: topics can only be appended to"):
        source(topic="t").writer(schema(value=StringType()), overwrite=True)


def test_rows_become_records(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    columns = schema(
        key=StringType(),
        value=BinaryType(),
        topic=StringType(),
        partition=IntegerType(),
        headers=PAIRS,
        other=LongType(),
    )
    writer = pickle.loads(pickle.dumps(source(broker.bootstrap).writer(columns, overwrite=False)))
    batch = pa.record_batch(
        {
            "key": pa.array(["ä", None, "c"]),
            "value": pa.array([b"1", b"2", None], pa.binary()),
            "topic": pa.array([name] * 3),
            "partition": pa.array([1, 1, 1], pa.int32()),
            "headers": pa.array([None, [{"key": "h", "value": b"x"}], []], HEADERS),
            "other": pa.array([1, 2, 3]),
        }
    )
    assert writer.write(iter([batch.slice(0, 1), batch.slice(1)])) == Written(3)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name})
    consumer.assign([TopicPartition(name, 1, 0)])
    found = [(message.key(), message.value(), message.headers()) for message in consumer.consume(3, 30)]
    consumer.close()
    assert found == [("ä".encode(), b"1", None), (None, b"2", [("h", b"x")]), (b"c", None, None)]


def test_a_row_without_a_topic_is_refused_unless_there_is_one_for_all(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    columns = schema(value=StringType(), topic=StringType())
    batch = pa.record_batch({"value": pa.array(["1"]), "topic": pa.array([None], pa.string())})
    with pytest.raises(StreamsError, match="A row has no topic: set the option topic"):
        source(broker.bootstrap).streamWriter(columns, overwrite=False).write(iter([batch]))
    for_all = source(broker.bootstrap, topic=name).streamWriter(columns, overwrite=False)
    assert for_all.write(iter([batch])) == Written(1)


def test_what_could_not_be_written_is_reported_with_topic_and_reason(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"max.message.bytes": "1000"})
    writer = source(broker.bootstrap, topic=name).writer(schema(value=BinaryType()), overwrite=False)
    batch = pa.record_batch({"value": pa.array([bytes(5000)], pa.binary())})
    with pytest.raises(NotSent, match=f"could not be written to topic {name}: .*too large"):
        writer.write(iter([batch]))
