"""Options of the source and the sink, and those that both have; the keys of Aiven's, castorm's and Confluent's work."""

import re
from collections.abc import Iterable
from typing import Final

import httpx2
import msgspec
from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    LOWER_CASE,
    PASSWORD,
    STRING,
    UPPER_CASE,
    Config,
    Importance,
    Problem,
    at_least,
    between,
    not_empty,
    one_of,
    option,
    optional,
)
from connect.api.errors import ConfigError
from connect.api.places import Place, path, servers
from connect.api.places import url as url_of
from connectors.http.status_codes import StatusCodes
from connectors.http.template import Template

_ACCESS, _WAITING, _ANSWERS = "Authorization", "Timeouts", "Answers"


class HttpConfig(Config):
    """Options of both: requests, authorization, time-outs and statuses."""

    http_headers_content_type: str = option(STRING, default="")
    """The Content-Type of requests; not set: application/json, or text/plain for request.body.format=string."""
    http_headers_additional: str = option(STRING, default="", aliases=("http.request.headers",))
    """Additional headers of each request: `Name: value, Other: value`."""
    headers: str = option(STRING, default="")
    """The same, separated by header.separator, for values that contain commas."""
    header_separator: str = option(STRING, default="|", check=not_empty(), importance=Importance.LOW)
    """The separator of headers in `headers`."""

    http_authorization_type: str = option(
        LOWER_CASE,
        default="none",
        check=one_of("none", "static", "basic", "oauth2"),
        aliases=("auth.type", "http.auth.type"),
        importance=Importance.HIGH,
        group=_ACCESS,
    )
    """How requests are authorized: none, static (http.headers.authorization), basic (connection.user) or oauth2."""
    http_headers_authorization: str = option(PASSWORD, default="", group=_ACCESS)
    """The header Authorization for http.authorization.type=static, such as `Bearer …`."""
    connection_user: str = option(STRING, default="", aliases=("http.auth.user",), group=_ACCESS)
    """The user for http.authorization.type=basic."""
    connection_password: str = option(PASSWORD, default="", aliases=("http.auth.password",), group=_ACCESS)
    """The password of that user."""
    oauth2_access_token_url: str = option(STRING, default="", aliases=("oauth2.token.url",), group=_ACCESS)
    """The URL for tokens (grant type client_credentials), which are renewed before they expire."""
    oauth2_client_id: str = option(STRING, default="", group=_ACCESS)
    """The client id for tokens."""
    oauth2_client_secret: str = option(PASSWORD, default="", group=_ACCESS)
    """The secret of that client."""
    oauth2_client_authorization_mode: str = option(
        LOWER_CASE,
        default="header",
        check=one_of("header", "url"),
        aliases=("oauth2.client.auth.mode",),
        importance=Importance.LOW,
        group=_ACCESS,
    )
    """Whether id and secret are sent in a header (basic) or in the body (url)."""
    oauth2_client_scope: str = option(STRING, default="", importance=Importance.LOW, group=_ACCESS)
    """The requested scope."""
    oauth2_response_token_property: str = option(
        STRING,
        default="access_token",
        check=not_empty(),
        aliases=("oauth2.token.property",),
        importance=Importance.LOW,
        group=_ACCESS,
    )
    """The property of the response that holds the token."""

    http_timeout: float = option(DOUBLE, default=30.0, check=between(0.01, 3600), group=_WAITING)
    """Time-out of a whole request in seconds."""
    http_request_timeout_ms: int = option(
        LONG, default=0, check=between(0, 3_600_000), aliases=("http.client.read.timeout.millis",), group=_WAITING
    )
    """The same in milliseconds; 0: http.timeout applies."""
    http_connect_timeout_ms: int = option(
        LONG,
        default=10_000,
        check=between(1, 3_600_000),
        aliases=("http.client.connection.timeout.millis",),
        group=_WAITING,
    )
    """Time-out of connecting in milliseconds."""
    http_requests_per_second: float = option(DOUBLE, default=0.0, check=between(0, 1_000_000), group=_WAITING)
    """Most requests of a task per second; 0: no limit."""

    retry_on_status_codes: str = option(STRING, default="401,403,407,408,425,429,500-", group=_ANSWERS)
    """Statuses that mean an outage, as numbers and ranges: the request is repeated until it succeeds, and no record is
    to blame. All others from 400 on are about the request."""
    retry_backoff_ms: int = option(
        INT, default=3000, check=at_least(0), aliases=("kafka.retry.backoff.ms",), group=_ANSWERS
    )
    """The pause before a request is repeated, unless the response has one (Retry-After)."""
    max_retries: int = option(INT, default=10, check=at_least(0), group=_ANSWERS)
    """How often a request is repeated for a status from 400 to 499 that retry.on.status.codes adds, before the record
    is to blame. After an outage it is repeated without limit."""

    http_proxy_host: str = option(STRING, default="", importance=Importance.LOW, group="Connection")
    """The host of a proxy for all requests."""
    http_proxy_port: int = option(INT, default=8080, check=between(1, 65_535), importance=Importance.LOW)
    """The port of that proxy."""
    http_proxy_user: str = option(STRING, default="", importance=Importance.LOW)
    """The user for that proxy."""
    http_proxy_password: str = option(PASSWORD, default="", importance=Importance.LOW)
    """The password for that proxy."""
    http_ssl_trust_all_certs: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Whether any certificate of the server is accepted; for tests only."""
    https_ssl_truststore_location: str = option(STRING, default="", importance=Importance.LOW)
    """A file with trusted certificates (PEM); not set: those of the system."""
    https_ssl_keystore_location: str = option(STRING, default="", importance=Importance.LOW)
    """A file with the client's certificate and key (PEM)."""
    https_ssl_key_password: str = option(PASSWORD, default="", importance=Importance.LOW)
    """The password of that key."""

    @override
    def problems(self) -> Iterable[Problem]:
        for key, name in _NEEDED.get(self.http_authorization_type, {}).items():
            if not getattr(self, name):
                reason = f"must be set with http.authorization.type={self.http_authorization_type}"
                yield Problem.invalid(key, '""', reason)
        if self.oauth2_access_token_url:
            yield from url_problems("oauth2.access.token.url", self.oauth2_access_token_url)
        for key, check in (
            ("retry.on.status.codes", lambda: StatusCodes.parse("retry.on.status.codes", self.retry_on_status_codes)),
            ("http.headers.additional", self.more_headers),
        ):
            try:
                check()
            except ConfigError as error:
                yield Problem(key, str(error))

    @override
    def places(self) -> Iterable[Place]:
        yield from url_of("oauth2.access.token.url", self.oauth2_access_token_url)
        if self.http_proxy_host:
            yield from servers("http.proxy.host", f"{self.http_proxy_host}:{self.http_proxy_port}")
        yield from path("https.ssl.truststore.location", self.https_ssl_truststore_location)
        yield from path("https.ssl.keystore.location", self.https_ssl_keystore_location)

    @property
    def timeout_seconds(self) -> float:
        """The time-out of a whole request."""
        return self.http_request_timeout_ms / 1000 if self.http_request_timeout_ms else self.http_timeout

    def more_headers(self) -> dict[str, str]:
        """The configured headers; raises ConfigError."""
        found = _parse_headers("http.headers.additional", self.http_headers_additional, separator=",")
        return {**found, **_parse_headers("headers", self.headers, separator=self.header_separator)}


_NEEDED: Final = {
    "static": {"http.headers.authorization": "http_headers_authorization"},
    "basic": {"connection.user": "connection_user"},
    "oauth2": {
        "oauth2.access.token.url": "oauth2_access_token_url",
        "oauth2.client.id": "oauth2_client_id",
        "oauth2.client.secret": "oauth2_client_secret",
    },
}


def content_type(config: HttpConfig, *, default: str) -> dict[str, str]:
    """The header Content-Type of a body; none when it is among the additional headers."""
    if config.http_headers_content_type:
        return {"Content-Type": config.http_headers_content_type}
    return {} if any(name.lower() == "content-type" for name in config.more_headers()) else {"Content-Type": default}


def url_problems(key: str, text: str) -> Iterable[Problem]:
    """A problem if the text is not a URL."""
    try:
        url = httpx2.URL(text)
        is_valid = url.scheme in ("http", "https") and bool(url.host)
    except httpx2.InvalidURL:
        is_valid = False
    if not is_valid:
        yield Problem.invalid(key, text, "must be a URL, http://… or https://…")


def _parse_headers(key: str, text: str, *, separator: str) -> dict[str, str]:
    found = {}
    for item in filter(None, (part.strip() for part in text.split(separator))):
        name, colon, value = item.partition(":")
        if not colon or not name.strip() or not name.strip().isascii() or "\n" in value or "\r" in value:
            raise ConfigError(f"Invalid value {item} for configuration {key}: must be `Name: value`")
        found[name.strip()] = value.strip()
    return found


_BATCHES: Final = "Batching"
_ESCAPES: Final = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


class HttpSinkConfig(HttpConfig):
    """Options of the sink."""

    http_url: str = option(STRING, check=not_empty(), aliases=("http.api.url",), importance=Importance.HIGH)
    """The URL that records are sent to. `${topic}`, `${partition}`, `${offset}`, `${timestamp}`, `${key}`,
    `${key.field}`, `${header.name}` and `${field}` or `${value.field}` are replaced by values, encoded for URLs."""
    request_method: str = option(
        UPPER_CASE, default="POST", check=one_of("POST", "PUT", "PATCH"), aliases=("http.request.method",)
    )
    """The method of requests: POST, PUT or PATCH."""
    request_body_format: str | None = option(optional(LOWER_CASE), default=None, check=one_of("json", "string"))
    """json: values as JSON, text unchanged. string: as Java writes values. Not set: json, but string for Confluent's
    class."""
    behavior_on_null_values: str = option(LOWER_CASE, default="ignore", check=one_of("ignore", "log", "fail", "delete"))
    """What happens to a record without a value: it is ignored, logged or failed, or a DELETE is sent to its URL."""
    ignore_status_codes: str = option(STRING, default="", importance=Importance.LOW)
    """Statuses from 400 on that count as success, such as 409; 404 in response to a DELETE always does."""
    http_max_parallel_requests: int = option(INT, default=1, check=between(1, 100))
    """Most parallel requests; those of one partition are never parallel, so that their order is kept."""

    batching_enabled: bool = option(BOOLEAN, default=False, group=_BATCHES)
    """Whether a request holds several records; also true with batch.max.size above 1 in Confluent's class."""
    batch_max_size: int | None = option(optional(INT), default=None, check=between(1, 1_000_000), group=_BATCHES)
    """Most records of one request. Not set: 500, but 1 for Confluent's class."""
    batch_prefix: str | None = option(optional(STRING), default=None, group=_BATCHES)
    """The text before the first record of a batch; \\\\n, \\\\r and \\\\t may be used. Not set: none."""
    batch_suffix: str | None = option(optional(STRING), default=None, group=_BATCHES)
    """The text after the last record of a batch. Not set: a new line, but none for Confluent's class."""
    batch_separator: str | None = option(optional(STRING), default=None, group=_BATCHES)
    """The text between records of a batch. Not set: a new line, but a comma for Confluent's class."""
    batch_json_as_array: bool = option(BOOLEAN, default=False, group=_BATCHES)
    """Whether a batch is a JSON array: prefix, separator and suffix are brackets and commas."""

    @override
    def places(self) -> Iterable[Place]:
        yield from super().places()
        yield from url_of("http.url", Template(self.http_url).fill(lambda _: "x"))

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from url_problems("http.url", Template(self.http_url).fill(lambda _: "x"))
        try:
            StatusCodes.parse("ignore.status.codes", self.ignore_status_codes)
        except ConfigError as error:
            yield Problem("ignore.status.codes", str(error))

    @property
    def is_confluent(self) -> bool:
        """Whether defaults are those of Confluent's connector."""
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
        """The value as it was given, since spaces and new lines at its ends count here."""
        text = self.given.get(key, default)
        for escape, character in _ESCAPES.items():
            text = text.replace(escape, character)
        return text.encode()


_REQUESTS, _PAGES = "Requests", "Pages"
_CONFLUENT: Final = {"simple_incrementing": "page", "chaining": "record", "cursor_pagination": "cursor"}
_MODE: Final = msgspec.structs.replace(STRING, read=lambda text: _CONFLUENT.get(text.lower(), text.lower()))
_KNOWN: Final = re.compile(r"cursor|offset|page|offset\.[\w-]+")


class HttpSourceConfig(HttpConfig):
    """Options of the source."""

    http_request_url: str = option(
        STRING, check=not_empty(), aliases=("http.url", "url"), importance=Importance.HIGH, group=_REQUESTS
    )
    """The URL to read. `${cursor}`, `${offset}`, `${offset.name}` and `${page}` are replaced by the position;
    parameters that would be empty are left out."""
    http_request_params: str = option(STRING, default="", group=_REQUESTS)
    """Parameters of the URL, `name=value&other=${offset}`, with the same names."""
    http_request_method: str = option(
        UPPER_CASE, default="GET", check=one_of("GET", "POST", "PUT"), aliases=("http.method",), group=_REQUESTS
    )
    """The method of requests: GET, POST or PUT."""
    http_request_body: str = option(STRING, default="", group=_REQUESTS)
    """The body of requests, with the same names."""
    kafka_topic: str = option(
        STRING, check=not_empty(), aliases=("topic", "topic.name.pattern"), importance=Importance.HIGH, group=_ANSWERS
    )
    """The topic of the records."""
    http_timer_interval_millis: int = option(
        LONG, default=60_000, check=at_least(0), aliases=("request.interval.ms", "poll.interval.ms"), group=_REQUESTS
    )
    """The pause after a response without new records."""
    http_timer_catchup_interval_millis: int = option(LONG, default=0, check=at_least(0), group=_REQUESTS)
    """The pause after a response with new records, when there may be more."""

    http_response_records_pointer: str = option(
        STRING,
        default="",
        aliases=("http.response.list.pointer", "http.response.data.json.pointer"),
        importance=Importance.HIGH,
        group=_ANSWERS,
    )
    """The JSON pointer to the records in a response, such as /data/items; not set: the response itself. Anything but an
    array is one record."""
    http_response_list_order_direction: str = option(
        LOWER_CASE, default="asc", check=one_of("asc", "desc"), group=_ANSWERS
    )
    """The order of records in a response; asc: the newest last. desc: the newest first."""
    http_response_record_pointer: str = option(STRING, default="", group=_ANSWERS)
    """The JSON pointer to the value in a record; not set: the whole record."""
    http_response_key_pointer: str = option(
        STRING, default="", aliases=("http.response.record.key.pointer",), group=_ANSWERS
    )
    """The JSON pointer to the key in a record; not set: no key."""
    http_response_timestamp_pointer: str = option(
        STRING, default="", aliases=("http.response.record.timestamp.pointer",), group=_ANSWERS
    )
    """The JSON pointer to the time in a record: milliseconds or seconds since 1970, or ISO 8601; not set: no time."""
    http_response_value_format: str = option(LOWER_CASE, default="json", check=one_of("json", "string"), group=_ANSWERS)
    """json: values are maps, lists, text and numbers without a schema. string: values are text, the record as JSON."""
    http_response_bytes_max: int = option(INT, default=67_108_864, check=at_least(1024), group=_ANSWERS)
    """The largest response that is accepted."""
    batch_size: int = option(INT, default=500, check=between(1, 100_000), group=_ANSWERS)
    """Most records of one poll; further records of a response are returned by the next ones."""

    http_pagination_mode: str = option(
        _MODE,
        default="auto",
        check=one_of("auto", "cursor", "link", "record", "offset", "page", "none"),
        aliases=("http.offset.mode",),
        group=_PAGES,
    )
    """How the next page is found. cursor: by a cursor in the response. link: by its Link header. record: by the last
    record. offset: by the number of records. page: by page numbers. none: everything is read each time. auto: depends
    on the other options."""
    http_response_offset_pointer: str = option(
        STRING,
        default="",
        aliases=("http.response.next.pointer", "http.next.page.json.pointer"),
        group=_PAGES,
    )
    """cursor: the JSON pointer to the next cursor in a response: a value for `${cursor}`, or the next URL."""
    http_response_record_offset_pointer: str = option(
        STRING, default="", aliases=("http.offset.json.pointer",), group=_PAGES
    )
    """record: the JSON pointer to the offset in a record, for `${offset}`; several as `name=/pointer, other=/other`,
    for `${offset.name}`."""
    http_offset_initial: str = option(STRING, default="", aliases=("http.initial.offset",), group=_PAGES)
    """The first offset: a value, or `name=value, other=value`."""

    @override
    def places(self) -> Iterable[Place]:
        yield from super().places()
        yield from url_of("http.request.url", Template(self.http_request_url).fill(lambda _: "x"))

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from url_problems("http.request.url", Template(self.http_request_url).fill(lambda _: "x"))
        unknown = [name for name in self.names if not _KNOWN.fullmatch(name)]
        if unknown:
            reason = "must be ${cursor}, ${offset}, ${offset.name} or ${page}"
            yield Problem.invalid("http.request.url", f"${{{unknown[0]}}}", reason)
        for mode, key, text in (
            ("cursor", "http.response.offset.pointer", self.http_response_offset_pointer),
            ("record", "http.response.record.offset.pointer", self.http_response_record_offset_pointer),
        ):
            if self.mode == mode and not text:
                yield Problem.invalid(key, '""', f"must be set with http.pagination.mode={mode}")

    @property
    def names(self) -> list[str]:
        """The names that requests use."""
        texts = (self.http_request_url, self.http_request_params, self.http_request_body)
        return [name for text in texts for name in Template(text).names]

    @property
    def mode(self) -> str:
        """The pagination mode, derived from other options if it is auto."""
        if self.http_pagination_mode != "auto":
            return self.http_pagination_mode
        if self.http_response_offset_pointer:
            return "cursor"
        if self.http_response_record_offset_pointer:
            return "record"
        return next((mode for mode in ("page", "offset") if mode in self.names), "none")

    @property
    def offset_pointers(self) -> dict[str, str]:
        """Names and pointers of a record's offsets; one without a name is called offset."""
        return _parse_names(self.http_response_record_offset_pointer)

    @property
    def initial(self) -> dict[str, str]:
        """Names and values of the first offsets, for mode record; one without a name is called offset."""
        return _parse_names(self.http_offset_initial)

    @property
    def follows_links(self) -> bool:
        """Whether the next cursor is a URL and not a value for a name."""
        return self.mode == "link" or not {"cursor", "offset"}.intersection(self.names)


def _parse_names(text: str) -> dict[str, str]:
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        found[name.strip() if equals else "offset"] = value.strip() if equals else item
    return found
