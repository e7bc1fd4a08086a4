"""Offsets as JSON: as a user writes them in options, and as Spark keeps them in the checkpoint of a query."""

import json
from collections.abc import Mapping
from typing import Any, Final

from streams.errors import StreamsError, WrongOption
from streams.spark.topics.ranges import Offsets, TopicPartition

VERSION: Final = 1
EARLIEST: Final = -2
LATEST: Final = -1


def as_checkpoint(offsets: Offsets, ids: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What Spark writes down; the version lets a later format tell this one, ids tell topics that were made anew."""
    document: dict[str, Any] = {"version": VERSION, "topics": by_topic(offsets)}
    return {**document, "ids": dict(sorted(ids.items()))} if ids else document


def ids_from_checkpoint(document: Mapping[str, Any]) -> dict[str, str]:
    """The ids that topics had; none of topics whose cluster has no ids."""
    return dict(document.get("ids", {})) if "version" in document else {}


def from_checkpoint(document: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Offsets from what Spark has written down; what Spark's own Kafka source has written is understood, too."""
    version = document.get("version")
    if version is None:
        return _flat(document)
    if version != VERSION:
        raise StreamsError(f"The checkpoint has offsets of version {version}, which is newer than this source")
    return _flat(document["topics"])


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, in order."""
    result: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    return result


def parsed(key: str, text: str) -> dict[TopicPartition, int]:
    """An option such as {"topic": {"0": 23, "1": -2}}; WrongOption when it is not of that shape."""
    allowed = 'must be JSON such as {"topicA": {"0": 23, "1": -1}, "topicB": {"0": -2}}'
    try:
        document = json.loads(text)
        result = _flat(document)
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongOption(key, text, allowed) from error
    if not result or any(partition < 0 for _, partition in result):
        raise WrongOption(key, text, allowed)
    return result


def parsed_assignment(key: str, text: str) -> list[TopicPartition]:
    """An option such as {"topic": [0, 1]}; WrongOption when it is not of that shape."""
    allowed = 'must be JSON such as {"topicA": [0, 1], "topicB": [2, 4]}'
    try:
        document = json.loads(text)
        places = [(topic, _whole(number)) for topic, numbers in document.items() for number in numbers]
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongOption(key, text, allowed) from error
    if not places or any(partition < 0 for _, partition in places):
        raise WrongOption(key, text, allowed)
    return sorted(set(places))


def _flat(document: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): _whole(offset)
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    }


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value
