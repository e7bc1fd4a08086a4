"""Which page to request next, and the position after each of its records. No I/O.

A position names exactly what was read: which page, and how many of its records.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from typing_extensions import override

from connect.api.errors import ConnectError, DataError
from connectors.http import pointer
from connectors.http.config import HttpSourceConfig

Position = dict[str, str | int]
_LINK: Final = re.compile(r'<([^>]*)>[^,]*?;\s*rel="?([^",;]*)"?')


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Values for the names in the URL, or a whole URL."""

    values: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A decoded response."""

    records: Sequence[Any]
    document: Any
    headers: Mapping[str, str]
    url: str


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record and the position after it; if it has none, an error and the position before it."""

    record: Any
    position: Position
    error: DataError | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The new records, the position after all of them, and whether there may be more already."""

    records: Sequence[ReadRecord]
    position: Position
    has_more: bool


Fetch = Callable[[PageRequest], Page]


class Pagination(ABC):
    """One way of going on."""

    @abstractmethod
    def step(self, position: Position, fetch: Fetch) -> Step:
        """Fetch what follows a position, which is empty at the beginning."""


def pagination_of(config: HttpSourceConfig) -> Pagination:
    """The configured mode."""
    initial = config.http_offset_initial
    match config.mode:
        case "cursor" | "link":
            return _Cursor(config, initial)
        case "record":
            return _ByRecord(config)
        case "offset":
            return _ByCount(_number(initial, 0))
        case "page":
            return _ByPage(_number(initial, 1))
        case _:
            return _Everything()


class _Cursor(Pagination):
    """A page has the cursor or link of the next one; the last page is requested again, since it may grow."""

    def __init__(self, config: HttpSourceConfig, initial: str) -> None:
        self._initial = initial
        self._origin = urlsplit(config.http_request_url)[:2]
        self._follows_links = config.follows_links
        by_header = config.mode == "link"
        self._pointer = None if by_header else pointer.parts_of(config.http_response_offset_pointer)

    @override
    def step(self, position: Position, fetch: Fetch) -> Step:
        cursor = str(position.get("cursor", self._initial))
        seen = int(position.get("index", 0))
        url = cursor if self._follows_links and cursor else None
        page = fetch(PageRequest({"cursor": cursor, "offset": cursor}, url))
        following = self._next(page)
        found = _number_records(page.records, seen, {"cursor": cursor})
        if not following or following == cursor:
            end: Position = {"cursor": cursor, "index": max(seen, len(page.records))}
            return Step(found, end, has_more=False)
        end = {"cursor": following, "index": 0}
        if found:
            found[-1] = ReadRecord(found[-1].record, end)
        return Step(found, end, has_more=bool(page.records))

    def _next(self, page: Page) -> str:
        if self._pointer is None:
            links = {kind: target for target, kind in _LINK.findall(page.headers.get("link", ""))}
            value: Any = links.get("next")
        else:
            value = pointer.find(page.document, self._pointer)
        if value is None or value is pointer.MISSING or value is False:
            return ""
        if isinstance(value, dict | list):
            raise ConnectError(f"the next cursor must be text or a number, not {type(value).__name__}")
        if not self._follows_links or not value:
            return str(value)
        url = urljoin(page.url, str(value))
        # Every request carries credentials, so a link must not lead to another server.
        if urlsplit(url)[:2] != self._origin:
            raise ConnectError(f"the next page is on another server and is not requested: {url.partition('?')[0]}")
        return url


class _ByRecord(Pagination):
    """Each record holds the position after it. A page may begin with records that were read already."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self._initial = config.initial
        self._pointers = {name: pointer.parts_of(text) for name, text in config.offset_pointers.items()}

    @override
    def step(self, position: Position, fetch: Fetch) -> Step:
        known = {name: str(position.get(name, self._initial.get(name, ""))) for name in self._pointers}
        values = {f"offset.{name}": text for name, text in known.items()}
        last = next(iter(known.values()), "")
        page = fetch(PageRequest({**values, "offset": last, "cursor": last}))
        found = self._read_records(page.records, position)
        fresh = found[self._read_before(found, position) :]
        good = [item for item in fresh if item.error is None]
        return Step(fresh, good[-1].position if good else position, has_more=bool(good))

    def _read_records(self, records: Sequence[Any], position: Position) -> list[ReadRecord]:
        found: list[ReadRecord] = []
        before: Position = {}
        for record in records:
            try:
                own = self._offset_of(record)
            except DataError as error:
                found.append(ReadRecord(record, before or position, error))
                continue
            # Records with the same offset, such as a timestamp, are distinguished by their number.
            number = int(before["index"]) + 1 if _same(own, before) else 1
            before = {**own, "index": number}
            found.append(ReadRecord(record, before))
        return found

    def _offset_of(self, record: Any) -> Position:
        own: Position = {}
        for name, parts in self._pointers.items():
            value = pointer.find(record, parts)
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise DataError(f"the record has no offset at /{'/'.join(parts)}")
            own[name] = str(value)
        return own

    def _read_before(self, found: Sequence[ReadRecord], position: Position) -> int:
        """How many records of a page were read already: all up to the last one that was, if it is there."""
        last = 0
        for place, item in enumerate(found, 1):
            is_same = item.error is None and _same(item.position, position)
            if is_same and int(item.position["index"]) <= int(position.get("index", 1)):
                last = place
        return last


class _ByCount(Pagination):
    """By the number of records."""

    def __init__(self, initial: int) -> None:
        self._initial = initial

    @override
    def step(self, position: Position, fetch: Fetch) -> Step:
        offset = int(position.get("offset", self._initial))
        records = fetch(PageRequest({"offset": str(offset), "cursor": str(offset)})).records
        found = [ReadRecord(record, {"offset": offset + place}) for place, record in enumerate(records, 1)]
        return Step(found, {"offset": offset + len(records)}, has_more=bool(records))


class _ByPage(Pagination):
    """By the number of the page; the last page may grow, and is left only when the next one has records."""

    def __init__(self, initial: int) -> None:
        self._initial = initial

    @override
    def step(self, position: Position, fetch: Fetch) -> Step:
        page, seen = int(position.get("page", self._initial)), int(position.get("index", 0))
        records = self._ask(page, fetch)
        if len(records) <= seen and seen:
            following = self._ask(page + 1, fetch)
            # The page may have grown in the meantime: look once more before it is left.
            records = self._ask(page, fetch) if following else records
            if following and len(records) <= seen:
                page, seen, records = page + 1, 0, following
        found = _number_records(records, seen, {"page": page})
        return Step(found, {"page": page, "index": max(seen, len(records))}, has_more=bool(found))

    def _ask(self, page: int, fetch: Fetch) -> Sequence[Any]:
        return fetch(PageRequest({"page": str(page), "offset": str(page), "cursor": str(page)})).records


class _Everything(Pagination):
    """All records, each time."""

    @override
    def step(self, position: Position, fetch: Fetch) -> Step:
        times = int(position.get("times", 0))
        found = _number_records(fetch(PageRequest()).records, 0, {"times": times})
        return Step(found, {"times": times + 1}, has_more=False)


def _number_records(records: Sequence[Any], seen: int, place: Position) -> list[ReadRecord]:
    """The records after those that were seen, each with its number in the page."""
    return [ReadRecord(record, {**place, "index": number}) for number, record in enumerate(records, 1) if number > seen]


def _same(own: Position, other: Position) -> bool:
    return bool(other) and all(own.get(name) == value for name, value in other.items() if name != "index")


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() else default
