"""Metadata transactions (KIP-868): batches of records that count together, once the last of them is committed.

Caudal writes a change as one batch and needs none. A controller of Apache Kafka begins a cluster with one.
"""

from collections.abc import Iterable

from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored


class MetadataTransaction:
    """Holds records back between the begin and the end of a transaction."""

    def __init__(self) -> None:
        self._held: list[Message] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended. No snapshot may end here: it would lack what is held back."""
        return self._held is not None

    def take(self, records: Iterable[Message]) -> list[Message]:
        """The records that count now, after the next ones of the log."""
        counting: list[Message] = []
        for record in records:
            match record:
                case stored.BeginTransactionRecord():
                    self._held = []
                case stored.EndTransactionRecord():
                    counting += self._held or []
                    self._held = None
                case stored.AbortTransactionRecord():
                    self._held = None
                case _ if self._held is not None:
                    self._held.append(record)
                case _:
                    counting.append(record)
        return counting
