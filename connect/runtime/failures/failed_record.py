"""A failed record and its dead letter: the record as it was read, with the reason in headers."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from connect.api.errors import java_name_of
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.error_policy import Failure
from connect.runtime.failures.traces import stack_trace
from connect.runtime.models import TaskId
from core_broker.client.records import Header, OutgoingRecord

PREFIX: Final = "__connect.errors."
_STACK_TRACE_MAX: Final = 32_000


class FailedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it was read, and its position."""

    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp_ms: int | None

    def __str__(self) -> str:
        place = f"topic='{self.topic}', partition={self.partition}, offset={self.offset}"
        return f"{{{place}, timestamp={self.timestamp_ms}}}"


class DeadLetterWriter(Protocol):
    """Takes dead letters."""

    def write(self, record: FailedRecord, failure: Failure, counters: TaskCounters) -> None:
        """Write a dead letter, so that the record is not lost."""


class DeadLetterFormat:
    """Makes the dead letters of one task; sends nothing."""

    def __init__(self, config: ConnectorConfig, *, task: TaskId, conceal: Callable[[str], str] = str) -> None:
        """`conceal` removes secrets from a text."""
        self.topic = config.errors_deadletterqueue_topic_name.strip()
        self._has_context = config.errors_deadletterqueue_context_headers_enable
        self._task = task
        self._conceal = conceal

    def format(self, record: FailedRecord, failure: Failure) -> OutgoingRecord:
        """The dead letter of a record."""
        headers = list(record.headers)
        if self._has_context:
            headers += self._context(record, failure)
        return OutgoingRecord(
            topic=self.topic,
            key=record.key,
            value=record.value,
            headers=headers,
            timestamp_ms=record.timestamp_ms,
        )

    def _context(self, record: FailedRecord, failure: Failure) -> list[Header]:
        error = failure.error
        message = self._conceal(str(error))
        context: dict[str, str | None] = {
            "topic": record.topic,
            "partition": None if record.partition is None else str(record.partition),
            "offset": None if record.offset is None else str(record.offset),
            "connector.name": self._task.connector,
            "task.id": str(self._task.task),
            "stage": failure.stage.value,
            "class.name": failure.class_name,
            "exception.class.name": java_name_of(error),
            "exception.message": message or None,
            "exception.stacktrace": self._conceal(stack_trace(error))[:_STACK_TRACE_MAX],
        }
        return [
            (PREFIX + key, None if text is None else text.encode(errors="replace")) for key, text in context.items()
        ]
