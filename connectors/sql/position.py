"""How far a table has been read, in the format of Kafka Connect's JDBC source, whose offsets can be taken over."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from connect.api.data import Value
from connect.api.errors import ConnectError
from connectors.sql.dialect import Table

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
QUERY_PARTITION: Final[Mapping[str, str]] = {"query": "query"}
_KEYS: Final = frozenset(("incrementing", "timestamp", "timestamp_nanos"))


class Position(msgspec.Struct, frozen=True):
    """The last row that was read, by its timestamp, its number, or both."""

    timestamp: datetime | None = None
    incrementing: int | None = None

    def to_offset(self) -> dict[str, int]:
        """The stored form: milliseconds since 1970, and the nanoseconds of the second."""
        offset = {}
        if self.incrementing is not None:
            offset["incrementing"] = self.incrementing
        if self.timestamp is not None:
            offset["timestamp"] = (self.timestamp - _EPOCH) // _MILLISECOND
            offset["timestamp_nanos"] = self.timestamp.microsecond * 1000
        return offset

    @classmethod
    def from_offset(cls, offset: Mapping[str, Value] | None) -> "Position":
        """From the stored form; the beginning when nothing was stored."""
        found = offset or {}
        milliseconds, nanoseconds = found.get("timestamp"), found.get("timestamp_nanos")
        timestamp = None
        if milliseconds is not None:
            timestamp = _EPOCH + _MILLISECOND * int(milliseconds)
            if nanoseconds is not None:
                timestamp = timestamp.replace(microsecond=int(nanoseconds) // 1000)
        number = found.get("incrementing")
        return cls(timestamp=timestamp, incrementing=None if number is None else int(number))


def partition_of(table: Table) -> dict[str, str]:
    """The source partition of a table's position."""
    return {"protocol": "1", "table": str(table)}


def old_partition_of(table: Table) -> dict[str, str]:
    """The same in old versions and in bulk mode."""
    return {"table": table.name}


def check_altered(partition: Mapping[str, Value], offset: Mapping[str, Value] | None) -> None:
    """Check offsets that an operator sets; raises ConnectError."""
    if set(partition) not in ({"query"}, {"table"}, {"table", "protocol"}):
        reason = 'must be {"protocol": "1", "table": "…"} or {"query": "query"}'
        raise ConnectError(f"the partition {dict(partition)} {reason}")
    for key, value in (offset or {}).items():
        if key not in _KEYS:
            raise ConnectError(f"the offset has an unknown key {key}: it must be one of {', '.join(sorted(_KEYS))}")
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConnectError(f"the offset's {key} must be a whole number, not {value!r}")
