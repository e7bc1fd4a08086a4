"""Topics as a source and a sink of Spark itself; what needs no JVM is tested beside the modules."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streams.spark.topics.source import register
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.service import REPOSITORY
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session

pytestmark = [
    needs_java,
    pytest.mark.timeout(900),
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_PATIENCE_S: Final = 240
_NOTEBOOK: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
topic = spark.read.format("caudal").option("kafka.bootstrap.servers", sys.argv[2]).option("subscribe", sys.argv[3])
print([bytes(row.value).decode() for row in topic.load().select("value").collect()])
"""


@pytest.fixture(scope="module")
def connect_port() -> int:
    """Where notebooks attach to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, connect_port: int) -> Iterator[SparkSession]:
    """A session for all tests of this file, in which nothing was registered."""
    properties = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.showConsoleProgress": "false",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(connect_port),
    }
    with small_session(tmp_path_factory.mktemp("topics"), properties) as session:
        yield session


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., StreamingQuery]:
    """Runs a stream over all that is there now, always with the same checkpoint."""

    def ran(rows: DataFrame, batch: Callable[[DataFrame, int], None] | None = None, **options: str) -> StreamingQuery:
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        writer = writer.format("caudal").options(**options) if batch is None else writer.foreachBatch(batch)
        query = writer.start()
        assert query.awaitTermination(_PATIENCE_S)
        return query

    return ran


def options(broker: BrokerProcess, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **more}


def batch_of(spark: SparkSession, broker: BrokerProcess, topic: str, **more: str) -> DataFrame:
    return spark.read.format("caudal").options(**options(broker, topic, **more)).load()


def stream_of(spark: SparkSession, broker: BrokerProcess, topic: str, **more: str) -> DataFrame:
    return spark.readStream.format("caudal").options(**options(broker, topic, **more)).load()


def send(broker: BrokerProcess, topic: str, *values: bytes | None, **arguments: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value, **arguments)
    assert producer.flush(30) == 0


def consumed(broker: BrokerProcess, topic: str, count: int, partition: int = 0) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = consumer.consume(count, 30)
    consumer.close()
    return found


def values(rows: DataFrame) -> list[bytes]:
    return sorted(bytes(row.value) for row in rows.select("value").collect())


def test_a_batch_has_the_columns_of_sparks_kafka_source(spark: SparkSession, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2, configs={"retention.ms": "-1"})
    headers = [("a", b"1"), ("a", None), ("é", b"")]
    send(broker, name, b"\x00\xff", partition=0, key=b"k", timestamp=1234, headers=headers)
    send(broker, name, None, partition=1, timestamp=1_700_000_000_000)
    rows = batch_of(spark, broker, name, includeHeaders="true")
    kinds = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
    assert ", ".join(f"{column} {kind}" for column, kind in rows.dtypes) == (
        f"{kinds}, timestampType int, headers array<struct<key:string,value:binary>>"
    )
    found = rows.selectExpr("*", "unix_millis(timestamp) as ms").drop("timestamp").orderBy("partition").collect()
    pairs = [Row(key=key, value=value) for key, value in headers]
    assert [tuple(row) for row in found] == [
        (b"k", b"\x00\xff", name, 0, 0, 0, pairs, 1234),
        (None, None, name, 1, 0, 0, None, 1_700_000_000_000),
    ]


def test_a_batch_reads_between_its_boundaries(spark: SparkSession, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    send(broker, name, *(b"%d" % number for number in range(10)))
    offsets = {"startingOffsets": json.dumps({name: {"0": 3}}), "endingOffsets": json.dumps({name: {"0": 7}})}
    rows = batch_of(spark, broker, name, **offsets, minPartitions="2")
    assert values(rows) == [b"3", b"4", b"5", b"6"]
    assert rows.rdd.getNumPartitions() == 2
    assert batch_of(spark, broker, name, startingOffsets=json.dumps({name: {"0": 10}})).count() == 0


def test_only_what_is_committed_is_read(spark: SparkSession, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    ended = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{name}-1"})
    ended.init_transactions(30)
    for value, end in ((b"aborted", ended.abort_transaction), (b"committed", ended.commit_transaction)):
        ended.begin_transaction()
        ended.produce(name, value, partition=0)
        ended.flush(30)
        end(30)
    going_on = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{name}-2"})
    going_on.init_transactions(30)
    going_on.begin_transaction()
    going_on.produce(name, b"open", partition=0)
    going_on.flush(30)
    send(broker, name, b"behind", partition=0)
    assert values(batch_of(spark, broker, name)) == [b"committed"]
    every = batch_of(spark, broker, name, **{"kafka.isolation.level": "read_uncommitted"})
    assert values(every) == [b"aborted", b"behind", b"committed", b"open"]
    going_on.abort_transaction(30)
    assert values(batch_of(spark, broker, name)) == [b"behind", b"committed"]


def test_a_stream_goes_from_topic_to_topic_and_on_from_its_checkpoint(
    spark: SparkSession, broker: BrokerProcess, name: str, run: Callable[..., StreamingQuery]
) -> None:
    create_topic(broker, name)
    create_topic(broker, f"{name}-copy", partitions=2)
    group = {"kafka.group.id": f"{name}-group"}
    rows = stream_of(
        spark, broker, name, startingOffsets="earliest", maxOffsetsPerTrigger="4", includeHeaders="true", **group
    ).selectExpr("key", "upper(cast(value AS string)) AS value", "1 AS partition", "headers")
    target = {"kafka.bootstrap.servers": broker.bootstrap, "topic": f"{name}-copy"}
    send(broker, name, *(b"a%d" % number for number in range(10)), key=b"k", headers=[("h", b"x")])
    first = run(rows, **target)
    sizes = [progress.numInputRows for progress in first.recentProgress if progress.numInputRows]
    assert sizes == [4, 4, 2]
    (latest,) = {progress.sources[0].latestOffset for progress in first.recentProgress}
    assert json.loads(latest) == {"version": 1, "topics": {name: {"0": 10}}}
    send(broker, name, b"b")
    second = run(rows, **target)
    assert sum(progress.numInputRows for progress in second.recentProgress) == 1
    found = [(message.key(), message.value(), message.headers()) for message in consumed(broker, f"{name}-copy", 11, 1)]
    key_and_headers = (b"k", [("h", b"x")])
    assert found[:10] == [(key_and_headers[0], b"A%d" % number, key_and_headers[1]) for number in range(10)]
    assert found[10:] == [(None, b"B", None)]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"{name}-group"})
    (committed,) = consumer.committed([TopicPartition(name, 0)], timeout=30)
    consumer.close()
    assert committed.offset >= 10


def test_a_stream_from_the_end_whose_first_batch_fails_loses_nothing(
    spark: SparkSession, broker: BrokerProcess, name: str, run: Callable[..., StreamingQuery]
) -> None:
    create_topic(broker, name)
    send(broker, name, b"before")
    rows = stream_of(spark, broker, name)
    seen: list[bytes] = []

    def failing(_: DataFrame, number: int) -> None:
        raise ValueError(f"batch {number} fails")

    with pytest.raises(StreamingQueryException, match="batch 0 fails"):
        run(rows, failing)
    send(broker, name, b"after")
    with pytest.raises(StreamingQueryException, match="batch 0 fails"):
        run(rows, failing)
    send(broker, name, b"later")
    run(rows, lambda found, _: seen.extend(values(found)))
    assert seen == [b"after", b"later"]


def test_rows_are_written_to_topics(spark: SparkSession, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    rows = spark.createDataFrame([("1", b"a"), (None, b"b")], "key string, value binary").coalesce(1)
    target = {"kafka.bootstrap.servers": broker.bootstrap, "topic": name}
    rows.write.format("caudal").options(**target).mode("append").save()
    assert [(message.key(), message.value()) for message in consumed(broker, name, 2)] == [(b"1", b"a"), (None, b"b")]


def test_values_are_decoded_into_columns_and_bad_ones_told(
    spark: SparkSession, broker: BrokerProcess, registry: RegistryProcess, name: str
) -> None:
    create_topic(broker, name)
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    context = SerializationContext(name, MessageField.VALUE)
    added = [[], [{"name": "price", "type": ["null", "double"], "default": None}]]
    with SchemaRegistryClient({"url": registry.url}) as client:
        for number, more in enumerate(added):
            fields += more
            schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
            value = AvroSerializer(client, schema)({"id": number, "price": 0.5}, context)
            send(broker, name, value, partition=0)
    send(broker, name, b"no Avro", None, partition=0)
    rows = batch_of(spark, broker, name, decode="avro", **{"schema.registry.url": registry.url})
    assert dict(rows.dtypes)["value"] == "struct<id:bigint,price:double>"
    found = rows.orderBy("offset").select("value.*", "_error", "_raw", "offset").collect()
    assert [(row.id, row.price, row["_raw"]) for row in found] == [
        (0, None, None),
        (1, 0.5, None),
        (None, None, b"no Avro"),
        (None, None, None),
    ]
    assert [row["_error"] is not None for row in found] == [False, False, True, False]


def test_an_option_that_cannot_work_is_told_in_plain_words(spark: SparkSession, broker: BrokerProcess) -> None:
    with pytest.raises(Exception, match="Invalid value 'soon' for option startingOffsets: must be earliest, latest"):
        batch_of(spark, broker, "orders", startingOffsets="soon").count()


def test_every_session_knows_the_source_also_one_of_spark_connect(
    spark: SparkSession, broker: BrokerProcess, name: str, connect_port: int
) -> None:
    create_topic(broker, name)
    send(broker, name, b"seen")
    assert values(batch_of(spark.newSession(), broker, name)) == [b"seen"]
    register(spark)  # What sessions need that others have started does no harm here.
    assert values(batch_of(spark, broker, name)) == [b"seen"]
    notebook = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _NOTEBOOK, f"sc://127.0.0.1:{connect_port}", broker.bootstrap, name],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        cwd=REPOSITORY,
        check=False,
    )
    assert notebook.stdout.splitlines()[-1:] == ["['seen']"], notebook.stderr[-3000:]
