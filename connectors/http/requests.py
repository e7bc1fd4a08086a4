"""The requests of the sink: URLs, bodies, and which records are sent together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from connect.api.errors import DataError
from connect.api.json_text import json_bytes
from connect.api.record import SinkRecord
from connect.api.values import text_of
from connectors.http.config import HttpSinkConfig
from connectors.http.template import Template, text_in


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and the records in it."""

    method: str
    url: str
    body: bytes | None
    records: Sequence[SinkRecord]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that cannot be sent."""

    record: SinkRecord
    error: Exception


class RequestBuilder:
    """Turns records into requests, in order."""

    def __init__(self, config: HttpSinkConfig, *, on_skip: Callable[[SinkRecord], None]) -> None:
        self._config = config
        self._url = Template(config.http_url)
        self._is_json = config.is_json
        self._records_max = config.records_max
        self._prefix, self._separator, self._suffix = config.batch_parts
        self._on_skip = on_skip

    def requests(self, records: Sequence[SinkRecord]) -> Iterator[Request | Refusal]:
        """Requests for records; consecutive records with the same URL are one request, up to the batch size."""
        together: list[tuple[SinkRecord, bytes]] = []
        last_url = ""
        for record in records:
            try:
                prepared = self._prepare(record)
            except DataError as error:
                yield Refusal(record, error)
                continue
            if prepared is None:
                self._on_skip(record)
                continue
            url, body = prepared
            if together and (url != last_url or body is None or len(together) >= self._records_max):
                yield self._request(last_url, together)
                together = []
            last_url = url
            if body is None:
                yield Request("DELETE", url, None, [record])
            else:
                together.append((record, body))
        if together:
            yield self._request(last_url, together)

    def _prepare(self, record: SinkRecord) -> tuple[str, bytes | None] | None:
        """The URL and the body of a record, without a body for a DELETE; None when the record is skipped."""
        behaviour = self._config.behavior_on_null_values
        if record.value is None and behaviour != "delete":
            if behaviour == "fail":
                raise DataError("the record has no value, and behavior.on.null.values is fail")
            return None
        url = self._url.fill_url(lambda name: text_in(record, name))
        return url, None if record.value is None else self._body(record)

    def _body(self, record: SinkRecord) -> bytes:
        value = record.value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        if self._is_json and not isinstance(value, str):
            return json_bytes(record.value_schema, value)
        try:
            return text_of(record.value_schema, value).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"the value cannot be encoded as text: {error}") from error

    def _request(self, url: str, together: list[tuple[SinkRecord, bytes]]) -> Request:
        bodies = [body for _, body in together]
        is_batch = self._records_max > 1
        body = self._prefix + self._separator.join(bodies) + self._suffix if is_batch else bodies[0]
        return Request(self._config.request_method, url, body, [record for record, _ in together])
