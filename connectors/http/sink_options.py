"""Options of the sink. Two dialects are understood: that of Aiven's connector and that of Confluent's."""

from collections.abc import Iterable
from typing import Final

import msgspec
from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    STRING,
    Importance,
    Problem,
    between,
    not_empty,
    one_of,
    option,
    optional,
)
from connect.api.errors import ConfigError
from connectors.http.options import CHOICE, HttpConfig, url_problems
from connectors.http.status_codes import StatusCodes
from connectors.http.template import Template

_METHOD: Final = msgspec.structs.replace(STRING, read=str.upper)
_BATCHES: Final = "Batching"
_ESCAPES: Final = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


class HttpSinkConfig(HttpConfig):
    """What an operator may say about sending records to an API."""

    http_url: str = option(STRING, check=not_empty(), aliases=("http.api.url",), importance=Importance.HIGH)
    """Where records are sent. `${topic}`, `${partition}`, `${offset}`, `${timestamp}`, `${key}`, `${key.field}`,
    `${header.name}` and `${field}` (of the value, `${value.field}` too) are filled in, encoded for URLs."""
    request_method: str = option(
        _METHOD, default="POST", check=one_of("POST", "PUT", "PATCH"), aliases=("http.request.method",)
    )
    """How records are sent: POST, PUT or PATCH."""
    request_body_format: str | None = option(optional(CHOICE), default=None, check=one_of("json", "string"))
    """json: values as JSON, text as it is. string: as Java writes values. Not set: json, but string for Confluent's
    class."""
    behavior_on_null_values: str = option(CHOICE, default="ignore", check=one_of("ignore", "log", "fail", "delete"))
    """What becomes of a record without a value: ignore it, log it, fail it, or send a DELETE to its URL."""
    ignore_status_codes: str = option(STRING, default="", importance=Importance.LOW)
    """Statuses from 400 on that are as good as success, 409 for instance; 404 to a DELETE always is."""
    http_max_parallel_requests: int = option(INT, default=1, check=between(1, 100))
    """How many requests may be under way at once; those of one partition never are, so that their order is kept."""

    batching_enabled: bool = option(BOOLEAN, default=False, group=_BATCHES)
    """Whether a request holds many records; also true with batch.max.size above 1 in Confluent's class."""
    batch_max_size: int | None = option(optional(INT), default=None, check=between(1, 1_000_000), group=_BATCHES)
    """Most records of one request. Not set: 500, but 1 for Confluent's class."""
    batch_prefix: str | None = option(optional(STRING), default=None, group=_BATCHES)
    """What stands before the first record of a batch; \\\\n, \\\\r and \\\\t may be used. Not set: nothing."""
    batch_suffix: str | None = option(optional(STRING), default=None, group=_BATCHES)
    """What stands behind the last record of a batch. Not set: a new line, but nothing for Confluent's class."""
    batch_separator: str | None = option(optional(STRING), default=None, group=_BATCHES)
    """What stands between records of a batch. Not set: a new line, but a comma for Confluent's class."""
    batch_json_as_array: bool = option(BOOLEAN, default=False, group=_BATCHES)
    """Whether a batch is a JSON array: prefix, separator and suffix are brackets and commas."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from url_problems("http.url", Template(self.http_url).filled(lambda _: "x"))
        try:
            StatusCodes.parse("ignore.status.codes", self.ignore_status_codes)
        except ConfigError as error:
            yield Problem("ignore.status.codes", str(error))

    @property
    def is_confluent(self) -> bool:
        """Whether what is not set means what it does in Confluent's connector."""
        return "confluent" in self.given.get("connector.class", "") or "http.api.url" in self.given

    @property
    def is_json(self) -> bool:
        """Whether values are sent as JSON."""
        return (self.request_body_format or ("string" if self.is_confluent else "json")) == "json"

    @property
    def records_max(self) -> int:
        """Most records of one request."""
        if self.is_confluent:
            return self.batch_max_size or (500 if self.batching_enabled else 1)
        return (self.batch_max_size or 500) if self.batching_enabled else 1

    @property
    def batch_parts(self) -> tuple[bytes, bytes, bytes]:
        """Prefix, separator and suffix of a batch."""
        if self.batch_json_as_array:
            return b"[", b",", b"]"
        separator, suffix = (",", "") if self.is_confluent else ("\n", "\n")
        return self._raw("batch.prefix", ""), self._raw("batch.separator", separator), self._raw("batch.suffix", suffix)

    def _raw(self, key: str, default: str) -> bytes:
        """Spaces and new lines at the ends mean something here, so what was given is taken as it is."""
        text = self.given.get(key, default)
        for escape, character in _ESCAPES.items():
            text = text.replace(escape, character)
        return text.encode()
