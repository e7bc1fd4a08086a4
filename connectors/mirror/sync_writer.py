"""Writes offset syncs (which offset of the source is which of the target), seldom enough to cost nothing."""

import logging
import time
from typing import Final, Protocol

from connectors.mirror.formats import OffsetSync, write_sync
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError
from core_broker.client.producer import OnDelivery
from core_broker.client.records import Delivery, OutgoingRecord

log = logging.getLogger(__name__)

_IN_FLIGHT_MAX: Final = 500
_INTERVAL_SECONDS: Final = 1.0
_NOTHING: Final = (-1, -1)


class Sender(Protocol):
    """A producer."""

    def send(self, record: OutgoingRecord, on_delivery: OnDelivery | None = None) -> None:
        """Queue a record."""

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Call the callbacks of deliveries."""


class SyncWriter:
    """Sends offset syncs; a failed one does no harm, since a later one replaces it.

    A sync is sent when `lag_max` records have been written since the last one, and a second after the last record, so
    that groups which have read everything are put at the end of the copy.
    """

    def __init__(self, producer: Sender, topic: str, *, lag_max: int) -> None:
        self._producer = producer
        self._topic = topic
        self._step = max(1, lag_max)
        self._progress: dict[TopicPartition, tuple[int, int]] = {}
        """The last offset of the source, and the offset of the target from which on a sync is due."""
        self._waiting: dict[TopicPartition, tuple[int, int]] = {}
        self._in_flight = 0
        self._next_send = 0.0

    def add(self, partition: TopicPartition, upstream: int, downstream: int) -> None:
        """A record was written to the target."""
        last, due = self._progress.get(partition, _NOTHING)
        # A record that does not follow the last one begins a new copy: the source or the target was recreated.
        if (downstream >= due or upstream <= last or downstream < due - self._step) and self._send(
            OffsetSync(partition, upstream, downstream)
        ):
            due = downstream + self._step
            self._waiting.pop(partition, None)
        else:
            self._waiting[partition] = upstream, downstream
        self._progress[partition] = upstream, due

    def send_due(self) -> None:
        """Send the last syncs of partitions once a second, however few records were written since."""
        self._producer.poll()
        if self._waiting and time.monotonic() >= self._next_send:
            self._next_send = time.monotonic() + _INTERVAL_SECONDS
            waiting, self._waiting = self._waiting, {}
            for partition, offsets in waiting.items():
                if not self._send(OffsetSync(partition, *offsets)):
                    self._waiting[partition] = offsets

    def finish(self) -> None:
        """Send what is left, and wait a little for its delivery."""
        self._next_send = 0.0
        self.send_due()
        deadline = time.monotonic() + _INTERVAL_SECONDS
        while self._in_flight and time.monotonic() < deadline:
            self._producer.poll(0.05)

    def _send(self, sync: OffsetSync) -> bool:
        if self._in_flight >= _IN_FLIGHT_MAX:
            return False
        key, value = write_sync(sync)
        try:
            record = OutgoingRecord(topic=self._topic, partition=0, key=key, value=value)
            self._producer.send(record, self._on_delivery)
        except ClientError as error:
            log.warning("an offset sync was not sent", extra={"topic": self._topic, "error": str(error)})
            return False
        self._in_flight += 1
        return True

    def _on_delivery(self, outcome: Delivery | ClientError) -> None:
        self._in_flight -= 1
        if isinstance(outcome, ClientError):
            log.warning("an offset sync was not delivered", extra={"topic": self._topic, "error": str(outcome)})
