"""What happens when a record fails: the one place that decides between trying again, skipping and stopping.

`errors.tolerance=none` stops the task with the cause. `all` skips the record, which becomes a dead letter where a topic
for them is named. Before either, what may pass is tried again for as long as `errors.retry.timeout` allows.
"""

import logging
import math
import random
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

import msgspec

from connect.api.errors import ConnectError, RetriableError, Unavailable
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.stopping import Stopping
from core_broker.service.clock import SystemClock

log = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_DELAY_MS = 300
_OUTAGE_DELAY_MAX_MS = 5_000
_clock = SystemClock()


class Stage(StrEnum):
    """What was being done."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a record was given up."""

    stage: Stage
    class_name: str
    error: Exception


class GaveUp(Exception):
    """A step failed for good; the record's other steps make no sense."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class ToleranceExceeded(ConnectError):
    """A record failed, and no failure is tolerated."""


class ErrorPolicy:
    """Retries, tolerance, and the log; for the thread of one task."""

    def __init__(
        self,
        config: ConnectorConfig,
        *,
        task: str,
        counters: TaskCounters,
        stopping: Stopping,
        patience_seconds: float = math.inf,
    ) -> None:
        """`patience_seconds` is how long to try again what else is tried without end."""
        self.tolerates = config.errors_tolerance == "all"
        self._config = config
        self._task = task
        self._counters = counters
        self._stopping = stopping
        self._patience_seconds = patience_seconds

    def attempt(self, stage: Stage, class_name: str, step: Callable[[], T], *, failed: Exception | None = None) -> T:
        """What a step gives, tried again while that may help; `failed` is the error of an attempt made before.

        Raises GaveUp when it fails for good, Stopped when the task shall end, and RetriableError when patience does.
        """
        began, attempts = time.monotonic(), 1
        while True:
            if failed is None:
                try:
                    return step()
                except Exception as error:  # noqa: BLE001 - converters and transforms are anybody's code
                    failed = error
            self._counters.total_record_failures += 1
            delay = self._delay_seconds(failed, attempts, time.monotonic() - began)
            if delay is None:
                self._counters.total_record_errors += 1
                raise GaveUp(Failure(stage=stage, class_name=class_name, error=failed))
            self._counters.total_retries += 1
            self._stopping.wait_or_raise(delay)
            failed, attempts = None, attempts + 1

    def _delay_seconds(self, error: Exception, attempts: int, elapsed_seconds: float) -> float | None:
        """How long to wait before the next attempt; None when there is none."""
        grown = _FIRST_DELAY_MS << min(attempts - 1, 32)
        if isinstance(error, Unavailable):
            return self._patient(min(grown, _OUTAGE_DELAY_MAX_MS) / 1000, error, elapsed_seconds)
        allowed_ms = self._config.errors_retry_timeout
        left_ms = float("inf") if allowed_ms < 0 else allowed_ms - elapsed_seconds * 1000
        if not isinstance(error, RetriableError) or left_ms <= 0:
            return None
        longest = self._config.errors_retry_delay_max_ms
        delay_ms = grown if grown <= longest else random.uniform(0, longest)
        if allowed_ms < 0:
            return self._patient(delay_ms / 1000, error, elapsed_seconds)
        return min(delay_ms, left_ms) / 1000

    def _patient(self, delay_seconds: float, error: Exception, elapsed_seconds: float) -> float:
        """The delay of what is tried without end, if patience has one yet."""
        left = self._patience_seconds - elapsed_seconds
        if left <= 0:
            raise RetriableError(f"It still fails after {elapsed_seconds:.0f} s: {error}") from error
        return min(delay_seconds, left)

    def settle(self, failure: Failure, *, told: Callable[[], str], bury: Callable[[Failure], None] | None) -> None:
        """A record was given up: log it, make it a dead letter, and raise ToleranceExceeded unless that is allowed.

        `told` says which record it was, for the log; `bury` makes it a dead letter.
        """
        self._counters.last_error_timestamp = _clock.now_ms()
        if self._config.errors_log_enable:
            self._log(failure, told)
        if bury is not None:
            bury(failure)
        if not self.tolerates:
            raise ToleranceExceeded("Tolerance exceeded in error handler") from failure.error
        self._counters.total_records_skipped += 1

    def _log(self, failure: Failure, told: Callable[[], str]) -> None:
        extra = {"task": self._task, "stage": failure.stage.value, "class": failure.class_name}
        if self._config.errors_log_include_messages:
            extra["record"] = told()
        self._counters.total_errors_logged += 1
        log.error("Error encountered in task", extra=extra, exc_info=failure.error)
