"""Records as clients see them, and where they were written."""

from collections.abc import Sequence

import msgspec

Header = tuple[str, bytes | None]


class OutgoingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record to be sent; the producer chooses what is None."""

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
    """Where a record was written."""

    topic: str
    partition: int
    offset: int
    """-1 when it is unknown (acks=0)."""
    timestamp_ms: int
