"""HttpSourceConnector: polls an API for new records.

Offsets: `{"url": …}` → the position, see pagination.py. The records of a response are returned in batches, each record
with the position after it.
"""

import datetime as dt
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec
from typing_extensions import override

from connect.api.config import Config
from connect.api.data import STRING
from connect.api.errors import ConnectError, DataError
from connect.api.json_text import json_bytes
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceContext, SourceOffset, SourcePartition, SourceTask
from connect.api.values import text_of
from connectors.http import pointer
from connectors.http.client import HttpClient, TryLater
from connectors.http.config import HttpSourceConfig, content_type
from connectors.http.pagination import Page, PageRequest, Position, ReadRecord, pagination_of
from connectors.http.template import Template

log = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS: Final = 1.0
_SECONDS_BELOW: Final = 100_000_000_000
"""Numbers below are seconds since 1970, others milliseconds."""


class HttpSourceTask(SourceTask):
    """Polls one API."""

    config: HttpSourceConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, HttpSourceConfig)
        super().__init__(config, context)
        self._client = HttpClient(
            config, wait=context.wait, response_bytes_max=config.http_response_bytes_max, is_body_needed=True
        )
        self._pagination = pagination_of(config)
        url = config.http_request_url
        if config.http_request_params:
            url = f"{url}{'&' if '?' in url else '?'}{config.http_request_params}"
        self._url = Template(url)
        self._body = Template(config.http_request_body)
        self._headers = {"Accept": "application/json"}
        if config.http_request_body:
            self._headers |= content_type(config, default="application/json")
        self._list = pointer.parts_of(config.http_response_records_pointer)
        self._value = pointer.parts_of(config.http_response_record_pointer)
        self._partition = {"url": config.http_request_url}
        self._position: Position = {}
        self._waiting: deque[ReadRecord] = deque()
        self._due = 0.0
        self._has_warned = False

    @override
    def start(self) -> None:
        """Continue at the stored position."""
        self._position = dict(self.context.offset(self._partition) or {})

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """Records of the last response, or of the next one when it is due."""
        if not self._waiting:
            if (pause := self._due - time.monotonic()) > 0:
                self.context.wait(min(pause, _LONGEST_WAIT_SECONDS))
            if time.monotonic() < self._due:
                return []
            self._read_next()
        records: list[SourceRecord] = []
        while self._waiting and len(records) < self.config.batch_size:
            found = self._waiting.popleft()
            try:
                records.append(self._record(found))
            except DataError as error:
                data = json_bytes(None, found.record)
                self.context.report(data, error, partition=self._partition, offset=found.position)
        return records

    @override
    def stop(self) -> None:
        self._client.close()

    def _read_next(self) -> None:
        try:
            step = self._pagination.step(self._position, self._fetch)
        except TryLater as error:
            after_ms = self.config.retry_backoff_ms if error.after_ms is None else error.after_ms
            self._due = time.monotonic() + after_ms / 1000
            raise
        self._waiting.extend(step.records)
        self._position = step.position
        catching_up = self.config.http_timer_catchup_interval_millis
        pause_ms = catching_up if step.has_more else self.config.http_timer_interval_millis
        self._due = time.monotonic() + pause_ms / 1000

    def _fetch(self, request: PageRequest) -> Page:
        def lookup(name: str) -> str:
            return request.values.get(name, "")

        url = request.url or self._url.fill_url(lookup)
        body = self._body.fill(lookup).encode() if self.config.http_request_body else None
        response = self._client.send(self.config.http_request_method, url, body=body, headers=self._headers)
        if response.status >= 400:
            raise ConnectError(f"the API refuses the request: {response.summary}")
        document: Any = None
        if response.body.strip():
            try:
                document = msgspec.json.decode(response.body)
            except msgspec.MsgspecError as error:
                raise ConnectError(f"the response is not JSON ({error}): {response.summary}") from error
        return Page(self._find_records(document), document, response.headers, response.url)

    def _find_records(self, document: Any) -> Sequence[Any]:
        found = pointer.find(document, self._list)
        if found is pointer.MISSING or found is None:
            if document is not None and not self._has_warned:
                self._has_warned = True
                extra = {"pointer": self.config.http_response_records_pointer}
                log.warning("a response has no records at the configured pointer", extra=extra)
            return []
        records = found if isinstance(found, list) else [found]
        return records[::-1] if self.config.http_response_list_order_direction == "desc" else records

    def _record(self, found: ReadRecord) -> SourceRecord:
        if found.error is not None:
            raise found.error
        value = pointer.find(found.record, self._value)
        if value is pointer.MISSING:
            raise DataError(f"the record has no value at {self.config.http_response_record_pointer}")
        is_text = self.config.http_response_value_format == "string"
        key = self._scalar(found.record, self.config.http_response_key_pointer)
        return SourceRecord(
            topic=self.config.kafka_topic,
            key_schema=STRING if key is not None else None,
            key=None if key is None else text_of(None, key),
            value_schema=STRING if is_text else None,
            value=json_bytes(None, value).decode() if is_text else value,
            timestamp_ms=_milliseconds(self._scalar(found.record, self.config.http_response_timestamp_pointer)),
            source_partition=self._partition,
            source_offset=found.position,
        )

    def _scalar(self, record: Any, where: str) -> str | int | float | None:
        """The text or number at a pointer; None without a pointer."""
        if not where:
            return None
        value = pointer.find(record, pointer.parts_of(where))
        if not isinstance(value, str | int | float):
            raise DataError(f"the record has no text or number at {where}")
        return value


class HttpSourceConnector(SourceConnector):
    """Reads records from an API into a topic."""

    config_class = HttpSourceConfig
    task_class: ClassVar[type[SourceTask]] = HttpSourceTask
    is_exactly_once = True
    aliases = (
        "com.github.castorm.kafka.connect.http.HttpSourceConnector",
        "io.confluent.connect.http.HttpSourceConnector",
        "HttpSourceConnector",
        "HttpSource",
    )

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Accept text and whole numbers for the connector's URL."""
        assert isinstance(self.config, HttpSourceConfig)
        for partition, offset in offsets:
            if dict(partition) != {"url": self.config.http_request_url}:
                raise ConnectError(
                    f'the partition must be {{"url": "{self.config.http_request_url}"}}, not {dict(partition)}'
                )
            if offset is not None and not all(isinstance(value, str | int) for value in offset.values()):
                raise ConnectError(f"the offset must have only text and whole numbers, not {dict(offset)}")
        return False


def _milliseconds(value: str | float | None) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, str) and not value.lstrip("-").isdecimal():
            time = dt.datetime.fromisoformat(value)
            aware = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
            return int(aware.timestamp() * 1000)
        number = float(value)
        return int(number * 1000 if abs(number) < _SECONDS_BELOW else number)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{str(value)[:50]!r} is not a time in milliseconds, seconds or ISO 8601") from error
