"""Spark's own Kafka connector against our broker, and beside our source: both must read the same.

It needs jars that Spark from PyPI does not bring; `tests/support/java/spark.xml` says how they are fetched.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session

JARS = os.environ.get("CAUDAL_SPARK_JARS", "")
NEEDED = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2")

pytestmark = [
    needs_java,
    pytest.mark.skipif(not JARS, reason="CAUDAL_SPARK_JARS names no folder with Spark's Kafka connector"),
    pytest.mark.timeout(900),
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with Spark's Kafka connector on its class path."""
    if SparkContext._gateway is not None:
        pytest.skip("Java runs already, without the jars: run this file by itself")
    jars = [path for name in NEEDED for path in Path(JARS).glob(f"{name}-*.jar")]
    assert len(jars) == len(NEEDED), f"{JARS} must hold one jar of each of {', '.join(NEEDED)}"
    properties = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.showConsoleProgress": "false",
    }
    with small_session(tmp_path_factory.mktemp("connector"), properties) as session:
        yield session


@pytest.fixture(scope="module")
def topic(broker: BrokerProcess) -> str:
    """A topic of three partitions with all that there is: keys, headers, nulls, transactions, compression."""
    name = "test-spark-kafka-connector"
    create_topic(broker, name, partitions=3, configs={"retention.ms": "-1"})
    settings = {"bootstrap.servers": broker.bootstrap, "compression.type": "lz4", "linger.ms": 20}
    plain = Producer(settings)
    for number in range(3000):
        plain.produce(
            name,
            None if number % 50 == 0 else b"value %d" % number,
            None if number % 7 == 0 else b"key %d" % number,
            number % 3,
            timestamp=1_700_000_000_000 + number,
            headers=[("number", b"%d" % number), ("null", None)] if number % 5 == 0 else None,
        )
    assert plain.flush(30) == 0
    transactional = Producer({**settings, "transactional.id": name})
    transactional.init_transactions(30)
    for number in range(20):
        transactional.begin_transaction()
        transactional.produce(name, b"in transaction %d" % number, partition=number % 3)
        transactional.flush(30)
        if number % 2:
            transactional.abort_transaction(30)
        else:
            transactional.commit_transaction(30)
    return name


def options(broker: BrokerProcess, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "includeHeaders": "true", **more}


def records(rows: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows.orderBy("partition", "offset").collect()]


@pytest.mark.parametrize(("isolation", "count"), [("read_committed", 3010), ("read_uncommitted", 3020)])
def test_a_batch_reads_the_same_with_both(
    spark: SparkSession, broker: BrokerProcess, topic: str, isolation: str, count: int
) -> None:
    asked = options(broker, topic, **{"kafka.isolation.level": isolation}, minPartitions="5")
    theirs, ours = (spark.read.format(source).options(**asked).load() for source in ("kafka", "caudal"))
    assert ours.schema == theirs.schema
    found = records(ours)
    assert len(found) == count
    assert found == records(theirs)


@pytest.mark.parametrize(
    "boundaries",
    [
        {"startingTimestamp": "1700000000100", "endingTimestamp": "1700000002000"},
        {
            "startingOffsets": '{"%s": {"0": 10, "1": -2, "2": 999}}',
            "endingOffsets": '{"%s": {"0": 20, "1": 5, "2": -1}}',
        },
        {
            "startingOffsetsByTimestamp": '{"%s": {"0": 1700000000500, "1": 1, "2": 1700000002999}}',
            "endingOffsetsByTimestamp": '{"%s": {"0": 1700000000600, "1": 1700000000000, "2": 1800000000000}}',
        },
    ],
)
def test_boundaries_mean_the_same_to_both(
    spark: SparkSession, broker: BrokerProcess, topic: str, boundaries: dict[str, str]
) -> None:
    named = {key: value.replace("%s", topic) for key, value in boundaries.items()}
    asked = options(broker, topic, **named, **{"kafka.isolation.level": "read_committed"})
    theirs, ours = (records(spark.read.format(source).options(**asked).load()) for source in ("kafka", "caudal"))
    assert len(ours) > 0
    assert ours == theirs


def test_a_stream_reads_the_same_with_both_in_the_same_steps(
    spark: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    asked = options(
        broker,
        topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="700",
        **{"kafka.isolation.level": "read_committed"},
    )
    found: dict[str, list[tuple[Any, ...]]] = {}
    steps: dict[str, list[Any]] = {}
    for source in ("kafka", "caudal"):
        rows = spark.readStream.format(source).options(**asked).load()
        writer = rows.writeStream.format("memory").queryName(source).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / source)).start()
        assert query.awaitTermination(120)
        found[source] = records(spark.table(source))
        ends = [json.loads(progress.sources[0].endOffset) for progress in query.recentProgress]
        steps[source] = [end.get("topics", end) for end in ends]
    assert len(found["caudal"]) == 3010
    assert found["caudal"] == found["kafka"]
    assert steps["caudal"] == steps["kafka"]


def test_what_one_writes_the_other_reads(spark: SparkSession, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=10)
    rows = spark.range(200).selectExpr(
        "concat('k', id) AS key",
        "cast(id AS string) AS value",
        "array(struct('h' AS key, binary('x') AS value)) headers",
    )
    target = {"kafka.bootstrap.servers": broker.bootstrap, "topic": name, "includeHeaders": "true"}
    for source in ("kafka", "caudal"):
        rows.write.format(source).options(**target).mode("append").save()
    found = spark.read.format("kafka").options(**options(broker, name)).load()
    pairs = found.groupBy("key", "value", "partition", "headers").count().collect()
    # A key goes to the same partition, whoever writes it.
    assert len(pairs) == 200
    assert {row["count"] for row in pairs} == {2}
