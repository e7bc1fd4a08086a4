"""Offsets of the connectors as the worker keeps them, and as people change them by hand."""

from collections.abc import Sequence

from connect.api.errors import ConnectError
from connect.api.source import SourceOffset, SourcePartition
from core_broker.client.consumer import TopicPartition


def partition_of(cluster: str, place: TopicPartition) -> dict[str, str | int]:
    """A partition of the source."""
    return {"cluster": cluster, "topic": place[0], "partition": place[1]}


def check_altered(partition: SourcePartition, offset: SourceOffset | None, *, texts: Sequence[str]) -> None:
    """Refuse offsets of partitions that were changed by hand and make no sense; what is there may be taken away."""
    if offset is None:
        return
    _check_texts(partition, texts)
    number = partition.get("partition")
    if type(number) is not int or number < 0:
        raise ConnectError(f"Source partition {dict(partition)} must have a number, not negative, for key 'partition'")
    _check_offset(offset)


def check_heartbeat(partition: SourcePartition, offset: SourceOffset | None) -> None:
    """The same for offsets of heartbeats, which say nothing."""
    if offset is not None:
        _check_texts(partition, ("sourceClusterAlias", "targetClusterAlias"))
        _check_offset(offset)


def _check_texts(partition: SourcePartition, keys: Sequence[str]) -> None:
    for key in keys:
        if not isinstance(partition.get(key), str):
            raise ConnectError(f"Source partition {dict(partition)} must have a text for key '{key}'")


def _check_offset(offset: SourceOffset) -> None:
    at = offset.get("offset")
    if type(at) is not int or at < 0:
        raise ConnectError(f"Source offset {dict(offset)} must have a number, not negative, for key 'offset'")
