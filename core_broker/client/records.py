"""Records as clients see them, and where they went."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

Header = tuple[str, bytes | None]


class OutgoingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record to be sent; what is not given is left to the producer."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class IncomingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    """CreateTime, LogAppendTime, or empty when the record has no time."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where a record went."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
