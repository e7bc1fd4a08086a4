"""How live streams are written: lines of JSON, or server-sent events that browsers resume by themselves."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.rendering import Rendering
from rest_proxy.errors import ProxyError

NDJSON = b"application/x-ndjson"
SERVER_SENT_EVENTS = b"text/event-stream"
_RETRY_MS = 1000
_POSITION = re.compile(r"\d{1,10}:\d{1,18}(?:,\d{1,10}:\d{1,18})*", re.ASCII)

Positions = dict[int, int]
"""The next offset of each partition."""


class Ending(msgspec.Struct, omit_defaults=True):
    """Why a stream ended, and where to go on."""

    reason: str
    position: str
    error_code: int | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Frames(Protocol):
    """One way to write a stream."""

    def opening(self) -> bytes:
        """What comes before the first record."""

    def records(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records, and whatever lets a client go on after each of them."""

    def heartbeat(self) -> bytes:
        """That the stream lives."""

    def ending(self, reason: str, error: ProxyError | None = None) -> bytes:
        """That nothing more comes."""


class JsonLines:
    """One record a line; an empty line is a heartbeat. Only an end that the client did not ask for has a line."""

    def __init__(self, rendering: Rendering, positions: Mapping[int, int]) -> None:
        self._rendering = rendering
        self._positions = dict(positions)

    def opening(self) -> bytes:
        """Nothing."""
        return b""

    def records(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records, a line each."""
        for record in records:
            self._positions[record.partition] = record.offset + 1
        return self._rendering.lines(records)

    def heartbeat(self) -> bytes:
        """An empty line."""
        return b"\n"

    def ending(self, reason: str, error: ProxyError | None = None) -> bytes:
        """The error, if it is one."""
        return b"" if error is None else _ending(reason, error, self._positions) + b"\n"


class ServerSentEvents:
    """One event a record; its id is the position after it, which a browser sends back when it connects again."""

    def __init__(self, rendering: Rendering, positions: Mapping[int, int]) -> None:
        self._rendering = rendering
        self._positions = dict(positions)

    def opening(self) -> bytes:
        """How long to wait before connecting again, and where to go on if no record comes before that."""
        return b"retry: %d\nid: %b\n\n" % (_RETRY_MS, position_text(self._positions).encode())

    def records(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records, an event each."""
        lines = iter(self._rendering.lines(records).split(b"\n"))
        events: list[bytes] = []
        for partition, run in groupby(records, key=attrgetter("partition")):
            before, after = self._around(partition)
            offset = -1
            for record in run:
                offset = record.offset + 1
                events.append(b"id: %b%d%b\ndata: %b\n\n" % (before, offset, after, next(lines)))
            self._positions[partition] = offset
        return b"".join(events)

    def heartbeat(self) -> bytes:
        """A comment."""
        return b": heartbeat\n\n"

    def ending(self, reason: str, error: ProxyError | None = None) -> bytes:
        """An event of its own, so that a client can tell that it need not connect again."""
        return b"event: end\ndata: %b\n\n" % _ending(reason, error, self._positions)

    def _around(self, partition: int) -> tuple[bytes, bytes]:
        """What stands before and after one partition's offset in a position."""
        others = self._positions | {partition: -1}
        before, _, after = position_text(others).partition(":-1")
        return before.encode() + b":", after.encode()


def position_text(positions: Mapping[int, int]) -> str:
    """A position in all partitions: `0:17,1:5` means that offsets 17 and 5 come next."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def parse_position(text: str) -> Positions:
    """A position as it was told; raises ProxyError."""
    if not _POSITION.fullmatch(text):
        told = text.encode(errors="replace").decode()[:80]
        raise ProxyError(
            400, f"Position {told!r} (position or Last-Event-ID) must be partition:offset,..., as in 0:17,1:5"
        )
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def _ending(reason: str, error: ProxyError | None, positions: Mapping[int, int]) -> bytes:
    ending = Ending(reason, position_text(positions))
    if error is not None:
        ending.error_code, ending.message = error.code, error.message
    return msgspec.json.encode(ending)
