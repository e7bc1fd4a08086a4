"""Where a sink begins that has never run: where its group is, or else at the beginning or the end of its topics."""

from collections.abc import Mapping
from typing import Final

from connectors.spark.letter_box import client_settings
from connectors.spark.manifest import Place
from connectors.spark.spec import SinkSpec
from core_broker.client.admin import Admin

_RESET: Final = "auto.offset.reset"
_LATEST: Final = ("latest", "largest", "end")


def first_positions(spec: SinkSpec, *, committed: Mapping[Place, int]) -> dict[Place, int]:
    """Decided once and written down: partitions that are not in it are read from their beginning."""
    admin = Admin(client_settings(spec.admin))
    partitions = admin.topic_names()
    places = [(topic, number) for topic in spec.topics.chosen(partitions) for number in range(partitions.get(topic, 0))]
    positions = {place: committed[place] for place in places if place in committed}
    unknown = [place for place in places if place not in committed]
    if unknown and spec.consumer.get(_RESET, "earliest") in _LATEST:
        positions.update(admin.offsets(unknown, "latest"))
    return positions
