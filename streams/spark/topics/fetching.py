"""Fetches ranges of offsets as Arrow columns, on the executors, and decides what a loss of data means.

This is the hot path of everything that Spark reads: about one microsecond of one core per record of a hundred bytes.
Consumers are kept open, because a worker reads the same partitions again.
"""

import atexit
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from core_broker.client.consumer import Consumer
from core_broker.client.errors import NotFound
from core_broker.client.reader import OffsetOutOfRange
from streams.errors import DataLoss
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.range_reader import RangeReader, RecordColumns
from streams.spark.topics.ranges import OffsetRange

log = logging.getLogger(__name__)

DATA_LOSS_ADVICE: Final = (
    "Some data may have been lost: it was deleted by retention before it was read, or the topic was deleted."
    " Set failOnDataLoss=false to continue with the records that are left"
)
ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 16 << 20
TIMEOUT_MS: Final = 120_000
HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)


class RawBatch(NamedTuple):
    """Records of one partition, as columns of the same length."""

    keys: pa.Array
    values: pa.Array
    offsets: pa.Array
    timestamps_ms: pa.Array
    timestamp_types: pa.Array
    headers: pa.Array | None
    """None if no record has any; null where a record has none."""

    def __len__(self) -> int:
        return len(self.offsets)


def fetch_range(
    cluster: Cluster,
    wanted: OffsetRange,
    *,
    rows_max: int = ROWS_MAX,
    bytes_max: int = BYTES_MAX,
    timeout_ms: int = TIMEOUT_MS,
) -> Iterator[RawBatch]:
    """The records of a range in batches of at most about these limits; raises ClientErrors like RangeReader.read."""
    partition = (wanted.topic, wanted.partition)
    key = (*cluster.key, *partition)
    reader = _idle.take(key) or RangeReader(cluster.settings(), isolation_level=cluster.isolation)
    try:
        batches = reader.read(
            partition, wanted.start, wanted.end, rows_max=rows_max, bytes_max=bytes_max, timeout_ms=timeout_ms
        )
        yield from map(_to_arrow, batches)
    except BaseException:
        reader.close()  # It failed, or the caller stopped half-way: what it fetched ahead is of no use.
        raise
    _idle.give_back(key, reader)


def read_range(
    cluster: Cluster, wanted: OffsetRange, *, timeout_ms: int, fail_on_data_loss: bool
) -> Iterator[RawBatch]:
    """The records of a range; if some are gone, DataLoss or, without `fail_on_data_loss`, those that are left."""
    try:
        yield from fetch_range(cluster, wanted, timeout_ms=timeout_ms)
        return
    except OffsetOutOfRange as error:
        lost_from, reason = error.offset, str(error)
    except NotFound as error:
        lost_from, reason = wanted.end, str(error)
    if fail_on_data_loss:
        raise DataLoss(f"Offsets {lost_from} to {wanted.end - 1} cannot be read: {reason}. {DATA_LOSS_ADVICE}")
    log.warning("offsets are gone", extra={"topic": wanted.topic, "partition": wanted.partition, "from": lost_from})
    rest = _remaining(cluster, wanted, lost_from)
    if rest is not None:
        yield from read_range(cluster, rest, timeout_ms=timeout_ms, fail_on_data_loss=fail_on_data_loss)


def _remaining(cluster: Cluster, wanted: OffsetRange, lost_from: int) -> OffsetRange | None:
    """The part of the range that the partition still holds, always a smaller one so that reading ends."""
    if lost_from >= wanted.end:
        return None
    try:
        with Consumer(cluster.settings()) as consumer:
            first, end = consumer.bounds(wanted.topic, wanted.partition)
    except NotFound:
        return None
    start = max(first, lost_from)
    if start == lost_from == wanted.start and end >= wanted.end:
        start += 1  # The broker claims to have it, and still it could not be read.
    until = min(end, wanted.end)
    return OffsetRange(wanted.topic, wanted.partition, start, until) if start < until else None


def close_idle() -> None:
    """Close the consumers that are kept open."""
    _idle.close()


def _to_arrow(columns: RecordColumns) -> RawBatch:
    headers = columns.headers
    if headers is not None:
        pairs = [[{"key": key, "value": value} for key, value in row] if row else None for row in headers]
        headers = pa.array(pairs, HEADERS)
    return RawBatch(
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.values, pa.binary()),
        pa.array(columns.offsets, pa.int64()),
        pa.array(columns.timestamps_ms, pa.int64()),
        pa.array(columns.timestamp_types, pa.int32()),
        headers,
    )


@dataclass
class _IdleReaders:
    """Readers that are not in use, the last used at the end: a few, each for a limited time."""

    count_max: int = 8
    idle_seconds: float = 30.0
    _readers: dict[tuple[object, ...], tuple[RangeReader, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sweeper: threading.Thread | None = None
    _forked: list[object] = field(default_factory=list)

    def take(self, key: tuple[object, ...]) -> RangeReader | None:
        """The reader for this key, which the caller then owns."""
        with self._lock:
            reader, _ = self._readers.pop(key, (None, 0.0))
        return reader

    def give_back(self, key: tuple[object, ...], reader: RangeReader) -> None:
        """Keep it for the next range."""
        with self._lock:
            surplus = [kept for kept, _ in (self._readers.pop(key, (None, 0.0)),) if kept is not None]
            self._readers[key] = (reader, time.monotonic())
            while len(self._readers) > self.count_max:
                surplus.append(self._readers.pop(next(iter(self._readers)))[0])
            if self._sweeper is None:
                self._sweeper = threading.Thread(target=self._sweep, name="idle-consumers", daemon=True)
                self._sweeper.start()
        for kept in surplus:
            kept.close()

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            readers = [reader for reader, _ in self._readers.values()]
            self._readers.clear()
        for reader in readers:
            reader.close()

    def forget(self) -> None:
        """Leave the readers alone in a forked child, where their threads do not run: not even freeing them is safe."""
        self._forked.append(self._readers)
        self._readers, self._lock, self._sweeper = {}, threading.Lock(), None

    def _sweep(self) -> None:
        """Close readers that were idle for too long, until none is left."""
        while True:
            time.sleep(self.idle_seconds / 2)
            with self._lock:
                limit = time.monotonic() - self.idle_seconds
                idle = [key for key, (_, since) in self._readers.items() if since < limit]
                readers = [self._readers.pop(key)[0] for key in idle]
                is_done = not self._readers
                if is_done:
                    self._sweeper = None
            for reader in readers:
                reader.close()
            if is_done:
                return


_idle = _IdleReaders()
os.register_at_fork(after_in_child=_idle.forget)
atexit.register(_idle.close)
