"""What a task does: reads its range, and decides what a loss of data means."""

import logging
from collections.abc import Iterator

from core_broker.client.consumer import Consumer
from core_broker.client.errors import NotFound
from core_broker.client.reader import OffsetOutOfRange
from streams.errors import DataLoss
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.fetching import RawBatch, fetched
from streams.spark.topics.ranges import OffsetRange

log = logging.getLogger(__name__)

HOW_TO_GO_ON = (
    "Some data may have been lost: retention has deleted it before it was read, or the topic was deleted."
    " With failOnDataLoss=false the query goes on with what is there"
)


def read_range(
    cluster: Cluster, wanted: OffsetRange, *, timeout_ms: int, fail_on_data_loss: bool
) -> Iterator[RawBatch]:
    """The records of a range; DataLoss when some are gone, unless they may be."""
    try:
        yield from fetched(cluster, wanted, timeout_ms=timeout_ms)
        return
    except OffsetOutOfRange as error:
        lost_from, reason = error.offset, str(error)
    except NotFound as error:
        lost_from, reason = wanted.end, str(error)
    if fail_on_data_loss:
        raise DataLoss(f"Offsets {lost_from} to {wanted.end - 1} cannot be read: {reason}. {HOW_TO_GO_ON}")
    log.warning("offsets are gone", extra={"topic": wanted.topic, "partition": wanted.partition, "from": lost_from})
    left = _what_is_left(cluster, wanted, lost_from)
    if left is not None:
        yield from read_range(cluster, left, timeout_ms=timeout_ms, fail_on_data_loss=fail_on_data_loss)


def _what_is_left(cluster: Cluster, wanted: OffsetRange, lost_from: int) -> OffsetRange | None:
    """The part of the range that the partition still holds; it must be smaller, or reading would never end."""
    if lost_from >= wanted.end:
        return None
    try:
        with Consumer(cluster.settings()) as consumer:
            first, end = consumer.bounds(wanted.topic, wanted.partition)
    except NotFound:
        return None
    start = max(first, lost_from)
    if start == lost_from == wanted.start and end >= wanted.end:
        start += 1  # It is said to be there, and still could not be read.
    until = min(end, wanted.end)
    return OffsetRange(wanted.topic, wanted.partition, start, until) if start < until else None
