"""Where a sink begins that has never run: where its group is, or else at the beginning or the end of its topics."""

import logging
from collections.abc import Mapping
from typing import Final

from connectors.spark.letter_box import client_settings
from connectors.spark.manifest import TopicPartition
from connectors.spark.spec import SinkSpec
from core_broker.client.admin import Admin

log = logging.getLogger(__name__)

_RESET: Final = "auto.offset.reset"
_LATEST: Final = ("latest", "largest", "end")


def first_positions(spec: SinkSpec, *, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Decided once and written down: partitions that are not in it are read from their beginning."""
    admin = Admin(client_settings(spec.admin))
    partitions = admin.topic_names()
    places = [(topic, number) for topic in spec.topics.chosen(partitions) for number in range(partitions.get(topic, 0))]
    positions = {place: committed[place] for place in places if place in committed}
    unknown = [place for place in places if place not in committed]
    if unknown and spec.consumer.get(_RESET, "earliest") in _LATEST:
        positions.update(admin.offsets(unknown, "latest"))
    return positions


def made_anew(
    spec: SinkSpec, positions: Mapping[TopicPartition, int], *, before: Mapping[str, str], now: Mapping[str, str]
) -> set[TopicPartition]:
    """Partitions of topics that were deleted and made anew, which are read from their beginning: the topic's id is
    another one, or the position lies behind its end."""
    admin = Admin(client_settings(spec.admin))
    partitions = admin.topic_names()
    there = [place for place in positions if place[1] < partitions.get(place[0], 0)]
    ends = admin.offsets(there, "latest")
    anew = {place for place, end in ends.items() if positions[place] > end or _is_other(place[0], before, now)}
    for topic, partition in sorted(anew):
        extra = {"topic": topic, "partition": partition, "position": positions[topic, partition]}
        log.warning("a topic was made anew: it is read from its beginning", extra=extra)
    return anew


def _is_other(topic: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    known, found = before.get(topic), now.get(topic)
    return bool(known and found and known != found)
