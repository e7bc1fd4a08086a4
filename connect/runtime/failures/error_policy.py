"""Decides whether to retry, to skip a record or to stop when it fails; the pipelines carry the decision out.

`errors.tolerance=none` stops the task with the cause. `all` skips the record, which becomes a dead letter if there is a
topic for them. Before either, retriable errors are retried for as long as `errors.retry.timeout` allows.
"""

import logging
import math
import random
import time
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import TypeVar

import msgspec

from connect.api.backoff import Backoff
from connect.api.errors import ConnectError, RetriableError, Unavailable
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.traces import stack_trace
from connect.runtime.stopping import Stopping
from core_broker.service.clock import SystemClock

log = logging.getLogger(__name__)

T = TypeVar("T")
_BACKOFF = Backoff(0.3, math.inf)
_OUTAGE_DELAY_MAX_SECONDS = 5.0
_clock = SystemClock()


class Stage(StrEnum):
    """The stage at which a record failed."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a record failed for good."""

    stage: Stage
    class_name: str
    error: Exception

    def exceeds_tolerance(self) -> "ToleranceExceeded":
        """The error that stops the task."""
        exceeded = ToleranceExceeded("Tolerance exceeded in error handler")
        exceeded.__cause__ = self.error
        return exceeded


class RecordFailed(Exception):
    """A step failed for good: the remaining steps are skipped."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class ToleranceExceeded(ConnectError):
    """A record failed, and errors are not tolerated."""


class Decision(Enum):
    """What to do after a record failed for good; its dead letter is written in either case."""

    SKIP = "skip"
    STOP = "stop"


class Retry(msgspec.Struct, frozen=True):
    """Retry the step after a delay."""

    delay_seconds: float


class ErrorPolicy:
    """Retries, tolerance and logging; for the thread of one task."""

    def __init__(
        self,
        config: ConnectorConfig,
        *,
        task: str,
        counters: TaskCounters,
        stopping: Stopping,
        patience_seconds: float = math.inf,
        conceal: Callable[[str], str] = str,
    ) -> None:
        """`patience_seconds` limits retries that would otherwise go on for ever; `conceal` is for the log."""
        self._conceal = conceal
        self.tolerates = config.errors_tolerance == "all"
        self._verdict = Decision.SKIP if self.tolerates else Decision.STOP
        self._config = config
        self._task = task
        self._counters = counters
        self._stopping = stopping
        self._patience_seconds = patience_seconds

    def decide(self, error: Exception, *, attempts: int, elapsed_seconds: float) -> "Retry | Decision":
        """What to do about a step that failed after some attempts; RetriableError when the patience is exhausted."""
        grown = _BACKOFF.delay(attempts - 1)
        if isinstance(error, Unavailable):
            return self._retry_patiently(min(grown, _OUTAGE_DELAY_MAX_SECONDS), error, elapsed_seconds)
        timeout_ms = self._config.errors_retry_timeout
        left = math.inf if timeout_ms < 0 else timeout_ms / 1000 - elapsed_seconds
        if not isinstance(error, RetriableError) or left <= 0:
            return self._verdict
        longest = self._config.errors_retry_delay_max_ms / 1000
        delay = grown if grown <= longest else random.uniform(0, longest)
        if timeout_ms < 0:
            return self._retry_patiently(delay, error, elapsed_seconds)
        return Retry(min(delay, left))

    def _retry_patiently(self, delay_seconds: float, error: Exception, elapsed_seconds: float) -> "Retry":
        left = self._patience_seconds - elapsed_seconds
        if left <= 0:
            raise RetriableError(f"It still fails after {elapsed_seconds:.0f} s: {error}") from error
        return Retry(min(delay_seconds, left))

    def attempt(self, stage: Stage, class_name: str, step: Callable[[], T], *, failed: Exception | None = None) -> T:
        """The result of a step, with retries; `failed` is the error of an earlier attempt.

        Raises RecordFailed when it fails for good, Stopped when the task is asked to stop, and RetriableError when the
        patience is exhausted.
        """
        began, attempts = time.monotonic(), 1
        while True:
            if failed is None:
                try:
                    return step()
                except Exception as error:  # noqa: BLE001 - plugins may raise anything
                    failed = error
            self._counters.total_record_failures += 1
            decision = self.decide(failed, attempts=attempts, elapsed_seconds=time.monotonic() - began)
            if not isinstance(decision, Retry):
                self._counters.total_record_errors += 1
                raise RecordFailed(Failure(stage=stage, class_name=class_name, error=failed))
            self._counters.total_retries += 1
            self._stopping.wait_or_raise(decision.delay_seconds)
            failed, attempts = None, attempts + 1

    def give_up(self, failure: Failure, record: object) -> "Decision":
        """A record failed for good: log and count it, and return the decision.

        The log shows `str(record)`. The caller writes the dead letter in either case, and raises
        `failure.exceeds_tolerance()` on STOP.
        """
        self._counters.last_error_timestamp = _clock.now_ms()
        if self._config.errors_log_enable:
            extra = {"task": self._task, "stage": failure.stage.value, "class": failure.class_name}
            if self._config.errors_log_include_messages:
                extra["record"] = str(record)
            self._counters.total_errors_logged += 1
            extra["trace"] = self._conceal(stack_trace(failure.error))
            log.error("Error encountered in task", extra=extra)
        if self._verdict is Decision.SKIP:
            self._counters.total_records_skipped += 1
        return self._verdict
