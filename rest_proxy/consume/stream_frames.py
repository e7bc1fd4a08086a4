"""Framing of live streams: lines of JSON, or server-sent events, which browsers resume by themselves."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.rendering import RecordRenderer
from rest_proxy.errors import ProxyError

NDJSON = b"application/x-ndjson"
SERVER_SENT_EVENTS = b"text/event-stream"
_RETRY_MS = 1000
_POSITION = re.compile(r"\d{1,10}:\d{1,18}(?:,\d{1,10}:\d{1,18})*", re.ASCII)

StreamPosition = dict[int, int]
"""The next offset of each partition."""


class Ending(msgspec.Struct, omit_defaults=True):
    """Why a stream ended, and where the next one should begin."""

    reason: str
    position: str
    error_code: int | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Frames(Protocol):
    """One way to frame a stream."""

    def opening(self) -> bytes:
        """What comes before the first record."""

    def records(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records, and what a client needs to resume after each of them."""

    def heartbeat(self) -> bytes:
        """A sign that the stream is alive."""

    def ending(self, reason: str, error: ProxyError | None = None) -> bytes:
        """What comes after the last record."""


class JsonLines:
    """One record per line; an empty line is a heartbeat. The end has a line only if the client did not ask for it."""

    def __init__(self, renderer: RecordRenderer, positions: Mapping[int, int]) -> None:
        self._renderer = renderer
        self._positions = dict(positions)

    def opening(self) -> bytes:
        """Nothing."""
        return b""

    def records(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records, one line each."""
        for record in records:
            self._positions[record.partition] = record.offset + 1
        return self._renderer.render_lines(records)

    def heartbeat(self) -> bytes:
        """An empty line."""
        return b"\n"

    def ending(self, reason: str, error: ProxyError | None = None) -> bytes:
        """The error, if there is one."""
        return b"" if error is None else _ending(reason, error, self._positions) + b"\n"


class ServerSentEvents:
    """One event per record; its id is the position after it, which a browser sends back when it reconnects."""

    def __init__(self, renderer: RecordRenderer, positions: Mapping[int, int]) -> None:
        self._renderer = renderer
        self._positions = dict(positions)

    def opening(self) -> bytes:
        """How long to wait before reconnecting, and the position to resume at if no record comes before that."""
        return b"retry: %d\nid: %b\n\n" % (_RETRY_MS, position_text(self._positions).encode())

    def records(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records, one event each."""
        lines = iter(self._renderer.render_lines(records).split(b"\n"))
        events: list[bytes] = []
        for partition, run in groupby(records, key=attrgetter("partition")):
            # Within a run only this partition's offset changes: the text around it in the id is made once.
            text = position_text(self._positions | {partition: -1})
            before, after = (part.encode() for part in text.split(":-1", 1))
            offset = -1
            for record in run:
                offset = record.offset + 1
                events.append(b"id: %b:%d%b\ndata: %b\n\n" % (before, offset, after, next(lines)))
            self._positions[partition] = offset
        return b"".join(events)

    def heartbeat(self) -> bytes:
        """A comment."""
        return b": heartbeat\n\n"

    def ending(self, reason: str, error: ProxyError | None = None) -> bytes:
        """An event of its own type, so that a client knows not to reconnect."""
        return b"event: end\ndata: %b\n\n" % _ending(reason, error, self._positions)


def position_text(positions: Mapping[int, int]) -> str:
    """A position in all partitions: `0:17,1:5` means that offsets 17 and 5 come next."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def parse_position(text: str) -> StreamPosition:
    """Parse a position; raises ProxyError."""
    if not _POSITION.fullmatch(text):
        shown = text.encode(errors="replace").decode()[:80]
        raise ProxyError(
            400, f"Position {shown!r} (position or Last-Event-ID) must be partition:offset,..., as in 0:17,1:5"
        )
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def _ending(reason: str, error: ProxyError | None, positions: Mapping[int, int]) -> bytes:
    ending = Ending(reason, position_text(positions))
    if error is not None:
        ending.error_code, ending.message = error.code, error.message
    return msgspec.json.encode(ending)
