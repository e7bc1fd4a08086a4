import json

import pytest

from streams.errors import DataLoss, StreamsError
from streams.spark.topics.source import TopicBatchReader, TopicSource
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.unit.streams.spark.topics.conftest import Send

pytestmark = pytest.mark.processes


def opened(broker: BrokerProcess, **options: str) -> TopicBatchReader:
    source = TopicSource({"kafka.bootstrap.servers": broker.bootstrap, **options})
    return source.reader(source.schema())


def bounds(reader: TopicBatchReader) -> list[tuple[str, int, int, int]]:
    return [(item.topic, item.partition, item.start, item.end) for item in reader.ranges()]


def test_all_that_is_there_is_read(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name, partitions=3)
    send(name, [b"x"] * 3)
    send(name, [b"x"] * 2, partition=2)
    assert bounds(opened(broker, subscribe=name)) == [(name, 0, 0, 3), (name, 2, 0, 2)]


def test_only_what_is_assigned_is_read(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name, partitions=2)
    for partition in range(2):
        send(name, [b"x"], partition=partition)
    assert bounds(opened(broker, assign=json.dumps({name: [1]}))) == [(name, 1, 0, 1)]


def test_ranges_are_cut_as_asked(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"x"] * 5)
    assert bounds(opened(broker, subscribe=name, minPartitions="2")) == [(name, 0, 0, 2), (name, 0, 2, 5)]
    assert len(bounds(opened(broker, subscribe=name, maxRecordsPerPartition="1"))) == 5


def test_an_end_at_a_time_after_the_last_record_is_the_end(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name, configs={"retention.ms": "-1"})
    for time_ms in (1000, 2000, 3000):
        send(name, [b"x"], timestamp_ms=time_ms)
    assert bounds(opened(broker, subscribe=name, endingTimestamp="2000")) == [(name, 0, 0, 1)]
    assert bounds(opened(broker, subscribe=name, endingTimestamp="9000")) == [(name, 0, 0, 3)]


def test_an_end_before_the_start_fails_unless_data_may_be_lost(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"x"] * 5)
    start, end = json.dumps({name: {"0": 4}}), json.dumps({name: {"0": 2}})
    with pytest.raises(DataLoss, match=f"Partition {name}-0 would be read from 4 to 2"):
        bounds(opened(broker, subscribe=name, startingOffsets=start, endingOffsets=end))
    tolerant = opened(broker, subscribe=name, startingOffsets=start, endingOffsets=end, failOnDataLoss="false")
    assert bounds(tolerant) == []


def test_a_topic_that_does_not_exist_is_an_error(broker: BrokerProcess, name: str) -> None:
    with pytest.raises(StreamsError, match=f"do not exist, or this user may not see them: {name}"):
        bounds(opened(broker, subscribe=name))
    assert bounds(opened(broker, subscribePattern=f"{name}.*")) == []
