import json
import pickle
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewPartitions
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from streams.errors import DataLoss, StreamsError, WrongOption
from streams.spark.topics.ranges import OffsetRange, RangePartition
from streams.spark.topics.source import TopicSource
from streams.spark.topics.stream_reader import TopicStreamReader
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.unit.streams.spark.topics.conftest import Send

pytestmark = pytest.mark.processes

ALL = ReadAllAvailable()


def opened(broker: BrokerProcess, **options: str) -> TopicStreamReader:
    named = {key.replace("_", "."): value for key, value in options.items()}
    source = TopicSource({"kafka.bootstrap.servers": broker.bootstrap, **named})
    return source.streamReader(source.schema())


def offsets(topic: str, *numbers: int) -> dict[str, Any]:
    return {"version": 1, "topics": {topic: {str(partition): offset for partition, offset in enumerate(numbers)}}}


def without_ids(document: dict[str, Any] | None) -> dict[str, Any]:
    """Offsets as they are written above, without the ids of topics."""
    assert document is not None
    return {key: value for key, value in document.items() if key != "ids"}


def planned(reader: TopicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[OffsetRange]:
    partitions = reader.partitions(start, end)
    assert all(isinstance(partition, RangePartition) for partition in partitions)
    return [partition.range for partition in partitions if isinstance(partition, RangePartition)]


def values(reader: TopicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    there = pickle.loads(pickle.dumps(reader))
    batches = [batch for partition in reader.partitions(start, end) for batch in there.read(partition)]
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def delete_until(broker: BrokerProcess, topic: str, offset: int) -> None:
    admin_client(broker).delete_records([TopicPartition(topic, 0, offset)])[TopicPartition(topic, 0)].result(30)


def delete_topic(broker: BrokerProcess, topic: str) -> None:
    admin_client(broker).delete_topics([topic])[topic].result(30)


def committed(broker: BrokerProcess, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    return int(found.offset)


def test_a_stream_begins_at_the_end_and_stays_there(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"1", b"2"])
    reader = opened(broker, subscribe=name)
    start = reader.initialOffset()
    assert without_ids(start) == offsets(name, 2)
    send(name, [b"3"])
    assert reader.initialOffset() == start
    assert reader.latestOffset(start, ALL) == start
    assert reader.reportLatestOffset() == offsets(name, 3)
    end = reader.latestOffset(start, ALL)
    assert without_ids(end) == offsets(name, 3)
    assert values(reader, start, end) == [b"3"]


@pytest.mark.parametrize(
    "starting",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"%s": {"0": -1}}'},
        {"startingTimestamp": "5000", "startingOffsetsByTimestampStrategy": "latest"},
    ],
    ids=["latest", "offset -1", "late time"],
)
@pytest.mark.parametrize("later", [[], [b"3"], [b"3", b"4"]], ids=["none", "one", "two"])
def test_a_start_that_moves_is_where_the_first_batch_ends_also_when_it_is_done_again(
    broker: BrokerProcess, name: str, send: Send, starting: dict[str, str], later: list[bytes]
) -> None:
    create_topic(broker, name, configs={"retention.ms": "-1"})
    send(name, [b"1", b"2"], timestamp_ms=1000)
    given = {key: value.replace("%s", name) for key, value in starting.items()}
    first = opened(broker, subscribe=name, **given)
    in_checkpoint = first.latestOffset(first.initialOffset(), ALL)
    assert without_ids(in_checkpoint) == offsets(name, 2)
    # The first batch has failed: all that is known of it is its end.
    send(name, later, timestamp_ms=1000)
    again = opened(broker, subscribe=name, **given)
    assert planned(again, again.initialOffset(), in_checkpoint) == []
    ends = [again.latestOffset(in_checkpoint, ALL) for _ in range(2)]
    assert values(again, in_checkpoint, ends[-1]) == later


def test_progress_is_committed_for_the_group(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"1", b"2"])
    reader = opened(broker, subscribe=name, startingOffsets="earliest", kafka_group_id=f"{name}-group")
    assert without_ids(reader.initialOffset()) == offsets(name, 0)
    reader.commit(offsets(name, 2))
    assert committed(broker, f"{name}-group", name) == 2


def test_without_a_group_nothing_is_committed(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    reader = opened(broker, subscribe=name)
    reader.commit(offsets(name, 2))
    assert committed(broker, "caudal-reader", name) < 0


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("startingOffsets", "earliest", 0),
        ("startingOffsets", '{"%s": {"0": -2}}', 0),
        ("startingOffsets", '{"%s": {"0": -1}}', 3),
        ("startingOffsets", '{"%s": {"0": 1}}', 1),
        ("startingTimestamp", "1500", 1),
        ("startingOffsetsByTimestamp", '{"%s": {"0": 3000}}', 2),
    ],
)
def test_where_a_stream_may_begin(
    broker: BrokerProcess, name: str, send: Send, option: str, value: str, expected: int
) -> None:
    create_topic(broker, name, configs={"retention.ms": "-1"})
    for time_ms in (1000, 2000, 3000):
        send(name, [b"x"], timestamp_ms=time_ms)
    text = value.replace("%s", name)
    assert without_ids(opened(broker, subscribe=name, **{option: text}).initialOffset()) == offsets(name, expected)


def test_a_time_after_the_last_record_is_refused_or_the_end(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name, configs={"retention.ms": "-1"})
    send(name, [b"x"], timestamp_ms=1000)
    with pytest.raises(WrongOption, match=f"startingTimestamp: no record is that late in {name}-0"):
        opened(broker, subscribe=name, startingTimestamp="5000").initialOffset()
    late = {"startingTimestamp": "5000", "startingOffsetsByTimestampStrategy": "latest"}
    assert without_ids(opened(broker, subscribe=name, **late).initialOffset()) == offsets(name, 1)


def test_offsets_must_be_given_for_every_partition(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=2)
    with pytest.raises(WrongOption, match=f"must name every partition that is read, and no other: {name}-0, {name}-1"):
        opened(broker, subscribe=name, startingOffsets=f'{{"{name}": {{"0": 1}}}}').initialOffset()


def test_a_topic_that_does_not_exist_is_an_error(broker: BrokerProcess, name: str) -> None:
    with pytest.raises(StreamsError, match=f"do not exist, or this user may not see them: {name}"):
        opened(broker, subscribe=name).initialOffset()
    create_topic(broker, name)
    with pytest.raises(StreamsError, match=f"do not exist, or this user may not see them: {name}-7"):
        opened(broker, assign=f'{{"{name}": [0, 7]}}').initialOffset()


def test_new_partitions_and_new_topics_are_read_from_their_beginning(
    broker: BrokerProcess, name: str, send: Send
) -> None:
    create_topic(broker, f"{name}-a")
    reader = opened(broker, subscribePattern=f"{name}-.*")
    start = reader.initialOffset()
    create_topic(broker, f"{name}-b")
    admin_client(broker).create_partitions([NewPartitions(f"{name}-a", 2)])[f"{name}-a"].result(30)
    send(f"{name}-a", [b"1"], partition=1)
    send(f"{name}-b", [b"2"])
    end = eventually(lambda: reader.latestOffset(start, ALL), lambda found: len(found["topics"]) == 2)
    end = eventually(lambda: reader.latestOffset(start, ALL), lambda found: len(found["topics"][f"{name}-a"]) == 2)
    assert end["topics"] == {f"{name}-a": {"0": 0, "1": 1}, f"{name}-b": {"0": 1}}
    assert values(reader, start, end) == [b"1", b"2"]


def test_a_batch_reads_no_more_than_it_may(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name, partitions=2)
    send(name, [b"x"] * 30, partition=0)
    send(name, [b"x"] * 10, partition=1)
    reader = opened(broker, subscribe=name, maxOffsetsPerTrigger="20")
    assert reader.getDefaultReadLimit() == ReadMaxRows(20)
    assert without_ids(reader.latestOffset(offsets(name, 0, 0), ReadMaxRows(20))) == offsets(name, 15, 5)
    assert without_ids(reader.latestOffset(offsets(name, 0, 0), ALL)) == offsets(name, 30, 10)
    assert reader.reportLatestOffset() == offsets(name, 30, 10)
    assert opened(broker, subscribe=name).getDefaultReadLimit() == ALL


def test_a_batch_waits_for_enough_but_not_for_ever(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"x"] * 5)
    reader = opened(broker, subscribe=name, minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    start = reader.latestOffset(offsets(name, 0), ALL)
    assert without_ids(start) == offsets(name, 5)  # The first is never put off.
    send(name, [b"x"] * 9)
    assert reader.latestOffset(start, ALL) == start
    send(name, [b"x"])
    assert without_ids(reader.latestOffset(start, ALL)) == offsets(name, 15)
    hasty = opened(broker, subscribe=name, minOffsetsPerTrigger="10", maxTriggerDelay="0ms")
    hasty.latestOffset(offsets(name, 0), ALL)
    assert without_ids(hasty.latestOffset(offsets(name, 14), ALL)) == offsets(name, 15)


def test_what_comes_after_available_now_is_left_for_later(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"x"] * 5)
    reader = opened(broker, subscribe=name)
    reader.prepareForTriggerAvailableNow()
    send(name, [b"x"] * 5)
    end = reader.latestOffset(offsets(name, 0), ReadMaxRows(3))
    assert without_ids(end) == offsets(name, 3)
    assert without_ids(reader.latestOffset(end, ReadMaxRows(3))) == offsets(name, 5)
    assert without_ids(reader.latestOffset(offsets(name, 5), ReadMaxRows(3))) == offsets(name, 5)


def test_partitions_are_cut_for_more_tasks(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    reader = opened(broker, subscribe=name, minPartitions="3")
    ranges = planned(reader, offsets(name, 1), offsets(name, 10))
    assert [(item.start, item.end) for item in ranges] == [(1, 4), (4, 7), (7, 10)]


def test_what_retention_has_deleted_is_an_error_or_left_out(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"%d" % number for number in range(10)])
    delete_until(broker, name, 4)
    with pytest.raises(DataLoss, match=r"Offsets 2 to 8 cannot be read: .* failOnDataLoss=false"):
        values(opened(broker, subscribe=name), offsets(name, 2), offsets(name, 9))
    tolerant = opened(broker, subscribe=name, failOnDataLoss="false")
    assert values(tolerant, offsets(name, 2), offsets(name, 9)) == [b"4", b"5", b"6", b"7", b"8"]
    assert values(tolerant, offsets(name, 0), offsets(name, 3)) == []


def test_a_topic_that_is_gone_is_an_error_or_left_out(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"x"])
    strict = opened(broker, subscribe=name)
    tolerant = opened(broker, subscribe=name, failOnDataLoss="false")
    delete_topic(broker, name)
    nothing = {"version": 1, "topics": {}}
    assert eventually(lambda: strict.latestOffset(offsets(name, 1), ALL), lambda found: found == nothing)
    with pytest.raises(DataLoss, match=f"Partitions that were read before no longer exist: {name}-0"):
        strict.partitions(offsets(name, 1), nothing)
    assert tolerant.partitions(offsets(name, 1), nothing) == []
    with pytest.raises(DataLoss, match="Offsets 1 to 0|does not exist"):
        values(strict, offsets(name, 0), offsets(name, 1))
    assert values(tolerant, offsets(name, 0), offsets(name, 1)) == []


def test_a_topic_that_was_recreated_is_an_error_or_read_on(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"old"] * 5)
    strict = opened(broker, subscribe=name)
    tolerant = opened(broker, subscribe=name, failOnDataLoss="false")
    delete_topic(broker, name)
    create_topic(broker, name)
    send(name, [b"new"] * 2)
    end = eventually(
        lambda: strict.latestOffset(offsets(name, 5), ALL), lambda found: without_ids(found) == offsets(name, 2)
    )
    with pytest.raises(DataLoss, match=f"The end of partition {name}-0 has moved from 5 back to 2: it was recreated"):
        strict.partitions(offsets(name, 5), end)
    assert tolerant.partitions(offsets(name, 5), end) == []
    send(name, [b"newer"])
    assert values(tolerant, end, offsets(name, 3)) == [b"newer"]


def test_a_topic_that_was_recreated_and_has_grown_is_an_error_or_read_from_its_beginning(
    broker: BrokerProcess, name: str, send: Send
) -> None:
    create_topic(broker, name)
    send(name, [b"old"] * 2)
    strict = opened(broker, subscribe=name)
    tolerant = opened(broker, subscribe=name, failOnDataLoss="false")
    start = strict.initialOffset()
    delete_topic(broker, name)
    create_topic(broker, name)
    send(name, [b"new"] * 3)
    end = eventually(lambda: strict.latestOffset(start, ALL), lambda found: without_ids(found) == offsets(name, 3))
    with pytest.raises(DataLoss, match=f"Topics were deleted and recreated: {name}"):
        strict.partitions(start, end)
    assert values(tolerant, start, end) == [b"new"] * 3
    assert without_ids(tolerant.latestOffset(start, ReadMaxRows(2))) == offsets(name, 2)


def test_an_offset_that_has_not_moved_is_written_alike(broker: BrokerProcess, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"x"])
    reader = opened(broker, subscribe=name)
    start = json.loads(json.dumps(reader.initialOffset()))
    assert json.dumps(reader.latestOffset(start, ALL)) == json.dumps(reader.initialOffset())
