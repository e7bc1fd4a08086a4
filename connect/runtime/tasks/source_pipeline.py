"""Turns a source's records into records for topics: transforms, then converters; failures are handled one by one."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

from connect.api.record import SourceRecord
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.dead_letter import DeadLetters
from connect.runtime.failures.error_policy import Decision, ErrorPolicy, Failure, RecordFailed, Stage
from connect.runtime.failures.source_letters import failed_source_record
from connect.runtime.tasks.conversion import Conversion, class_name_of
from core_broker.client.records import Header, OutgoingRecord

T = TypeVar("T")


class SourcePipeline:
    """Transforms and converts the records of a source; for the thread of one task."""

    def __init__(
        self,
        conversion: Conversion,
        policy: ErrorPolicy,
        *,
        counters: TaskCounters,
        dead_letters: DeadLetters | None,
    ) -> None:
        self._conversion = conversion
        self._policy = policy
        self._counters = counters
        self._dead_letters = dead_letters
        self._steps = list(enumerate(step.apply for step in conversion.chain.steps))
        self._headers_at = len(self._steps)

    def outgoing(self, records: Sequence[SourceRecord]) -> tuple[list[OutgoingRecord], list[SourceRecord]]:
        """The records to send, and the source's record of each, without those dropped, or failed and tolerated."""
        from_key, from_value = self._conversion.key.from_connect, self._conversion.value.from_connect
        steps, headers_at = self._steps, self._headers_at
        sent: list[OutgoingRecord] = []
        origins: list[SourceRecord] = []
        for origin in records:
            at = headers_at
            outgoing: OutgoingRecord | None = None
            try:
                record: Any = origin
                for at, apply in steps:  # noqa: B007 - shows which step failed
                    record = apply(record)
                    if record is None:
                        break
                else:
                    at = headers_at
                    headers = self._headers(record) if record.headers else ()
                    at += 1
                    key = from_key(record.topic, record.key_schema, record.key)
                    at += 1
                    value = from_value(record.topic, record.value_schema, record.value)
                    outgoing = _outgoing(record, headers, key, value)
            except Exception as error:  # noqa: BLE001 - plugins may raise anything
                outgoing = self._convert_step_by_step(origin, at, error)
            if outgoing is not None:
                sent.append(outgoing)
                origins.append(origin)
        return sent, origins

    def _convert_step_by_step(self, origin: SourceRecord, failed_at: int, error: Exception) -> OutgoingRecord | None:
        """Repeat the conversion step by step under the error policy; the failed step counts as one attempt."""
        given = self._conversion
        places = count()

        def attempt(stage: Stage, plugin: object, step: Callable[[], T]) -> T:
            failed = error if next(places) == failed_at else None
            name = plugin if isinstance(plugin, str) else class_name_of(plugin)
            return self._policy.attempt(stage, name, step, failed=failed)

        try:
            record = origin
            for step in given.chain.steps:
                changed = attempt(Stage.TRANSFORMATION, step.class_name, partial(step.apply, record))
                if changed is None:
                    return None
                record = changed
            headers = attempt(Stage.HEADER_CONVERTER, given.headers, partial(self._headers, record))
            to_key = partial(given.key.from_connect, record.topic, record.key_schema, record.key)
            key = attempt(Stage.KEY_CONVERTER, given.key, to_key)
            to_value = partial(given.value.from_connect, record.topic, record.value_schema, record.value)
            value = attempt(Stage.VALUE_CONVERTER, given.value, to_value)
        except RecordFailed as failed:
            self.reject(origin, failed.failure)
            return None
        return _outgoing(record, headers, key, value)

    def reject(self, origin: SourceRecord, failure: Failure) -> None:
        """A record failed for good: write its dead letter; ToleranceExceeded unless errors are tolerated."""
        decision = self._policy.give_up(failure, origin)
        if self._dead_letters is not None:
            self._dead_letters.write(failed_source_record(origin), failure, self._counters)
        if decision is Decision.STOP:
            raise failure.exceeds_tolerance()

    def _headers(self, record: SourceRecord) -> list[Header]:
        convert = self._conversion.headers.from_connect_header
        return [
            (header.key, convert(record.topic, header.key, header.schema, header.value)) for header in record.headers
        ]


def _outgoing(
    record: SourceRecord, headers: Sequence[Header], key: bytes | None, value: bytes | None
) -> OutgoingRecord:
    return OutgoingRecord(
        topic=record.topic,
        headers=headers,
        key=key,
        value=value,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
    )
