"""What every client library can do, in one shape, so that a flow is written once and run with each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

TIMEOUT_S: Final = 40.0
Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A record on its way in."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A record on its way out."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Records that are committed or aborted together."""

    records: Sequence[Sent]
    commit: bool


class Client(Protocol):
    """One client library. Every call opens its own connections and closes them."""

    name: str
    codecs: frozenset[str]
    """Codecs it can write."""
    sets_timestamps: bool

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        """Send records and wait until all are acknowledged."""

    def consume(self, bootstrap: str, topic: str, count: int, *, isolation: str = "read_uncommitted") -> list[Received]:
        """Read from the beginning of every partition, without a group, until `count` records came."""

    def consume_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[Received]:
        """Join a group, read `count` records from where it stands, commit them and leave."""

    def transact(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """Run transactions one after the other with one producer."""


class NotEnoughRecords(AssertionError):
    """A consumer waited for its whole time and did not get what was expected."""
