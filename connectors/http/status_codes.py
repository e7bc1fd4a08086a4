"""HTTP statuses: configured sets, and which of them mean an outage."""

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final, Self

from connect.api.errors import ConfigError
from core_broker.service.clock import Clock

OUTAGES: Final = frozenset({401, 403, 407, 408, 425, 429})
"""Statuses below 500 that no record has caused: authorization and rate."""
_LONGEST_WAIT_MS: Final = 3_600_000
_RANGE: Final = re.compile(r"(\d{3})(?:\s*-\s*(\d{3})?)?")


@dataclass(frozen=True, slots=True)
class StatusCodes:
    """A set of statuses."""

    ranges: tuple[range, ...]

    @classmethod
    def parse(cls, key: str, text: str) -> Self:
        """Read `400,404-410,500-`; raises ConfigError with the key."""
        ranges = []
        for item in filter(None, (part.strip() for part in text.split(","))):
            found = _RANGE.fullmatch(item)
            if found is None:
                reason = "must be statuses and ranges, such as 408,429,500-"
                raise ConfigError(f"Invalid value {text} for configuration {key}: {reason}")
            first = int(found[1])
            last = int(found[2]) if found[2] else 599 if "-" in item else first
            ranges.append(range(first, last + 1))
        return cls(tuple(ranges))

    def __contains__(self, status: int) -> bool:
        return any(status in some for some in self.ranges)


def is_outage(status: int) -> bool:
    """Whether a status is about the API and not about the request."""
    return status in OUTAGES or not 400 <= status < 500


def retry_after_ms(header: str | None, clock: Clock) -> int | None:
    """The pause that a response asks for in seconds or by a date, at most an hour; None when it asks for none."""
    if not header:
        return None
    text = header.strip()
    if text.isdecimal() and len(text) < 10:
        return min(int(text) * 1000, _LONGEST_WAIT_MS)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, min(int(date.timestamp() * 1000) - clock.now_ms(), _LONGEST_WAIT_MS))
