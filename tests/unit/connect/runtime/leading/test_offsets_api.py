"""Offsets that users send: what is understood, and what is refused in Kafka Connect's words."""

import re
from typing import Any

import pytest

from connect.runtime.errors import BadRequest
from connect.runtime.leading.offsets_api import message, parse_sink_offsets, parse_source_offsets

_PLACE = {"kafka_topic": "t", "kafka_partition": 1}


@pytest.mark.parametrize(
    ("partition", "offset", "expected"),
    [
        (_PLACE, {"kafka_offset": 10}, {("t", 1): 10}),
        ({**_PLACE, "kafka_partition": "1"}, {"kafka_offset": "10"}, {("t", 1): 10}),
        (_PLACE, None, {("t", 1): None}),
    ],
)
def test_offsets_of_sinks_are_numbers_or_text(partition: Any, offset: Any, expected: dict[Any, Any]) -> None:
    assert parse_sink_offsets([{"partition": partition, "offset": offset}]) == expected


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        (None, None, "The partition for a sink connector offset cannot be null or missing"),
        ({"kafka_topic": "t"}, None, "must contain the keys 'kafka_topic' and 'kafka_partition'"),
        ({**_PLACE, "kafka_partition": "x"}, None, "Kafka partition value in the provided offsets: 'x'"),
        ({**_PLACE, "kafka_partition": True}, None, "Partition values for sink connectors need to be integers"),
        ({**_PLACE, "kafka_partition": -1}, None, "Partition values for sink connectors need to be integers"),
        (_PLACE, {"offset": 1}, "should either be null or contain the key 'kafka_offset'"),
        (_PLACE, {"kafka_offset": "1.5"}, "Kafka offset value in the provided offsets: '1.5'"),
        (_PLACE, {"kafka_offset": 1 << 63}, "Offset values for sink connectors need to be integers"),
    ],
)
def test_wrong_offsets_of_sinks_are_refused(partition: Any, offset: Any, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_sink_offsets([{"partition": partition, "offset": offset}])
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"offset": {}}, "cannot be null or missing"),
        ({"partition": {"a": 1}, "offset": 5}, "either be null or an object"),
        ({"partition": {"a": [1]}, "offset": None}, "primitive types"),
        ({"partition": {"a": 1}, "offset": {"b": {}}}, "primitive types"),
    ],
)
def test_wrong_offsets_of_sources_are_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_source_offsets([entry])
    assert message in caught.value.message


def test_the_message_tells_whether_something_is_left_to_do() -> None:
    assert message("altered", is_complete=True) == "The offsets for this connector have been altered successfully"
    assert message("reset", is_complete=False) == (
        "The Connect framework-managed offsets for this connector have been reset successfully. However, if this "
        "connector manages offsets externally, they will need to be manually reset in the system that the connector "
        "uses."
    )


@pytest.mark.parametrize("topic", [None, 7, ""])
def test_a_topic_that_is_no_name_is_told(topic: object) -> None:
    with pytest.raises(BadRequest, match="Kafka topic names must be valid strings and may not be null"):
        parse_sink_offsets([{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": None}])


@pytest.mark.parametrize("given, shown", [(None, "null"), ([1], "[1]"), ("x", "x")])
def test_a_partition_that_is_no_number_is_told_as_it_was_written(given: object, shown: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(f"in the provided offsets: '{shown}'")):
        parse_sink_offsets([{"partition": {"kafka_topic": "t", "kafka_partition": given}, "offset": None}])
