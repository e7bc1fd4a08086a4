"""HttpSinkConnector: sends records to an API, one by one or in batches, in the order of their partitions.

Only a status below 300 is success. In an outage (no connection, no response in time, 5xx, 429, authorization) the same
records are put again, without those that the API has accepted. Other statuses mean that a record is bad: it is
reported, or, when a batch is refused, found by the worker, which puts smaller and smaller parts.
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
from connectors.http.client import HttpClient, TryLater
from connectors.http.config import HttpSinkConfig, content_type
from connectors.http.requests import Refusal, Request, RequestBuilder
from connectors.http.status_codes import StatusCodes

log = logging.getLogger(__name__)

_LONGEST_PUT_SECONDS: Final = 60.0
"""A task that does not return in time loses its partitions: after this, the rest is put again at once."""
_RESPONSE_BYTES_MAX: Final = 65_536
_NOT_FOUND: Final = 404


@dataclass(slots=True)
class _Outcome:
    """The outcome of sending some records."""

    refused: list[Refusal] = field(default_factory=list)
    error: ConnectError | None = None
    """Why the rest was not sent."""


class HttpSinkTask(SinkTask):
    """Sends to one API."""

    config: HttpSinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        assert isinstance(config, HttpSinkConfig)
        super().__init__(config, context)
        parallel = config.http_max_parallel_requests
        self._client = HttpClient(
            config,
            wait=context.wait,
            response_bytes_max=_RESPONSE_BYTES_MAX,
            is_body_needed=False,
            connections=parallel,
        )
        self._threads = ThreadPoolExecutor(parallel, "http-sink") if parallel > 1 else None
        self._builder = RequestBuilder(config, on_skip=self._log_skipped)
        self._ignored_statuses = StatusCodes.parse("ignore.status.codes", config.ignore_status_codes)
        self._headers = content_type(config, default="application/json" if config.is_json else "text/plain")
        self._failures = 0
        self._done: set[tuple[TopicPartition, int]] = set()
        """Records of a failed put that the API has accepted, which are not sent again when they are put again."""
        self._lock = threading.Lock()

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        self._done.clear()

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Send all records; RetriableError when the API cannot accept them now."""
        left = [record for record in records if _identity(record) not in self._done] if self._done else records
        outcomes = self._send_all(left)
        for outcome in outcomes:
            for refusal in outcome.refused:
                self._done.add(_identity(refusal.record))
                self.context.report(refusal.record, refusal.error)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            raise self._fail(errors)
        self._failures = 0
        self._done.difference_update(map(_identity, records))

    @override
    def stop(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def _send_all(self, records: Sequence[SinkRecord]) -> list[_Outcome]:
        deadline = time.monotonic() + _LONGEST_PUT_SECONDS
        if self._threads is None:
            return [self._send(records, deadline)]
        partitions: dict[TopicPartition, list[SinkRecord]] = {}
        for record in records:
            partitions.setdefault(record.place, []).append(record)
        return list(self._threads.map(lambda some: self._send(some, deadline), partitions.values()))

    def _send(self, records: Sequence[SinkRecord], deadline: float) -> _Outcome:
        """Send records, one request after the other, until one fails."""
        outcome = _Outcome()
        for request in self._builder.requests(records):
            if isinstance(request, Refusal):
                outcome.refused.append(request)
                continue
            try:
                if time.monotonic() > deadline or self.context.wait(0):
                    raise TryLater("sending takes too long: the rest is put again", after_ms=1)
                self._send_one(request, outcome)
            except ConnectError as error:
                outcome.error = error
                return outcome
        return outcome

    def _send_one(self, request: Request, outcome: _Outcome) -> None:
        try:
            response = self._client.send(request.method, request.url, body=request.body, headers=self._headers)
            is_gone = request.method == "DELETE" and response.status == _NOT_FOUND
            error = None
            if response.status >= 300 and not is_gone and response.status not in self._ignored_statuses:
                text = f"{request.method} of {len(request.records)} records was refused: {response.summary}"
                error = DataError(text)
        except TryLater as later:
            if not self._client.is_given_up(later, failures=self._failures + 1):
                raise
            error = DataError(str(later))
        except DataError as refused:
            error = refused
        if error is None:
            with self._lock:
                self._done.update(map(_identity, request.records))
        elif len(request.records) == 1:
            outcome.refused.append(Refusal(request.records[0], error))
        else:
            raise error

    def _fail(self, errors: Sequence[ConnectError]) -> ConnectError:
        """The error to raise: an outage before bad records, which will be found when they are put again."""
        outage = next((error for error in errors if isinstance(error, RetriableError)), None)
        if outage is None:
            return errors[0]
        after_ms = outage.after_ms if isinstance(outage, TryLater) else None
        self.context.retry_after(self.config.retry_backoff_ms if after_ms is None else max(after_ms, 1))
        self._failures += 1
        level = logging.ERROR if self._failures == self.config.max_retries + 1 else logging.DEBUG
        log.log(level, "the API does not accept records", extra={"error": str(outage), "failures": self._failures})
        return outage

    def _log_skipped(self, record: SinkRecord) -> None:
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


def _identity(record: SinkRecord) -> tuple[TopicPartition, int]:
    return record.place, record.original_offset
