"""HttpSinkConnector: records are sent to an API, one by one or in batches, in the order of their partitions.

Only a status below 300 is success. An outage (no connection, no answer in time, 5xx, 429, who we are) is waited for:
the same records come again, without those that the API has taken already. What is about the request is about its
record: it is reported alone, or, when a batch is refused, found by the worker, which puts smaller and smaller parts.
"""

import logging
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar, Final

from typing_extensions import override

from connect.api.config import Config
from connect.api.errors import ConnectError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkContext, SinkTask, TopicPartition
from connectors.http.client import Answer, HttpClient, TryLater
from connectors.http.config import HttpSinkConfig, content_type
from connectors.http.requests import Refusal, Request, RequestBuilder
from connectors.http.status_codes import StatusCodes

log = logging.getLogger(__name__)

_LONGEST_PUT_SECONDS: Final = 60.0
"""A worker that is away for too long loses its partitions: what is left is put again at once."""
_ANSWER_BYTES_MAX: Final = 65_536
_NOT_FOUND: Final = 404


@dataclass(slots=True)
class _Outcome:
    """What became of some records."""

    refused: list[Refusal] = field(default_factory=list)
    error: ConnectError | None = None
    """Why the rest was not sent."""


class HttpSinkTask(SinkTask):
    """Sends to one API."""

    config: HttpSinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        assert isinstance(config, HttpSinkConfig)
        super().__init__(config, context)
        self.config = config
        parallel = config.http_max_parallel_requests
        self._client = HttpClient(
            config,
            wait=context.wait,
            answer_bytes_max=_ANSWER_BYTES_MAX,
            is_answer_needed=False,
            connections=parallel,
        )
        self._threads = ThreadPoolExecutor(parallel, "http-sink") if parallel > 1 else None
        self._builder = RequestBuilder(config, ignored=self._ignored)
        self._forgiven = StatusCodes.parse("ignore.status.codes", config.ignore_status_codes)
        self._headers = content_type(config, default="application/json" if config.is_json else "text/plain")
        self._failures = 0
        self._done: set[tuple[TopicPartition, int]] = set()
        """What the API has of a put that failed: it is not sent again when it comes again."""
        self._lock = threading.Lock()

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        self._done.clear()

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Send all; RetriableError when the API cannot take them now."""
        left = [record for record in records if _mark(record) not in self._done] if self._done else records
        outcomes = self._sent(left)
        for outcome in outcomes:
            for refusal in outcome.refused:
                self._done.add(_mark(refusal.record))
                self.context.report(refusal.record, refusal.error)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            raise self._failed(errors)
        self._failures = 0
        self._done.difference_update(map(_mark, records))

    @override
    def stop(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def _sent(self, records: Sequence[SinkRecord]) -> list[_Outcome]:
        deadline = time.monotonic() + _LONGEST_PUT_SECONDS
        if self._threads is None:
            return [self._send(records, deadline)]
        lanes: dict[TopicPartition, list[SinkRecord]] = {}
        for record in records:
            lanes.setdefault(record.place, []).append(record)
        return list(self._threads.map(lambda lane: self._send(lane, deadline), lanes.values()))

    def _send(self, records: Sequence[SinkRecord], deadline: float) -> _Outcome:
        """Send some, one request after the other, as far as it goes."""
        outcome = _Outcome()
        for request in self._builder.requests(records):
            if isinstance(request, Refusal):
                outcome.refused.append(request)
                continue
            try:
                if time.monotonic() > deadline or self.context.wait(0):
                    raise TryLater("there are more records than can be sent at once", after_ms=1)
                self._send_one(request, outcome)
            except ConnectError as error:
                outcome.error = error
                return outcome
        return outcome

    def _send_one(self, request: Request, outcome: _Outcome) -> None:
        try:
            answer = self._client.send(request.method, request.url, body=request.body, headers=self._headers)
            error = self._error_of(request, answer)
        except TryLater as later:
            if not self._client.is_given_up(later, failures=self._failures + 1):
                raise
            error = DataError(str(later))
        except DataError as refused:
            error = refused
        if error is None:
            with self._lock:
                self._done.update(map(_mark, request.records))
        elif len(request.records) == 1:
            outcome.refused.append(Refusal(request.records[0], error))
        else:
            raise error

    def _error_of(self, request: Request, answer: Answer) -> DataError | None:
        is_gone = request.method == "DELETE" and answer.status == _NOT_FOUND
        if answer.status < 300 or is_gone or answer.status in self._forgiven:
            return None
        return DataError(f"{request.method} of {len(request.records)} records is refused: {answer.told}")

    def _failed(self, errors: Sequence[ConnectError]) -> ConnectError:
        """Which error to raise: an outage goes before bad records, which come again."""
        outage = next((error for error in errors if isinstance(error, RetriableError)), None)
        if outage is None:
            return errors[0]
        after_ms = outage.after_ms if isinstance(outage, TryLater) else None
        self.context.retry_after(self.config.retry_backoff_ms if after_ms is None else max(after_ms, 1))
        self._failures += 1
        level = logging.ERROR if self._failures == self.config.max_retries + 1 else logging.DEBUG
        log.log(level, "the API does not take records", extra={"error": str(outage), "failures": self._failures})
        return outage

    def _ignored(self, record: SinkRecord) -> None:
        if self.config.behavior_on_null_values == "log":
            extra = {"topic": record.topic, "partition": record.original_partition, "offset": record.original_offset}
            log.info("a record without a value is not sent", extra=extra)


class HttpSinkConnector(SinkConnector):
    """Sends topics to an API."""

    config_class = HttpSinkConfig
    task_class: ClassVar[type[SinkTask]] = HttpSinkTask
    aliases = (
        "io.aiven.kafka.connect.http.HttpSinkConnector",
        "io.confluent.connect.http.HttpSinkConnector",
        "HttpSinkConnector",
        "HttpSink",
    )


def _mark(record: SinkRecord) -> tuple[TopicPartition, int]:
    return record.place, record.original_offset
