"""Turns records of topics into records for a sink: converters, then transforms; failures are handled one by one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from connect.api.data import Schema, Value
from connect.api.record import Header, SinkRecord
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.error_policy import Decision, ErrorPolicy, Failure, RecordFailed, Stage
from connect.runtime.failures.failed_record import DeadLetterWriter, FailedRecord
from connect.runtime.failures.redrive_topic import first_place, first_topic
from connect.runtime.tasks.conversion import Conversion, class_name_of
from core_broker.client.records import IncomingRecord

T = TypeVar("T")
_KEY, _VALUE, _HEADERS, _FIRST_TRANSFORM = range(4)
SINK_TASK: Final = "org.apache.kafka.connect.sink.SinkTask"


class SinkPipeline:
    """Converts and transforms the records for a sink; for the thread of one task."""

    def __init__(
        self,
        conversion: Conversion,
        policy: ErrorPolicy,
        *,
        counters: TaskCounters,
        dead_letters: DeadLetterWriter | None,
        redriven: str = "",
    ) -> None:
        """`redriven` is the topic with redriven dead letters: its records belong to other topics."""
        self._redriven = redriven
        self._conversion = conversion
        self._policy = policy
        self._counters = counters
        self._dead_letters = dead_letters
        self._steps = list(enumerate((step.apply for step in conversion.chain.steps), _FIRST_TRANSFORM))

    def records(self, batch: Sequence[IncomingRecord]) -> list[SinkRecord]:
        """The records of a batch to put, without those that transforms drop, or that failed and are tolerated."""
        to_key, to_value, steps = self._conversion.key.to_connect, self._conversion.value.to_connect, self._steps
        redriven = self._redriven
        records: list[SinkRecord] = []
        append = records.append
        for raw in batch:
            at = _KEY
            record: SinkRecord | None
            topic = raw.topic if raw.topic != redriven else first_topic(raw)
            try:
                key_schema, key = to_key(topic, raw.key, raw.headers)
                at = _VALUE
                value_schema, value = to_value(topic, raw.value, raw.headers)
                at = _HEADERS
                headers = self._headers(raw) if raw.headers else ()
                record = _sink_record(raw, topic, key_schema, key, value_schema, value, headers)
                for at, apply in steps:  # noqa: B007 - shows which step failed
                    record = apply(record)
                    if record is None:
                        break
            except Exception as error:  # noqa: BLE001 - plugins may raise anything
                record = self._convert_step_by_step(raw, at, error)
            if record is not None:
                append(record)
        return records

    def _convert_step_by_step(self, raw: IncomingRecord, failed_at: int, error: Exception) -> SinkRecord | None:
        """Repeat the conversion step by step under the error policy; the failed step counts as one attempt."""

        def attempt(at: int, stage: Stage, plugin: object, step: Callable[[], T]) -> T:
            failed = error if at == failed_at else None
            name = plugin if isinstance(plugin, str) else class_name_of(plugin)
            return self._policy.attempt(stage, name, step, failed=failed)

        given = self._conversion
        try:
            topic = raw.topic if raw.topic != self._redriven else first_topic(raw)
            to_key = partial(given.key.to_connect, topic, raw.key, raw.headers)
            key = attempt(_KEY, Stage.KEY_CONVERTER, given.key, to_key)
            to_value = partial(given.value.to_connect, topic, raw.value, raw.headers)
            value = attempt(_VALUE, Stage.VALUE_CONVERTER, given.value, to_value)
            headers = attempt(_HEADERS, Stage.HEADER_CONVERTER, given.headers, partial(self._headers, raw))
            record = _sink_record(raw, topic, *key, *value, headers)
            for at, step in enumerate(given.chain.steps, _FIRST_TRANSFORM):
                changed = attempt(at, Stage.TRANSFORMATION, step.class_name, partial(step.apply, record))
                if changed is None:
                    return None
                record = changed
        except RecordFailed as failed:
            self._give_up(raw, failed.failure)
            return None
        return record

    def reject(self, raw: IncomingRecord, failure: Failure) -> None:
        """A record failed elsewhere: write its dead letter; ToleranceExceeded unless errors are tolerated."""
        self._counters.total_record_failures += 1
        self._counters.total_record_errors += 1
        self._give_up(raw, failure)

    def _give_up(self, raw: IncomingRecord, failure: Failure) -> None:
        topic, partition, offset = first_place(raw)
        record = FailedRecord(
            topic=topic,
            partition=partition,
            offset=offset,
            key=raw.key,
            value=raw.value,
            headers=raw.headers,
            timestamp_ms=raw.timestamp_ms if raw.timestamp_type else None,
        )
        decision = self._policy.give_up(failure, record)
        if self._dead_letters is not None:
            self._dead_letters.write(record, failure, self._counters)
        if decision is Decision.STOP:
            raise failure.exceeds_tolerance()

    def to_raw(self, record: SinkRecord) -> IncomingRecord:
        """Convert a record back to bytes, when the original record is no longer at hand."""
        given = self._conversion
        headers = [
            (header.key, given.headers.from_connect_header(record.topic, header.key, header.schema, header.value))
            for header in record.headers
        ]
        return IncomingRecord(
            topic=record.original_topic,
            partition=record.original_partition,
            offset=record.original_offset,
            timestamp_ms=record.timestamp_ms if record.timestamp_ms is not None else -1,
            timestamp_type=record.timestamp_type,
            key=given.key.from_connect(record.topic, record.key_schema, record.key),
            value=given.value.from_connect(record.topic, record.value_schema, record.value),
            headers=headers,
        )

    def _headers(self, raw: IncomingRecord) -> tuple[Header, ...]:
        convert = self._conversion.headers.to_connect_header
        headers = []
        for name, data in raw.headers:
            schema, value = convert(raw.topic, name, data)
            headers.append(Header(name, value, schema))
        return tuple(headers)


def _sink_record(
    raw: IncomingRecord,
    topic: str,
    key_schema: Schema | None,
    key: Value,
    value_schema: Schema | None,
    value: Value,
    headers: tuple[Header, ...],
) -> SinkRecord:
    return SinkRecord(
        topic=topic,
        partition=raw.partition,
        key_schema=key_schema,
        key=key,
        value_schema=value_schema,
        value=value,
        timestamp_ms=raw.timestamp_ms if raw.timestamp_type else None,
        headers=headers,
        offset=raw.offset,
        timestamp_type=raw.timestamp_type,
        original_topic=raw.topic,
        original_partition=raw.partition,
        original_offset=raw.offset,
    )
