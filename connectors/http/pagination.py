"""How to go on: what to ask for next, and how far each record of an answer goes. No I/O.

An offset names exactly what was read, so that a restart goes on behind it: which answer, and how many of its records.
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
class Question:
    """What to ask for: values for names, or a whole URL."""

    values: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, read."""

    records: Sequence[Any]
    document: Any
    headers: Mapping[str, str]
    url: str


@dataclass(frozen=True, slots=True)
class Found:
    """A record, and where to go on behind it; without a position, and with an error, when it does not say."""

    record: Any
    position: Position
    error: DataError | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What is new, where to go on behind all of it, and whether there may be more already."""

    found: Sequence[Found]
    position: Position
    has_more: bool


Ask = Callable[[Question], Reply]


class Pagination(ABC):
    """One way of going on."""

    @abstractmethod
    def step(self, position: Position, ask: Ask) -> Step:
        """Ask for what is behind a position, which is empty at the beginning."""


def pagination_of(config: HttpSourceConfig) -> Pagination:
    """The way that this configuration wants."""
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
    """The answer says where the next one is; the last one is asked for again, as more may be added to it."""

    def __init__(self, config: HttpSourceConfig, initial: str) -> None:
        self._initial = initial
        self._origin = urlsplit(config.http_request_url)[:2]
        self._follows_links = config.follows_links
        by_header = config.mode == "link"
        self._pointer = None if by_header else pointer.parts_of(config.http_response_offset_pointer)

    @override
    def step(self, position: Position, ask: Ask) -> Step:
        cursor = str(position.get("cursor", self._initial))
        seen = int(position.get("index", 0))
        url = cursor if self._follows_links and cursor else None
        reply = ask(Question({"cursor": cursor, "offset": cursor}, url))
        following = self._next(reply)
        found = _numbered(reply.records, seen, {"cursor": cursor})
        if not following or following == cursor:
            end: Position = {"cursor": cursor, "index": max(seen, len(reply.records))}
            return Step(found, end, has_more=False)
        end = {"cursor": following, "index": 0}
        if found:
            found[-1] = Found(found[-1].record, end)
        return Step(found, end, has_more=bool(reply.records))

    def _next(self, reply: Reply) -> str:
        if self._pointer is None:
            links = {kind: target for target, kind in _LINK.findall(reply.headers.get("link", ""))}
            value: Any = links.get("next")
        else:
            value = pointer.find(reply.document, self._pointer)
        if value is None or value is pointer.MISSING or value is False:
            return ""
        if isinstance(value, dict | list):
            raise ConnectError(f"what says how to go on must be text or a number, not {type(value).__name__}")
        return self._safe(urljoin(reply.url, str(value))) if self._follows_links and value else str(value)

    def _safe(self, url: str) -> str:
        """Credentials go along with each request, so a link must not lead elsewhere."""
        if urlsplit(url)[:2] != self._origin:
            raise ConnectError(
                f"the next page is on another server, where it is not asked for: {url.partition('?')[0]}"
            )
        return url


class _ByRecord(Pagination):
    """Each record says how to go on behind it. Answers may begin with what was read already."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self._initial = config.initial
        self._pointers = {name: pointer.parts_of(text) for name, text in config.offset_pointers.items()}

    @override
    def step(self, position: Position, ask: Ask) -> Step:
        known = {name: str(position.get(name, self._initial.get(name, ""))) for name in self._pointers}
        values = {f"offset.{name}": text for name, text in known.items()}
        last = next(iter(known.values()), "")
        reply = ask(Question({**values, "offset": last, "cursor": last}))
        found = self._found(reply.records, position)
        fresh = found[self._read_before(found, position) :]
        good = [item for item in fresh if item.error is None]
        return Step(fresh, good[-1].position if good else position, has_more=bool(good))

    def _found(self, records: Sequence[Any], position: Position) -> list[Found]:
        found: list[Found] = []
        before: Position = {}
        for record in records:
            try:
                own = self._own(record)
            except DataError as error:
                found.append(Found(record, before or position, error))
                continue
            # Several records with the same offset, a time for instance, are told apart by their number.
            number = int(before["index"]) + 1 if _same(own, before) else 1
            before = {**own, "index": number}
            found.append(Found(record, before))
        return found

    def _own(self, record: Any) -> Position:
        own: Position = {}
        for name, parts in self._pointers.items():
            value = pointer.find(record, parts)
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise DataError(f"a record has no offset at /{'/'.join(parts)}")
            own[name] = str(value)
        return own

    def _read_before(self, found: Sequence[Found], position: Position) -> int:
        """How many of an answer were read already: all up to the last one that was, if it is there."""
        last = 0
        for place, item in enumerate(found, 1):
            is_same = item.error is None and _same(item.position, position)
            if is_same and int(item.position["index"]) <= int(position.get("index", 1)):
                last = place
        return last


class _ByCount(Pagination):
    """By how many records there were."""

    def __init__(self, initial: int) -> None:
        self._initial = initial

    @override
    def step(self, position: Position, ask: Ask) -> Step:
        offset = int(position.get("offset", self._initial))
        records = ask(Question({"offset": str(offset), "cursor": str(offset)})).records
        found = [Found(record, {"offset": offset + place}) for place, record in enumerate(records, 1)]
        return Step(found, {"offset": offset + len(records)}, has_more=bool(records))


class _ByPage(Pagination):
    """By numbers of pages; the last page may grow, and is left only when the next one has records."""

    def __init__(self, initial: int) -> None:
        self._initial = initial

    @override
    def step(self, position: Position, ask: Ask) -> Step:
        page, seen = int(position.get("page", self._initial)), int(position.get("index", 0))
        records = self._ask(page, ask)
        if len(records) <= seen and seen:
            following = self._ask(page + 1, ask)
            # The page may have been filled in the meantime: look once more before it is left.
            records = self._ask(page, ask) if following else records
            if following and len(records) <= seen:
                page, seen, records = page + 1, 0, following
        found = _numbered(records, seen, {"page": page})
        return Step(found, {"page": page, "index": max(seen, len(records))}, has_more=bool(found))

    def _ask(self, page: int, ask: Ask) -> Sequence[Any]:
        return ask(Question({"page": str(page), "offset": str(page), "cursor": str(page)})).records


class _Everything(Pagination):
    """All records, each time."""

    @override
    def step(self, position: Position, ask: Ask) -> Step:
        times = int(position.get("times", 0))
        found = _numbered(ask(Question()).records, 0, {"times": times})
        return Step(found, {"times": times + 1}, has_more=False)


def _numbered(records: Sequence[Any], seen: int, place: Position) -> list[Found]:
    """The records behind the first ones, with how many there are up to each."""
    return [Found(record, {**place, "index": number}) for number, record in enumerate(records, 1) if number > seen]


def _same(own: Position, other: Position) -> bool:
    return bool(other) and all(own.get(name) == value for name, value in other.items() if name != "index")


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() else default
