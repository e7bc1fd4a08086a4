"""Ranges of offsets as Arrow columns, on the executors. Consumers are kept: a worker reads the same partitions again.

The hot path of all that Spark reads: about one microsecond of one core for a record of a hundred bytes.
"""

import atexit
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from core_broker.client.records import Header
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.range_reader import RangeReader, RecordColumns
from streams.spark.topics.ranges import OffsetRange

ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 16 << 20
TIMEOUT_MS: Final = 120_000
HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)


class RawBatch(NamedTuple):
    """Records of one partition, by columns of the same length."""

    keys: pa.Array
    values: pa.Array
    offsets: pa.Array
    timestamps_ms: pa.Array
    timestamp_types: pa.Array
    headers: pa.Array | None
    """None when no record has any; null where a record has none."""

    def __len__(self) -> int:
        return len(self.offsets)


def fetched(
    cluster: Cluster,
    wanted: OffsetRange,
    *,
    rows_max: int = ROWS_MAX,
    bytes_max: int = BYTES_MAX,
    timeout_ms: int = TIMEOUT_MS,
) -> Iterator[RawBatch]:
    """The records of a range, about as many at once as is allowed; raises ClientErrors, as RangeReader.read does."""
    place = (wanted.topic, wanted.partition)
    reader = _kept.taken((*cluster.key, *place)) or RangeReader(cluster.settings(), isolation_level=cluster.isolation)
    try:
        yield from map(
            _arrow,
            reader.read(place, wanted.start, wanted.end, rows_max=rows_max, bytes_max=bytes_max, timeout_ms=timeout_ms),
        )
    except BaseException:
        reader.close()  # It failed, or was given up in the middle: what it fetched ahead is of no use to anybody.
        raise
    _kept.give_back((*cluster.key, *place), reader)


def close_kept() -> None:
    """Close the consumers that are kept."""
    _kept.close()


def _arrow(columns: RecordColumns) -> RawBatch:
    headers = columns.headers
    return RawBatch(
        pa.array(columns.keys, pa.binary()),
        pa.array(columns.values, pa.binary()),
        pa.array(columns.offsets, pa.int64()),
        pa.array(columns.timestamps_ms, pa.int64()),
        pa.array(columns.timestamp_types, pa.int32()),
        None if headers is None else pa.array([_pairs(row) if row else None for row in headers], HEADERS),
    )


def _pairs(row: Sequence[Header]) -> list[dict[str, str | bytes | None]]:
    return [{"key": key, "value": value} for key, value in row]


@dataclass
class _Kept:
    """Consumers that nobody uses now, the last used at the end: a few, and each for a while."""

    count_max: int = 8
    idle_seconds: float = 30.0
    _readers: dict[tuple[object, ...], tuple[RangeReader, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sweeper: threading.Thread | None = None
    _forked: list[object] = field(default_factory=list)

    def taken(self, key: tuple[object, ...]) -> RangeReader | None:
        """The consumer for this, for the caller alone."""
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
        """Close all that are kept."""
        with self._lock:
            readers = [reader for reader, _ in self._readers.values()]
            self._readers.clear()
        for reader in readers:
            reader.close()

    def forget(self) -> None:
        """In a child of a fork the threads of its consumers do not run: they are left alone, not even freed."""
        self._forked.append(self._readers)
        self._readers, self._lock, self._sweeper = {}, threading.Lock(), None

    def _sweep(self) -> None:
        """Close those that were idle for too long, until none is left."""
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


_kept = _Kept()
os.register_at_fork(after_in_child=_kept.forget)
atexit.register(_kept.close)
