"""Positions in a topic as users write them: beginning, end, an offset, the last few records, a time."""

import re
from datetime import datetime
from typing import Literal

import msgspec

from core_broker.service.clock import Clock

_OFFSET = re.compile(r"\d+")
_LAST = re.compile(r"-(\d+)")
_AGO = re.compile(r"-?(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)(?:\s+ago)?")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

ALLOWED = "beginning, end, an offset (42), the last ones (-10), a time (2026-11-16T10:30) or how long ago (15m, 2h, 1d)"


class Position(msgspec.Struct, frozen=True):
    """A position in a log; `value` is an offset, a count or a time in ms, depending on the kind."""

    kind: Literal["beginning", "end", "offset", "last", "time"]
    value: int = 0


def parse_position(text: str, clock: Clock) -> Position:
    """Read a position; the ValueError says what is allowed."""
    word = text.strip().lower()
    if word in ("beginning", "earliest", "start"):
        return Position("beginning")
    if word in ("end", "latest", "now"):
        return Position("end")
    if _OFFSET.fullmatch(word):
        return Position("offset", int(word))
    if match := _LAST.fullmatch(word):
        return Position("last", int(match[1]))
    if match := _AGO.fullmatch(word):
        return Position("time", clock.now_ms() - int(float(match[1]) * _UNIT_MS[match[2]]))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text.strip()!r} is not a position; say {ALLOWED}") from None
    return Position("time", int(moment.astimezone().timestamp() * 1000))  # without a zone, in the user's own


def resolve(position: Position, *, first: int, end: int, timed: int = -1) -> int:
    """The offset of a position in a partition that holds `first` to `end`.

    `timed` is the broker's answer for a time: the first offset from then on, or -1 when that is after the last record.
    """
    match position.kind:
        case "beginning":
            return first
        case "end":
            return end
        case "offset":
            return min(max(position.value, first), end)
        case "last":
            return max(end - position.value, first)
        case "time":
            return timed if timed >= 0 else end
