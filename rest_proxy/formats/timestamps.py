"""Timestamps in requests: milliseconds since 1970, or ISO 8601."""

from datetime import UTC, datetime
from typing import Final

MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
"""The end of the year 9999: the last one that ISO 8601 can express."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(text: str) -> int | None:
    """Milliseconds since 1970, not checked for their range; None if the text is neither a number nor ISO 8601."""
    if len(text) <= 20 and text.isascii() and text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
        since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        return None
    # In integers: a float of seconds, times 1000, may be off by a millisecond.
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
