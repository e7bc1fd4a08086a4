"""What a dead letter looks like: the record as it was read, with the reason in its headers."""

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


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it was read, and where."""

    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp_ms: int | None


class Burial(Protocol):
    """Where dead letters go."""

    def bury(self, letter: Letter, failure: Failure, counters: TaskCounters) -> None:
        """See to it that a letter is not lost."""


class LetterForm:
    """Writes the letters of one task; sends nothing."""

    def __init__(self, config: ConnectorConfig, *, task: TaskId, conceal: Callable[[str], str] = str) -> None:
        """`conceal` takes out of a text what nobody may read."""
        self.topic = config.errors_deadletterqueue_topic_name.strip()
        self._tells_why = config.errors_deadletterqueue_context_headers_enable
        self._task = task
        self._conceal = conceal

    def outgoing(self, letter: Letter, failure: Failure) -> OutgoingRecord:
        """A letter as it is sent."""
        headers = list(letter.headers)
        if self._tells_why:
            headers += self._context(letter, failure)
        return OutgoingRecord(
            topic=self.topic,
            key=letter.key,
            value=letter.value,
            headers=headers,
            timestamp_ms=letter.timestamp_ms,
        )

    def _context(self, letter: Letter, failure: Failure) -> list[Header]:
        error = failure.error
        message = self._conceal(str(error))
        told: dict[str, str | None] = {
            "topic": letter.topic,
            "partition": None if letter.partition is None else str(letter.partition),
            "offset": None if letter.offset is None else str(letter.offset),
            "connector.name": self._task.connector,
            "task.id": str(self._task.task),
            "stage": failure.stage.value,
            "class.name": failure.class_name,
            "exception.class.name": java_name_of(error),
            "exception.message": message or None,
            "exception.stacktrace": self._conceal(stack_trace(error))[:_STACK_TRACE_MAX],
        }
        return [(PREFIX + key, None if text is None else text.encode(errors="replace")) for key, text in told.items()]
