"""Where a sink begins to read, which topics were recreated, and which ranges may be read again."""

import logging
from collections.abc import Mapping
from typing import Final

from connectors.spark.metadata import PLACE
from connectors.spark.spec import SinkSpec
from core_broker.client.consumer import TopicPartition
from streams.errors import WrongOption
from streams.spark.commits.manifest import Reload

log = logging.getLogger(__name__)

_RESET: Final = "auto.offset.reset"
_LATEST: Final = ("latest", "largest", "end")


def first_positions(spec: SinkSpec, *, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Where a sink begins that has never run: at the group's offsets, else at the end of its topics if it is configured
    so. Partitions without a position are read from their beginning."""
    admin = spec.open_admin()
    counts = admin.topic_names()
    partitions = [(topic, number) for topic in spec.topics.chosen(counts) for number in range(counts.get(topic, 0))]
    positions = {partition: committed[partition] for partition in partitions if partition in committed}
    unknown = [partition for partition in partitions if partition not in committed]
    if unknown and spec.consumer.get(_RESET, "earliest") in _LATEST:
        positions.update(admin.offsets(unknown, "latest"))
    return positions


def recreated_partitions(
    spec: SinkSpec, positions: Mapping[TopicPartition, int], *, before: Mapping[str, str], now: Mapping[str, str]
) -> set[TopicPartition]:
    """Partitions of topics that were deleted and created again, which are read from their beginning: their topic has
    another id (`before` and `now` are the ids), or the position is beyond the end."""
    admin = spec.open_admin()
    counts = admin.topic_names()
    existing = [partition for partition in positions if partition[1] < counts.get(partition[0], 0)]
    recreated = set()
    for (topic, partition), end in sorted(admin.offsets(existing, "latest").items()):
        position = positions[topic, partition]
        old, new = before.get(topic), now.get(topic)
        if position > end or (old and new and old != new):
            recreated.add((topic, partition))
            extra = {"topic": topic, "partition": partition, "position": position}
            log.warning("the topic was recreated, reading from its beginning", extra=extra)
    return recreated


def plan_reload(
    spec: SinkSpec, positions: Mapping[TopicPartition, int], topic: str, partition: int, *, start: int, end: int
) -> Reload:
    """The range to replace; WrongOption when that would duplicate rows, or the old rows could not be found.

    In upsert mode, rows that are written again become the newest of their keys, so all later records are read again.
    """
    position = positions.get((topic, partition))
    if position is None:
        known = ", ".join(f"{name}-{number}" for name, number in sorted(positions)) or "none yet"
        raise WrongOption("topic", f"{topic}-{partition}", f"must be a partition that the sink has read: {known}")
    if not 0 <= start < end <= position:
        reason = f"must begin at 0 or later and end at {position} at most: the sink has not read further"
        raise WrongOption("range", f"{start}-{end}", reason)
    missing = [name for name in PLACE if name not in spec.config.metadata]
    if missing:
        reason = f"must have {', '.join(missing)}, which identify the rows of the range"
        raise WrongOption("metadata.columns", ",".join(spec.config.metadata_columns), reason)
    end = position if spec.config.write_mode == "upsert" else end
    return Reload(topic=topic, partition=partition, start=start, end=end, tables=(spec.names.of(topic),))


def check_retained(reload: Reload, first: int) -> None:
    """WrongOption when the topic no longer has the records, so that rows would be removed and not written again."""
    if reload.start < first:
        reason = f"must begin at {first} or later: the topic has no older records, so their rows would be lost"
        raise WrongOption("range", f"{reload.start}-{reload.end}", reason)
