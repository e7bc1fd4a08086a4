"""Runs a sink's task: read, convert, transform, put; commit only what the sink has made durable."""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.backoff import Backoff
from connect.api.errors import ConfigError, ConnectError
from connect.api.record import SinkRecord
from connect.api.sink import SinkTask, TopicPartition
from connect.runtime.configuration.client_overrides import consumer_properties, max_poll_records
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.failures.error_policy import Failure, Stage
from connect.runtime.failures.redrive_topic import redrive_topic
from connect.runtime.models import FENCED
from connect.runtime.patience import patiently
from connect.runtime.stopping import Stopped
from connect.runtime.tasks.engine_facts import topic_choice
from connect.runtime.tasks.setup import OUTAGES, TaskSetup, Work
from connect.runtime.tasks.sink_context import TaskSinkContext
from connect.runtime.tasks.sink_pipeline import SINK_TASK, SinkPipeline
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, Fenced
from core_broker.client.group_consumer import Commit, GroupConsumer
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import Configuration

log = logging.getLogger(__name__)

_TURN_MS: Final = 200
_REFRESH_SECONDS: Final = 5.0
"""How often to look for new topics."""
_RETRIES: Final = Backoff(0.2, 5.0)
_DEFAULTS: Final[Configuration] = {
    "auto.offset.reset": "earliest",
    "allow.auto.create.topics": True,
    "session.timeout.ms": 10_000,
    "topic.metadata.refresh.interval.ms": 30_000,
    "fetch.queue.backoff.ms": 2,
    "queued.max.messages.kbytes": 32_768,
    "fetch.error.backoff.ms": 100,
    "reconnect.backoff.max.ms": 1_000,
}


class SinkWork(Work):
    """The work of one sink task."""

    def __init__(self, setup: TaskSetup) -> None:
        assert isinstance(setup.config, SinkConnectorConfig)
        self._setup = setup
        self._config = setup.config
        self._counters = setup.counters
        self._stopping = setup.stopping
        properties = consumer_properties(setup.services.settings, setup.config.given)
        self._settings = setup.kafka(properties, role="consumer")
        self._group = self._settings.properties.get("group.id", f"connect-{setup.plan.id.connector}")
        self._instance = f"connector-consumer-{setup.plan.id}"
        self._pipeline = SinkPipeline(
            setup.conversion,
            setup.policy,
            counters=setup.counters,
            dead_letters=setup.dead_letters,
            redriven=redrive_topic(setup.plan.id.connector),
        )
        self._context = TaskSinkContext(
            setup.plan.id, stopping=setup.stopping, consumer=lambda: self._client, report=self.report
        )
        self._choice = topic_choice(self._config, setup.plan.id.connector)
        self._task: SinkTask = setup.connector.task_class(setup.task_config, self._context)  # type: ignore[attr-defined]
        self._batch_max = max_poll_records(setup.services.settings, setup.config.given)
        self._interval = setup.services.settings.offset_flush_interval_ms / 1000
        self._next_commit = time.monotonic() + self._interval
        self._next_look = 0.0
        self._topics: list[str] = []
        self._has_subscribed = False
        self._positions: dict[TopicPartition, int] = {}
        """The next offset of each partition, of records that were put."""
        self._committed: dict[TopicPartition, int] = {}
        self._first: dict[TopicPartition, int] = {}
        """Where reading started, for partitions without a commit."""
        self._batch: Sequence[IncomingRecord] = ()
        """The records read last, without those of partitions that were revoked since."""
        self._held: set[TopicPartition] = set()
        """The batch's partitions that were not revoked since; one that came back starts at its commit."""
        self._callback_error: Exception | None = None
        self._is_careful = False
        """Set when a flush failed: batches are then put and flushed one by one, to find the cause."""
        self._client = GroupConsumer(
            self._settings,
            group_id=self._group,
            defaults={**_DEFAULTS, "group.instance.id": self._instance},
            properties={},
        )

    # --- start and stop ---

    @override
    def start(self) -> None:
        if self._setup.dead_letters is not None:
            self._setup.dead_letters.ensure_topic()
        self._task.start()
        self._subscribe()

    @override
    def turn(self) -> None:
        self._refresh_topics()
        if self._context.wants_commit or time.monotonic() >= self._next_commit:
            self._commit()
        records = self._read(_TURN_MS)
        self._counters.sink_record_read += len(records)
        self._batch = records
        for record in records:
            self._first.setdefault((record.topic, record.partition), record.offset)
        self._held = {(record.topic, record.partition) for record in records}
        self._deliver(self._pipeline.records(records))
        # Records of partitions that were revoked meanwhile are no longer in the batch: their new owner reads them.
        for record in self._batch:
            self._positions[record.topic, record.partition] = record.offset + 1
        self._apply_rewinds()
        if self._is_careful and records:
            self._commit()

    @override
    def rest(self) -> None:
        self._client.pause()
        self._stay_in_group(_TURN_MS)
        if time.monotonic() >= self._next_commit:
            self._commit()

    @override
    def resume(self) -> None:
        self._client.resume()

    @override
    def finish(self) -> None:
        self._commit(is_last=True)

    @override
    def close(self) -> None:
        try:
            if self._positions and not self._stopping.is_cancelled:
                self._close_partitions(tuple(self._positions))
            self._client.close()
            if self._has_subscribed and not self._stopping.is_cancelled:
                # A group waits for static members that left: remove this one, which does not come back.
                try:
                    Admin(self._settings).remove_member(self._group, self._instance)
                except ClientError as error:
                    log.info("the member could not be removed from its group", extra={"reason": str(error)})
        finally:
            self._task.stop()
            self._setup.close()

    # --- reading ---

    def _read(self, timeout_ms: int) -> list[IncomingRecord]:
        try:
            records = self._client.read(self._batch_max, timeout_ms=timeout_ms)
        except Fenced as error:
            self._has_subscribed = False  # the member with this instance id is another one now
            raise ConnectError(f"{FENCED}: {error}") from error
        except ClientError as error:
            raise ConnectError(f"Reading failed: {error}") from error
        if self._callback_error is not None:
            failure, self._callback_error = self._callback_error, None
            raise failure
        return records

    def _stay_in_group(self, timeout_ms: int) -> None:
        """Stay in the group without reading; records that arrive anyway are read again later."""
        first: dict[TopicPartition, int] = {}
        for record in self._read(timeout_ms):
            first.setdefault((record.topic, record.partition), record.offset)
        if first:
            self._client.seek(first)

    def _subscribe(self) -> None:
        self._has_subscribed = True
        self._topics = patiently(self._wanted_topics, self._stopping, what="listing topics")
        self._client.subscribe(
            # A member of a group must subscribe to something: a topic that does not exist.
            self._topics or [f"connect-{self._setup.plan.id.connector}-has-no-topics-yet"],
            starts=self._on_assigned,
            revoked=self._on_revoked,
        )

    def _wanted_topics(self) -> list[str]:
        # The topic with redriven dead letters is read if it exists.
        needs_all = self._choice.pattern is not None or self._setup.dead_letters is not None
        return self._choice.chosen(self._client.topics() if needs_all else ())

    def _refresh_topics(self) -> None:
        """New topics may match the regular expression at any time."""
        if self._choice.pattern is None or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _REFRESH_SECONDS
        try:
            if self._wanted_topics() != self._topics:
                self._subscribe()
        except ClientError as error:
            log.warning("topics could not be listed", extra={"reason": str(error)})

    # These are called during a read; the library swallows their errors, so they are kept for the read to raise.

    def _on_assigned(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        self._context.take_rewinds()
        try:
            self._task.open(places)
        except Exception as error:  # noqa: BLE001 - raised by the read
            self._callback_error = error
        self._counters.partition_count = len(places)
        starts = {place: offset for place, offset in self._context.take_rewinds().items() if place in places}
        self._positions = dict(starts)
        return starts

    def _on_revoked(self, places: Sequence[TopicPartition]) -> None:
        try:
            if not self._stopping.is_cancelled:
                self._commit(is_last=True)
        except Exception as error:  # noqa: BLE001 - raised by the read
            self._callback_error = error
        self._close_partitions(places)
        self._held.difference_update(places)
        self._batch = [raw for raw in self._batch if (raw.topic, raw.partition) not in places]

    def _close_partitions(self, places: Collection[TopicPartition]) -> None:
        try:
            self._task.close(places)
        except Exception as error:  # noqa: BLE001 - raised by the read
            self._callback_error = error
        for place in places:
            self._positions.pop(place, None)
            self._committed.pop(place, None)
            self._first.pop(place, None)
        self._counters.partition_count = 0

    # --- putting ---

    def _deliver(self, records: list[SinkRecord]) -> None:
        self._setup.track_topics({record.original_topic for record in records})
        attempts = 0
        while True:
            self._context.retry_after_ms = None
            try:
                self._put(records)
                break
            except Stopped:
                raise
            except OUTAGES as error:
                attempts += 1
                records = self._after_outage(records, error, attempts)
            except Exception as error:  # noqa: BLE001 - connectors may raise anything
                self._put_refused(records, error)
                break
        if attempts:
            self._client.resume()
        self._counters.sink_record_send += len(records)

    def _put(self, records: Sequence[SinkRecord]) -> None:
        self._stopping.check()
        began = time.monotonic()
        self._task.put(records)
        if self._is_careful:
            self._task.flush(self._offsets_after(records))
        took = (time.monotonic() - began) * 1000
        self._counters.put_batches += 1
        self._counters.put_batch_ms_sum += took
        self._counters.put_batch_ms_max = max(self._counters.put_batch_ms_max, took)

    def _offsets_after(self, records: Sequence[SinkRecord]) -> dict[TopicPartition, int]:
        """The next offsets, should these records be the last that were put."""
        return {**self._positions, **{record.place: record.original_offset + 1 for record in records}}

    def _after_outage(self, records: list[SinkRecord], error: Exception, attempts: int) -> list[SinkRecord]:
        """Wait as a member of the group; returns the records whose partitions are still assigned."""
        asked_ms = self._context.retry_after_ms
        delay = asked_ms / 1000 if asked_ms else _RETRIES.delay(attempts - 1)
        if attempts == 1:
            reason = self._setup.conceal(str(error))
            extra = {"task": str(self._setup.plan.id), "error": reason, "records": len(records)}
            log.warning("the sink cannot write now, retrying until it can", extra=extra)
        self._client.pause()
        deadline = time.monotonic() + delay
        while (left := deadline - time.monotonic()) > 0:
            if self._stopping.is_asked:
                raise Stopped
            self._stay_in_group(min(int(left * 1000) + 1, _TURN_MS))
        return self._still_held(records)

    def _still_held(self, records: Sequence[SinkRecord]) -> list[SinkRecord]:
        """The records of the batch whose partitions have been assigned all the time."""
        return [record for record in records if record.place in self._held]

    def _put_refused(self, records: list[SinkRecord], error: Exception) -> None:
        """The sink rejects a batch, and not because of an outage: find the bad records, if that is allowed."""
        is_about_records = self._setup.policy.tolerates and self._config.errors_put_bisect_enable
        if not is_about_records or isinstance(error, ConfigError):
            raise ConnectError("Exiting WorkerSinkTask due to unrecoverable exception.") from error

        for record, refusal in self._isolate(records, error):
            if self._still_held([record]):
                self.report(record, refusal)
        self._client.resume()

    def _isolate(self, records: Sequence[SinkRecord], error: Exception) -> Iterator[tuple[SinkRecord, Exception]]:
        """Put the good records of a rejected batch, in order; yields each bad record with the reason."""
        if len(records) <= 1:
            yield from ((record, error) for record in records)
            return
        middle = len(records) // 2
        for half in (records[:middle], records[middle:]):
            try:
                self._put_durably(half)
            except Stopped:
                raise
            except Exception as refusal:  # noqa: BLE001 - connectors may raise anything
                yield from self._isolate(half, refusal)

    def _put_durably(self, records: Sequence[SinkRecord]) -> None:
        attempts = 0
        while held := self._still_held(records):
            try:
                self._task.put(held)
                self._task.flush(self._offsets_after(held))
                return
            except OUTAGES as outage:
                attempts += 1
                self._after_outage(held, outage, attempts)

    def report(self, record: SinkRecord, error: Exception) -> None:
        """One record is bad: write a dead letter, or fail the task."""
        place = record.original_offset, record.original_partition, record.original_topic
        found = next((raw for raw in self._batch if (raw.offset, raw.partition, raw.topic) == place), None)
        raw = found or self._pipeline.to_raw(record)
        self._pipeline.reject(raw, Failure(stage=Stage.TASK_PUT, class_name=SINK_TASK, error=error))

    # --- committing ---

    def _commit(self, *, is_last: bool = False) -> None:
        self._context.wants_commit = False
        self._next_commit = time.monotonic() + self._interval
        lag = self._client.lag(self._positions)
        self._counters.sink_record_lag_max = -1 if lag is None else lag
        if self._setup.dead_letters is not None:
            self._setup.dead_letters.settle(self._counters)
        if self._stopping.is_cancelled or not self._positions:
            return
        try:
            durable = self._task.pre_commit(dict(self._positions))
        except Exception as error:  # noqa: BLE001 - connectors may raise anything
            self._rewind_after(error, is_last=is_last)
            return
        self._is_careful = False
        self._apply_rewinds()
        self._write_commit(self._new_offsets(durable))

    def _new_offsets(self, durable: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offsets from a sink that are plausible, and not committed yet."""
        accepted = {}
        for place, offset in durable.items():
            position = self._positions.get(place)
            if position is None or offset > position:
                extra = {"topic": place[0], "partition": place[1], "offset": offset, "position": position}
                log.warning("the sink reports an offset of records that it never got", extra=extra)
            elif offset != self._committed.get(place):
                accepted[place] = offset
        return accepted

    def _write_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        if not offsets or self._stopping.is_cancelled:
            return
        try:
            self._client.commit({place: Commit(offset) for place, offset in offsets.items()})
        except ClientError as error:
            self._counters.offset_commit_failures += 1
            log.warning("offsets were not committed: the next commit includes them", extra={"reason": str(error)})
            return
        self._committed.update(offsets)
        self._counters.offset_commit_completion += 1

    def _rewind_after(self, error: Exception, *, is_last: bool) -> None:
        """Records that were put may not be durable: read them again, unless the task ends."""
        self._counters.offset_commit_failures += 1
        extra = {"task": str(self._setup.plan.id), "error": self._setup.conceal(f"{type(error).__name__}: {error}")}
        log.warning("the sink could not make records durable: they are put again", extra=extra)
        if is_last:
            return
        self._is_careful = not isinstance(error, OUTAGES)
        known = patiently(lambda: self._client.committed(self._positions), self._stopping, what="reading commits")
        began = {**self._positions, **self._first}
        starts = {place: known[place].offset if place in known else began[place] for place in self._positions}
        self._client.seek(starts)
        self._positions = starts
        self._stopping.wait(_RETRIES.first_seconds)

    def _apply_rewinds(self) -> None:
        if self._context.rewinds:
            wanted = self._context.take_rewinds()
            held = {place: offset for place, offset in wanted.items() if place in self._client.assigned}
            self._client.seek(held)
            self._positions.update(held)
