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
from connectors.http.status_codes import StatusCodes
from connectors.http.template import Template

_ACCESS, _WAITING, _ANSWERS = "Authorization", "Timeouts", "Answers"


class HttpConfig(Config):
    """How to speak with an API."""

    http_headers_content_type: str = option(STRING, default="")
    """The Content-Type of requests; not set: application/json, or text/plain for request.body.format=string."""
    http_headers_additional: str = option(STRING, default="", aliases=("http.request.headers",))
    """More headers for each request: `Name: value, Other: value`."""
    headers: str = option(STRING, default="")
    """The same with header.separator between them, for values that have commas."""
    header_separator: str = option(STRING, default="|", check=not_empty(), importance=Importance.LOW)
    """What stands between two headers in `headers`."""

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
    """Where tokens come from (grant type client_credentials); they are renewed before they expire."""
    oauth2_client_id: str = option(STRING, default="", group=_ACCESS)
    """Who asks for tokens."""
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
    """Whether id and secret go as a header (basic) or in the body (url)."""
    oauth2_client_scope: str = option(STRING, default="", importance=Importance.LOW, group=_ACCESS)
    """The scope that is asked for."""
    oauth2_response_token_property: str = option(
        STRING,
        default="access_token",
        check=not_empty(),
        aliases=("oauth2.token.property",),
        importance=Importance.LOW,
        group=_ACCESS,
    )
    """The property of the answer that is the token."""

    http_timeout: float = option(DOUBLE, default=30.0, check=between(0.01, 3600), group=_WAITING)
    """How many seconds a whole request may take."""
    http_request_timeout_ms: int = option(
        LONG, default=0, check=between(0, 3_600_000), aliases=("http.client.read.timeout.millis",), group=_WAITING
    )
    """The same in milliseconds; 0: as http.timeout says."""
    http_connect_timeout_ms: int = option(
        LONG,
        default=10_000,
        check=between(1, 3_600_000),
        aliases=("http.client.connection.timeout.millis",),
        group=_WAITING,
    )
    """How many milliseconds connecting may take."""
    http_requests_per_second: float = option(DOUBLE, default=0.0, check=between(0, 1_000_000), group=_WAITING)
    """Most requests of a task in a second; 0: as many as possible."""

    retry_on_status_codes: str = option(STRING, default="401,403,407,408,425,429,500-", group=_ANSWERS)
    """Which statuses are an outage, as numbers and ranges: the same is asked again until it works, and no record is to
    blame. All others from 400 on are about the request."""
    retry_backoff_ms: int = option(
        INT, default=3000, check=at_least(0), aliases=("kafka.retry.backoff.ms",), group=_ANSWERS
    )
    """How long to wait before that, unless the answer says it (Retry-After)."""
    max_retries: int = option(INT, default=10, check=at_least(0), group=_ANSWERS)
    """How often a status from 400 to 499 that retry.on.status.codes adds is tried again before it is about the record.
    An outage is never given up."""

    http_proxy_host: str = option(STRING, default="", importance=Importance.LOW, group="Connection")
    """A proxy that all requests go through."""
    http_proxy_port: int = option(INT, default=8080, check=between(1, 65_535), importance=Importance.LOW)
    """The port of that proxy."""
    http_proxy_user: str = option(STRING, default="", importance=Importance.LOW)
    """Who we are at that proxy."""
    http_proxy_password: str = option(PASSWORD, default="", importance=Importance.LOW)
    """The password at that proxy."""
    http_ssl_trust_all_certs: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Whether any certificate of the server is accepted; for tests only."""
    https_ssl_truststore_location: str = option(STRING, default="", importance=Importance.LOW)
    """A file with the certificates (PEM) that the server's must come from; not set: those of the system."""
    https_ssl_keystore_location: str = option(STRING, default="", importance=Importance.LOW)
    """A file with the certificate and the key (PEM) that this side shows."""
    https_ssl_key_password: str = option(PASSWORD, default="", importance=Importance.LOW)
    """The password of that key."""

    @override
    def problems(self) -> Iterable[Problem]:
        for key, name in _NEEDED.get(self.http_authorization_type, {}).items():
            if not getattr(self, name):
                told = f"must be given with http.authorization.type={self.http_authorization_type}"
                yield Problem(key, f'Invalid value "" for configuration {key}: {told}')
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

    @property
    def timeout_seconds(self) -> float:
        """How long a whole request may take."""
        return self.http_request_timeout_ms / 1000 if self.http_request_timeout_ms else self.http_timeout

    def more_headers(self) -> dict[str, str]:
        """The headers that are configured; raises ConfigError."""
        found = _headers("http.headers.additional", self.http_headers_additional, separator=",")
        return {**found, **_headers("headers", self.headers, separator=self.header_separator)}


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
    """The header Content-Type of a body; none when it stands among the other headers."""
    if config.http_headers_content_type:
        return {"Content-Type": config.http_headers_content_type}
    return {} if any(name.lower() == "content-type" for name in config.more_headers()) else {"Content-Type": default}


def url_problems(key: str, text: str) -> Iterable[Problem]:
    """What is wrong with a URL."""
    try:
        url = httpx2.URL(text)
        is_right = url.scheme in ("http", "https") and bool(url.host)
    except httpx2.InvalidURL:
        is_right = False
    if not is_right:
        yield Problem(key, f"Invalid value {text} for configuration {key}: must be a URL, http://… or https://…")


def _headers(key: str, text: str, *, separator: str) -> dict[str, str]:
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
    """What an operator may say about sending records to an API."""

    http_url: str = option(STRING, check=not_empty(), aliases=("http.api.url",), importance=Importance.HIGH)
    """Where records are sent. `${topic}`, `${partition}`, `${offset}`, `${timestamp}`, `${key}`, `${key.field}`,
    `${header.name}` and `${field}` (of the value, `${value.field}` too) are filled in, encoded for URLs."""
    request_method: str = option(
        UPPER_CASE, default="POST", check=one_of("POST", "PUT", "PATCH"), aliases=("http.request.method",)
    )
    """How records are sent: POST, PUT or PATCH."""
    request_body_format: str | None = option(optional(LOWER_CASE), default=None, check=one_of("json", "string"))
    """json: values as JSON, text as it is. string: as Java writes values. Not set: json, but string for Confluent's
    class."""
    behavior_on_null_values: str = option(LOWER_CASE, default="ignore", check=one_of("ignore", "log", "fail", "delete"))
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


_REQUESTS, _PAGES = "Requests", "Pages"
_CONFLUENT: Final = {"simple_incrementing": "page", "chaining": "record", "cursor_pagination": "cursor"}
_MODE: Final = msgspec.structs.replace(STRING, read=lambda text: _CONFLUENT.get(text.lower(), text.lower()))
_KNOWN: Final = re.compile(r"cursor|offset|page|offset\.[\w-]+")


class HttpSourceConfig(HttpConfig):
    """What an operator may say about asking an API for news."""

    http_request_url: str = option(
        STRING, check=not_empty(), aliases=("http.url", "url"), importance=Importance.HIGH, group=_REQUESTS
    )
    """What is asked for. `${cursor}`, `${offset}`, `${offset.name}` and `${page}` say where to go on; a parameter that
    would be empty is left out."""
    http_request_params: str = option(STRING, default="", group=_REQUESTS)
    """Parameters of the URL, `name=value&other=${offset}`, with the same names."""
    http_request_method: str = option(
        UPPER_CASE, default="GET", check=one_of("GET", "POST", "PUT"), aliases=("http.method",), group=_REQUESTS
    )
    """How it is asked for: GET, POST or PUT."""
    http_request_body: str = option(STRING, default="", group=_REQUESTS)
    """The body of requests, with the same names."""
    kafka_topic: str = option(
        STRING, check=not_empty(), aliases=("topic", "topic.name.pattern"), importance=Importance.HIGH, group=_ANSWERS
    )
    """The topic that records go to."""
    http_timer_interval_millis: int = option(
        LONG, default=60_000, check=at_least(0), aliases=("request.interval.ms", "poll.interval.ms"), group=_REQUESTS
    )
    """How long to wait after an answer without news."""
    http_timer_catchup_interval_millis: int = option(LONG, default=0, check=at_least(0), group=_REQUESTS)
    """How long to wait after an answer with news, when there may be more."""

    http_response_records_pointer: str = option(
        STRING,
        default="",
        aliases=("http.response.list.pointer", "http.response.data.json.pointer"),
        importance=Importance.HIGH,
        group=_ANSWERS,
    )
    """Where the records are in an answer, as a JSON pointer such as /data/items; not set: the answer itself. What is no
    array is one record."""
    http_response_list_order_direction: str = option(
        LOWER_CASE, default="asc", check=one_of("asc", "desc"), group=_ANSWERS
    )
    """asc: what is new stands behind what is old in an answer. desc: before it."""
    http_response_record_pointer: str = option(STRING, default="", group=_ANSWERS)
    """What of a record becomes the value, as a JSON pointer into it; not set: all."""
    http_response_key_pointer: str = option(
        STRING, default="", aliases=("http.response.record.key.pointer",), group=_ANSWERS
    )
    """What of a record becomes the key; not set: none."""
    http_response_timestamp_pointer: str = option(
        STRING, default="", aliases=("http.response.record.timestamp.pointer",), group=_ANSWERS
    )
    """What of a record is its time: milliseconds or seconds since 1970, or ISO 8601; not set: none."""
    http_response_value_format: str = option(LOWER_CASE, default="json", check=one_of("json", "string"), group=_ANSWERS)
    """json: values are maps, lists, text and numbers without a schema. string: the record as JSON in a text."""
    http_response_bytes_max: int = option(INT, default=67_108_864, check=at_least(1024), group=_ANSWERS)
    """The largest answer that is taken."""
    batch_size: int = option(INT, default=500, check=between(1, 100_000), group=_ANSWERS)
    """Most records of one poll; what else is in an answer comes with the next ones."""

    http_pagination_mode: str = option(
        _MODE,
        default="auto",
        check=one_of("auto", "cursor", "link", "record", "offset", "page", "none"),
        aliases=("http.offset.mode",),
        group=_PAGES,
    )
    """How to go on. cursor: the answer says it. link: its Link header says it. record: the last record says it. offset:
    by how many there were. page: by numbers. none: all is read each time. auto: as the other options let expect."""
    http_response_offset_pointer: str = option(
        STRING,
        default="",
        aliases=("http.response.next.pointer", "http.next.page.json.pointer"),
        group=_PAGES,
    )
    """cursor: where an answer says how to go on, as a JSON pointer: a value for `${cursor}`, or the next URL."""
    http_response_record_offset_pointer: str = option(
        STRING, default="", aliases=("http.offset.json.pointer",), group=_PAGES
    )
    """record: what of a record says how to go on behind it, for `${offset}`; several as `name=/pointer, other=/other`,
    for `${offset.name}`."""
    http_offset_initial: str = option(STRING, default="", aliases=("http.initial.offset",), group=_PAGES)
    """Where to begin: a value, or `name=value, other=value`."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from url_problems("http.request.url", Template(self.http_request_url).filled(lambda _: "x"))
        unknown = [name for name in self.names if not _KNOWN.fullmatch(name)]
        if unknown:
            told = "must be ${cursor}, ${offset}, ${offset.name} or ${page}"
            yield Problem(
                "http.request.url", f"Invalid value ${{{unknown[0]}}} for configuration http.request.url: {told}"
            )
        for mode, key, text in (
            ("cursor", "http.response.offset.pointer", self.http_response_offset_pointer),
            ("record", "http.response.record.offset.pointer", self.http_response_record_offset_pointer),
        ):
            if self.mode == mode and not text:
                yield Problem(key, f'Invalid value "" for configuration {key}: must be given with {mode}')

    @property
    def names(self) -> list[str]:
        """The names that requests use."""
        texts = (self.http_request_url, self.http_request_params, self.http_request_body)
        return [name for text in texts for name in Template(text).names]

    @property
    def mode(self) -> str:
        """How to go on, when it is not told."""
        if self.http_pagination_mode != "auto":
            return self.http_pagination_mode
        if self.http_response_offset_pointer:
            return "cursor"
        if self.http_response_record_offset_pointer:
            return "record"
        return next((mode for mode in ("page", "offset") if mode in self.names), "none")

    @property
    def offset_pointers(self) -> dict[str, str]:
        """Names and pointers of what says how to go on behind a record; one without a name is called offset."""
        return _named(self.http_response_record_offset_pointer)

    @property
    def initial(self) -> dict[str, str]:
        """Names and values of where to begin, for mode record; one without a name is called offset."""
        return _named(self.http_offset_initial)

    @property
    def follows_links(self) -> bool:
        """Whether what says how to go on is a URL, and no value for a name."""
        return self.mode == "link" or not {"cursor", "offset"}.intersection(self.names)


def _named(text: str) -> dict[str, str]:
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        found[name.strip() if equals else "offset"] = value.strip() if equals else item
    return found
