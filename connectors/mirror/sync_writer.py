"""Writes down which record of the source is which of the target, seldom enough to cost nothing."""

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from connectors.mirror.formats import OffsetSync, write_sync
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError
from core_broker.client.producer import OnDelivery
from core_broker.client.records import Delivery, OutgoingRecord

log = logging.getLogger(__name__)

_MOST_UNDER_WAY: Final = 500
_REST_SECONDS: Final = 1.0
_NOTHING: Final = (-1, -1)


class Sender(Protocol):
    """What sends syncs."""

    def send(self, record: OutgoingRecord, on_delivery: OnDelivery | None = None) -> None:
        """Queue a record."""

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Let deliveries be told."""


class SyncWriter:
    """Sends syncs to the topic of offset syncs; those that fail are missed by nobody, as later ones say more.

    A sync goes out when `lag_max` records have been written since the one before it, and a second after the last
    record: groups that have read all are put at the end of the copy.
    """

    def __init__(self, producer: Sender, topic: str, *, lag_max: int) -> None:
        self._producer = producer
        self._topic = topic
        self._step = max(1, lag_max)
        self._progress: dict[TopicPartition, tuple[int, int]] = {}
        """The last record of the source, and the offset of the target from which on a sync is due."""
        self._waiting: dict[TopicPartition, tuple[int, int]] = {}
        self._under_way = 0
        self._next_rest = 0.0

    def note(self, place: TopicPartition, upstream: int, downstream: int) -> None:
        """A record was written."""
        last, due = self._progress.get(place, _NOTHING)
        # A record that does not follow the last one begins a new copy: the source or the target begins again.
        if (downstream >= due or upstream <= last or downstream < due - self._step) and self._send(
            OffsetSync(place, upstream, downstream)
        ):
            due = downstream + self._step
            self._waiting.pop(place, None)
        else:
            self._waiting[place] = upstream, downstream
        self._progress[place] = upstream, due

    def rest(self) -> None:
        """Send what was not due by number of records, when it is by time."""
        self._producer.poll()
        if self._waiting and time.monotonic() >= self._next_rest:
            self._next_rest = time.monotonic() + _REST_SECONDS
            waiting, self._waiting = self._waiting, {}
            for place, pair in waiting.items():
                if not self._send(OffsetSync(place, *pair)):
                    self._waiting[place] = pair

    def finish(self, *, give_up: Callable[[], bool] = lambda: False) -> None:
        """Send what is left, and wait for it a little."""
        self._next_rest = 0.0
        self.rest()
        deadline = time.monotonic() + _REST_SECONDS
        while self._under_way and time.monotonic() < deadline and not give_up():
            self._producer.poll(0.05)

    def _send(self, sync: OffsetSync) -> bool:
        if self._under_way >= _MOST_UNDER_WAY:
            return False
        key, value = write_sync(sync)
        try:
            record = OutgoingRecord(topic=self._topic, partition=0, key=key, value=value)
            self._producer.send(record, self._told)
        except ClientError as error:
            log.warning("an offset sync was not sent", extra={"topic": self._topic, "error": str(error)})
            return False
        self._under_way += 1
        return True

    def _told(self, outcome: Delivery | ClientError) -> None:
        self._under_way -= 1
        if isinstance(outcome, ClientError):
            log.warning("an offset sync was not written", extra={"topic": self._topic, "error": str(outcome)})
