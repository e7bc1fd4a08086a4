"""A producer for an event loop that reports the outcome of each record. Idempotent unless configured otherwise."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from core_broker.client.errors import ClientError, Fatal, NotAllowed, Retriable, from_kafka, from_queueing, map_errors
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration

log = logging.getLogger(__name__)

Outcome = Delivery | ClientError
"""Where a record was written, or why it was not."""

_BUSY_SECONDS = 0.001
_IDLE_SECONDS = 0.1
_PURGE_SECONDS = 2.0
_SILENCE_SECONDS = 1.0
"""How long no record may be acknowledged while some are in flight, before the cluster is suspected to be down."""
_NO_OFFSET = -1


class InFlight:
    """What several producers have sent and the cluster has not acknowledged."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0


class ErrorNotes:
    """Collects the errors of the library's producer for its owner."""

    def __init__(self) -> None:
        self.take: Callable[[KafkaError], None] = lambda _: None

    def __call__(self, error: KafkaError) -> None:
        """Called by the library."""
        self.take(error)


LibraryProducer: TypeAlias = tuple[confluent_kafka.Producer, ErrorNotes]


def make(settings: ClientSettings, defaults: Configuration) -> LibraryProducer:
    """The library's producer, which takes a second if it logs in with a token."""
    notes = ErrorNotes()
    with map_errors():
        return confluent_kafka.Producer({**settings.configuration(defaults), "error_cb": notes}), notes


class AsyncProducer:
    """A producer that belongs to one event loop; everything happens on it, and no call ever blocks.

    librdkafka has its own network threads. A timer collects their events: a thousand times a second while records are
    in flight, ten times a second otherwise, to notice that a cluster has gone down.
    """

    def __init__(self, library: LibraryProducer, *, total: InFlight | None = None) -> None:
        """`total` counts the records of several producers."""
        self._loop = asyncio.get_running_loop()
        self._producer, notes = library
        notes.take = self._note_error
        self._total = total or InFlight()
        self.records_in_flight = 0
        self.bytes_in_flight = 0
        self.is_down = False
        """Whether all known brokers seem to be down; reset by `trust` or a delivery."""
        self.failure: Fatal | None = None
        """The fatal error of this producer, once there is one: make a new producer."""
        self.refusal: NotAllowed | None = None
        """Why brokers do not let it log in, or get the id that an idempotent producer needs, once they have refused."""
        self._went_down = asyncio.Event()
        self._nothing_in_flight = asyncio.Event()
        self._heard_at = self._loop.time()
        self._delay = _IDLE_SECONDS
        self._timer = self._loop.call_later(_IDLE_SECONDS, self._collect)

    def send_all(self, records: Sequence[OutgoingRecord]) -> "asyncio.Future[list[Outcome]]":
        """Queue records; the future gives their outcomes in order, once all are delivered or have failed."""
        request = _Request(self, len(records), sum(map(_size, records)))
        produce, callback = self._producer.produce, request.callback
        for index, record in enumerate(records):
            partition = -1 if record.partition is None else record.partition
            try:
                if record.headers or record.timestamp_ms is not None:
                    produce(record.topic, record.value, record.key, partition, callback(index), **_extras(record))
                else:
                    produce(record.topic, record.value, record.key, partition, callback(index))
            except BufferError:
                request.refuse(index, Retriable("too many records are in flight to the cluster"))
            except KafkaException as exception:
                error = from_queueing(exception.args[0], record.topic)
                if isinstance(error, Fatal) and self.failure is None:
                    self._collect()  # which is told the reason
                request.refuse(index, error)
        self._hurry()
        request.settle_if_done()
        return request.future

    def add_in_flight(self, records: int, size: int) -> None:
        """Count records that were queued."""
        if not self.records_in_flight:
            self._heard_at = self._loop.time()
        self.records_in_flight += records
        self.bytes_in_flight += size
        self._total.records += records
        self._total.bytes += size

    def remove_in_flight(self, records: int, size: int) -> None:
        """Count records that were delivered or failed."""
        self.records_in_flight -= records
        self.bytes_in_flight -= size
        self._total.records -= records
        self._total.bytes -= size

    async def down(self) -> None:
        """Wait until all known brokers are down, have been silent for too long or refuse the login, or this producer
        has failed."""
        if self.failure is None:
            await self._went_down.wait()

    def trust(self) -> None:
        """Note that the cluster responds again."""
        self.is_down = False
        self.refusal = None
        self._went_down.clear()
        self._heard_at = self._loop.time()

    def distrust(self) -> None:
        """Note that the cluster does not respond."""
        self.is_down = True

    def drop_unsent(self) -> None:
        """Fail the records that were not sent yet; those that may have arrived are still waited for."""
        self._producer.purge(in_queue=True, in_flight=False, blocking=False)
        self._hurry()

    async def close(self, timeout_seconds: float) -> None:
        """Wait a while for the records in flight, then fail the rest."""
        self._collect()
        await self._wait_until_idle(timeout_seconds)
        self._producer.purge(blocking=False)
        # Callers still get an outcome for each record; the network threads may take a moment to report them all.
        self._collect()
        await self._wait_until_idle(_PURGE_SECONDS)
        self._timer.cancel()
        # What was not reported will never be.
        self.remove_in_flight(self.records_in_flight, self.bytes_in_flight)

    async def _wait_until_idle(self, timeout_seconds: float) -> None:
        """Wait until nothing is in flight, for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._nothing_in_flight.wait()

    def _collect(self) -> None:
        """Run librdkafka's pending callbacks, which settle the requests of delivered records."""
        try:
            self._producer.poll(0)
        except KafkaException as exception:
            # The library raises a fatal error once; callbacks still pending are run by the next call.
            error = exception.args[0]
            self.failure = Fatal(error.str(), code=error.code())
            if error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                self.refusal = NotAllowed("This user may not write to any topic", code=error.code())
            self._went_down.set()
        if self.records_in_flight:
            self._delay = _BUSY_SECONDS
            self._nothing_in_flight.clear()
            if self._loop.time() - self._heard_at > _SILENCE_SECONDS:
                self._went_down.set()
        else:
            self._delay = _IDLE_SECONDS
            self._nothing_in_flight.set()
        self._timer.cancel()
        self._timer = self._loop.call_later(self._delay, self._collect)

    def _hurry(self) -> None:
        if self._delay != _BUSY_SECONDS:
            self._timer.cancel()
            self._delay = _BUSY_SECONDS
            self._timer = self._loop.call_later(_BUSY_SECONDS, self._collect)

    def _note_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTHENTICATION:
            log.info("the cluster refuses a producer", extra={"reason": error.str()})
            self.refusal = NotAllowed("The Kafka cluster does not accept this login", code=error.code())
            self._went_down.set()
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.is_down = True
            self._went_down.set()


class _Request:
    """Records that were sent together, and their outcomes so far."""

    __slots__ = ("_count", "_left", "_producer", "_size", "future", "outcomes")

    def __init__(self, producer: AsyncProducer, count: int, size: int) -> None:
        self._producer, self._count, self._size = producer, count, size
        self._left = count
        self.outcomes: list[Any] = [None] * count
        self.future: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        producer.add_in_flight(count, size)

    def callback(self, index: int) -> Callable[[KafkaError | None, Message], None]:
        """The delivery callback of one record: there is one for each record, so it must be cheap."""

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self.outcomes[index] = _delivery(message) if error is None else from_kafka(error)
            self._left -= 1
            if not self._left:
                self.settle_if_done()

        return on_delivery

    def refuse(self, index: int, error: ClientError) -> None:
        self.outcomes[index] = error
        self._left -= 1

    def settle_if_done(self) -> None:
        # The caller may have been cancelled; the records are delivered all the same.
        if self._left or self.future.done():
            return
        self._producer.remove_in_flight(self._count, self._size)
        if any(type(outcome) is Delivery for outcome in self.outcomes):
            self._producer.trust()
        self.future.set_result(self.outcomes)


def _size(record: OutgoingRecord) -> int:
    size = len(record.value or b"") + len(record.key or b"")
    if record.headers:
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
    return size


def _delivery(message: Message) -> Delivery:
    offset = message.offset()
    return Delivery(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        # Without an acknowledgement (acks=0) the offset is unknown.
        offset=_NO_OFFSET if offset is None or offset < 0 else offset,
        timestamp_ms=message.timestamp()[1],
    )


def _extras(record: OutgoingRecord) -> dict[str, Any]:
    """Arguments that most records do not need."""
    extras: dict[str, Any] = {}
    if record.timestamp_ms is not None:
        extras["timestamp"] = record.timestamp_ms
    if record.headers:
        extras["headers"] = list(record.headers)
    return extras
