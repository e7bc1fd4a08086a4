"""A thread that follows the topic of one table into a file."""

import logging
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, NotFound
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings
from core_broker.service.clock import Clock
from schema_registry.client.errors import ClientError as RegistryError
from streams.errors import StreamsError
from streams.formats.registry import Schemas
from streams.formats.values import RecordCodec
from streams.materialized.changes import RecordReader
from streams.materialized.errors import CopyDamaged
from streams.materialized.progress import Progress
from streams.materialized.row_format import RowFormat
from streams.materialized.store import Store, WindowColumn
from streams.materialized.topic_facts import TopicFacts, topic_facts
from streams.model.sources import Source

log = logging.getLogger(__name__)

_LAYOUT: Final = 1
"""Increased whenever rows are written in another way: files of other layouts are made anew."""
_BATCH_RECORDS: Final = 5000
_BATCH_BYTES: Final = 4 << 20
_POLL_MS: Final = 200
_LOOK_SECONDS: Final = 15.0
"""How often the topic is looked at: whether it is still the same one, and has more partitions."""
_PAUSE_SECONDS: Final = 0.5
_PAUSE_SECONDS_MAX: Final = 10.0
_STOP_SECONDS: Final = 30.0
_EXPECTED: Final = (ClientError, RegistryError, StreamsError, sqlite3.Error, OSError)
_COMPLETE: Final = "complete"
_SEEN: Final = "seen_ms"
_STREAM_TIME: Final = "stream_time_ms"
_TOPIC_ID: Final = "topic_id"


class _Stopped(Exception):
    """Ends waiting for a cluster that does not answer."""


class Follower:
    """The copy of one table, kept up to date by a thread of its own."""

    def __init__(self, source: Source, path: Path, *, cluster: ClientSettings, schemas: Schemas, clock: Clock) -> None:
        self.source = source
        self.form = RowFormat(source)
        self.progress = Progress(source.name)
        self._path = path
        self._cluster = cluster
        self._schemas = schemas
        self._clock = clock
        self._definition = _definition(source)
        self._store: Store | None = None
        self._stream_time_ms = 0
        self._thread = threading.Thread(target=self._run, name=f"copy of {source.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def is_of(self, source: Source) -> bool:
        """Whether a copy of this table would be the same."""
        return _definition(source) == self._definition and source.window == self.source.window

    def stop(self) -> None:
        """End, and close the file."""
        self.progress.stop()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        try:
            while not self.progress.is_stopped:
                try:
                    self._follow()
                except _Stopped:
                    break
                except Exception as error:  # noqa: BLE001 - whatever it was, the table has to be followed again
                    if self.progress.problem is None:
                        pause = _PAUSE_SECONDS
                    self._report(error)
                    self.progress.pause(pause)
                    pause = min(2 * pause, _PAUSE_SECONDS_MAX)
        finally:
            self._close()

    def _report(self, error: Exception) -> None:
        is_missing = isinstance(error, NotFound)
        problem = f"there is no topic {self.source.topic}" if is_missing else str(error) or type(error).__name__
        if problem != self.progress.problem:
            unexpected = None if isinstance(error, _EXPECTED) else error
            extra = {"table": self.source.name, "reason": problem}
            log.warning("a table cannot be followed", exc_info=unexpected, extra=extra)
        if isinstance(error, CopyDamaged):
            self._delete()
        self.progress.failed(problem, is_complete=not is_missing)

    def _follow(self) -> None:
        """Follow the topic until it has changed, or the file is damaged."""
        store = self._opened()
        admin = Admin(self._cluster, watch=self._end_when_stopped)
        topic = topic_facts(admin, self.source.topic)
        self._check(store, topic)
        records = RecordReader(RecordCodec(self.source, self._schemas), self.source, self.form)
        reader = Reader(self._cluster, isolation_level="read_committed")
        try:
            goals = self._start(reader, store, topic)
            retention_ms = self._retention_ms(topic)
            next_look = self._clock.monotonic() + _LOOK_SECONDS
            while not self.progress.is_stopped and not self.progress.is_damaged:
                batch = reader.read(_BATCH_RECORDS, timeout_ms=_POLL_MS, bytes_max=_BATCH_BYTES)
                positions = {partition: offset for (_, partition), offset in reader.positions.items()}
                if batch:
                    self._write(store, records, batch, positions, retention_ms)
                self._publish(store, reader, positions, goals)
                if self._clock.monotonic() >= next_look:
                    if topic_facts(admin, self.source.topic) != topic:
                        return
                    store.write((), (), positions=positions, facts={_SEEN: self._clock.now_ms()})
                    next_look = self._clock.monotonic() + _LOOK_SECONDS
        except OffsetOutOfRange:
            self._clear(store)  # Deletions may be among the records that are gone.
            raise
        finally:
            reader.close()

    def _end_when_stopped(self) -> None:
        if self.progress.is_stopped:
            raise _Stopped

    def _check(self, store: Store, topic: TopicFacts) -> None:
        """Begin anew if the copy is one of another topic, or may have missed deletions."""
        topic_id, seen_ms = store.fact(_TOPIC_ID), store.fact(_SEEN)
        is_old = isinstance(seen_ms, int) and self._clock.now_ms() - seen_ms > topic.tombstones_ms // 2
        if store.positions and (topic_id != topic.topic_id or is_old):
            self._clear(store)
        store.write((), (), positions={}, facts={_TOPIC_ID: topic.topic_id, _SEEN: self._clock.now_ms()})

    def _start(self, reader: Reader, store: Store, topic: TopicFacts) -> dict[int, int]:
        """Start to read; returns the ends of the partitions: the copy is complete when they are reached."""
        name = self.source.topic
        bounds = {partition: reader.bounds(name, partition) for partition in topic.partitions}
        begin = {partition: store.positions.get(partition, low) for partition, (low, _) in bounds.items()}
        for partition, (low, high) in bounds.items():
            if not low <= begin[partition] <= high:
                raise OffsetOutOfRange((name, partition), begin[partition])
        self.progress.restarted(begin)
        reader.start({(name, partition): offset for partition, offset in begin.items()})
        return {partition: high for partition, (_, high) in bounds.items()}

    def _write(
        self,
        store: Store,
        records: RecordReader,
        batch: Sequence[IncomingRecord],
        positions: Mapping[int, int],
        retention_ms: int | None,
    ) -> None:
        changes = records.changes_of(batch)
        self.progress.skipped += changes.skipped
        self._stream_time_ms = max(self._stream_time_ms, *(record.timestamp_ms for record in batch))
        store.write(
            changes.rows,
            changes.deleted,
            positions=positions,
            facts={_SEEN: self._clock.now_ms(), _STREAM_TIME: self._stream_time_ms},
            expired_until_ms=None if retention_ms is None else self._stream_time_ms - retention_ms,
        )

    def _publish(self, store: Store, reader: Reader, positions: Mapping[int, int], goals: Mapping[int, int]) -> None:
        is_ready = all(positions[partition] >= goal for partition, goal in goals.items())
        if is_ready and not self.progress.is_complete:
            store.write((), (), positions=positions, facts={_COMPLETE: 1})
        ends = {place[1]: reader.known_bounds(place)[1] for place in reader.positions}
        lag = sum(max(0, ends[partition] - position) for partition, position in positions.items())
        self.progress.advanced(positions, lag=lag, is_ready=is_ready)

    def _retention_ms(self, topic: TopicFacts) -> int | None:
        """How long windows are kept: as their table says, or else as long as the topic keeps its records."""
        if self.source.window is None:
            return None
        return topic.retention_ms if self.source.window.retention_ms is None else self.source.window.retention_ms

    # --- the file ---

    def _opened(self) -> Store:
        if self.progress.is_damaged:
            self._delete()
        if self._store is None:
            self._store = Store(self._path, self._definition, expires_by=self._expires_by)
            stream_time_ms = self._store.fact(_STREAM_TIME)
            self._stream_time_ms = stream_time_ms if isinstance(stream_time_ms, int) else 0
            self.progress.opened(self._store, is_complete=self._store.fact(_COMPLETE) is not None)
        return self._store

    def _clear(self, store: Store) -> None:
        log.info("the copy of a table is built anew", extra={"table": self.source.name})
        store.clear(self._definition)
        self._stream_time_ms = 0
        self.progress.opened(store, is_complete=False)

    def _delete(self) -> None:
        log.warning("the file of a table is damaged and made anew", extra={"table": self.source.name})
        self._close()
        Store.delete(self._path)

    def _close(self) -> None:
        self.progress.closed()
        store, self._store = self._store, None
        if store is not None:
            store.close()

    @property
    def _expires_by(self) -> WindowColumn | None:
        if self.source.window is None:
            return None
        return "window_end" if self.source.window.kind == "SESSION" else "window_start"


def _definition(source: Source) -> str:
    """What rows depend on: a file with the rows of another definition is of no use."""
    parts = (
        _LAYOUT,
        source.topic,
        source.key,
        source.value,
        source.key_format,
        source.value_format,
        None if source.window is None else (source.window.kind, source.window.size_ms),
        source.timestamp,
    )
    return msgspec.json.encode(parts).decode()
