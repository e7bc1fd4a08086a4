"""Offsets as JSON, in options and in the checkpoint of a query."""

import json
from collections.abc import Mapping
from typing import Any, Final

from streams.errors import StreamsError, WrongOption
from streams.spark.topics.ranges import Offsets, TopicPartition

VERSION: Final = 1
EARLIEST: Final = -2
LATEST: Final = -1


def to_checkpoint(offsets: Offsets, ids: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Offsets for Spark's checkpoint; the version marks this format, the ids identify topics that were recreated."""
    document: dict[str, Any] = {"version": VERSION, "topics": offsets_by_topic(offsets)}
    return {**document, "ids": dict(sorted(ids.items()))} if ids else document


def ids_from_checkpoint(document: Mapping[str, Any]) -> dict[str, str]:
    """The ids that topics had; none if the cluster has no topic ids."""
    return dict(document.get("ids", {})) if "version" in document else {}


def from_checkpoint(document: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Offsets of a checkpoint; those of Spark's own Kafka source are understood, too."""
    version = document.get("version")
    if version is None:
        return _flat(document)
    if version != VERSION:
        raise StreamsError(f"The checkpoint has offsets of version {version}, which this version of Caudal cannot read")
    return _flat(document["topics"])


def offsets_by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, in order."""
    result: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    return result


def parse_offsets(key: str, text: str) -> dict[TopicPartition, int]:
    """An option such as {"topic": {"0": 23, "1": -2}}; WrongOption if it has another shape."""
    allowed = 'must be JSON such as {"topicA": {"0": 23, "1": -1}, "topicB": {"0": -2}}'
    try:
        result = _flat(json.loads(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongOption(key, text, allowed) from error
    if not result or any(partition < 0 for _, partition in result):
        raise WrongOption(key, text, allowed)
    return result


def parse_assignment(key: str, text: str) -> list[TopicPartition]:
    """An option such as {"topic": [0, 1]}; WrongOption if it has another shape."""
    allowed = 'must be JSON such as {"topicA": [0, 1], "topicB": [2, 4]}'
    try:
        partitions = {(topic, _integer(number)) for topic, numbers in json.loads(text).items() for number in numbers}
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongOption(key, text, allowed) from error
    if not partitions or any(partition < 0 for _, partition in partitions):
        raise WrongOption(key, text, allowed)
    return sorted(partitions)


def _flat(document: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): _integer(offset)
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    }


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value
