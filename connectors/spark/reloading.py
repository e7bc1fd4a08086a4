"""Which range of a topic may be read again, so that no row is doubled by it and none is lost."""

from collections.abc import Mapping

from connectors.spark.manifest import Reload, TopicPartition
from connectors.spark.metadata import PLACE
from connectors.spark.spec import SinkSpec
from streams.errors import WrongOption


def reload_of(
    spec: SinkSpec, positions: Mapping[TopicPartition, int], topic: str, partition: int, *, start: int, end: int
) -> Reload:
    """The range that is to be replaced; WrongOption when that would double rows, or nobody could find the old ones.

    An upsert makes old records the newest of their keys: all that came after them is read again as well.
    """
    position = positions.get((topic, partition))
    if position is None:
        known = ", ".join(f"{name}-{number}" for name, number in sorted(positions)) or "nothing yet"
        raise WrongOption("topic", f"{topic}-{partition}", f"must be one that the sink has read: {known}")
    if not 0 <= start < end <= position:
        told = f"must begin at 0 or later and end at {position} at most, as no more was read yet"
        raise WrongOption("range", f"{start}-{end}", told)
    missing = [name for name in PLACE if name not in spec.config.metadata]
    if missing:
        told = f"must have {', '.join(missing)}: by them the rows of the range are found"
        raise WrongOption("metadata.columns", ",".join(spec.config.metadata_columns), told)
    is_upsert = spec.config.write_mode == "upsert"
    return Reload(
        topic=topic,
        partition=partition,
        start=start,
        end=position if is_upsert else end,
        tables=(spec.names.of(topic),),
    )


def check_there(again: Reload, first: int) -> None:
    """WrongOption when the topic does not reach back that far any more: rows would go and not come back."""
    if again.start < first:
        told = f"must begin at {first} or later: the topic has no older records any more, and their rows would be lost"
        raise WrongOption("range", f"{again.start}-{again.end}", told)
