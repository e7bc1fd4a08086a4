"""Records as clients see them, and where they went."""

from collections.abc import Sequence

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


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a record went."""

    topic: str
    partition: int
    offset: int
    """-1 when nobody told it (acks=0)."""
    timestamp_ms: int
