"""Options of the source. Keys of castorm's connector, and those of Confluent's that mean the same, are understood."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from typing_extensions import override

from connect.api.config import (
    INT,
    LONG,
    STRING,
    Importance,
    Problem,
    at_least,
    between,
    not_empty,
    one_of,
    option,
)
from connectors.http.options import CHOICE, HttpConfig, url_problems
from connectors.http.template import Template

_METHOD: Final = msgspec.structs.replace(STRING, read=str.upper)
_REQUESTS, _ANSWERS, _PAGES = "Requests", "Answers", "Pages"
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
        _METHOD, default="GET", check=one_of("GET", "POST", "PUT"), aliases=("http.method",), group=_REQUESTS
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
    http_response_list_order_direction: str = option(CHOICE, default="asc", check=one_of("asc", "desc"), group=_ANSWERS)
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
    http_response_value_format: str = option(CHOICE, default="json", check=one_of("json", "string"), group=_ANSWERS)
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
