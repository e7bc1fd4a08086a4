"""A transactional producer: all records of a transaction become visible together, or none does."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import (
    ClientError,
    Fatal,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
    from_kafka,
    map_errors,
)
from core_broker.client.producer import arguments_of
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration

_PAUSE_SECONDS = 0.1
_OFFSETS_SECONDS = 10.0
_POLLED_EVERY = 500
_GRACE_SECONDS = 5.0
"""How much later than its time-out a call of the library may return."""
_DEFAULTS: Configuration = {
    "linger.ms": 5,
    # After a rebootstrap the library keeps sending a group's offsets to a coordinator that no longer exists.
    "metadata.recovery.strategy": "none",
}


class AbortNeeded(ClientError):
    """This transaction can no longer be committed; after `abort` the same records may be sent in another one, unless
    the cluster refuses one of them (`is_refusal`)."""

    def __init__(self, message: str, *, code: int = -1, cause: ClientError | None = None) -> None:
        super().__init__(message, code=code)
        self.is_refusal = isinstance(cause, NotAllowed | NotFound | Rejected)


class Stuck(Unreachable):
    """A call of the library did not return; its producer is of no use any more."""


class TransactionalProducer:
    """A producer with a transactional id: the last producer to call `init` fences all others with the same id.

    Every call may raise AbortNeeded, or Fatal once another producer has taken over the id. For one thread at a time.
    """

    def __init__(
        self, settings: ClientSettings, *, transactional_id: str, defaults: Configuration | None = None
    ) -> None:
        self._timeout = settings.timeout_seconds
        self._failed: ClientError | None = None
        self._is_stuck = False
        self._groups: dict[str, Any] = {}
        own: Configuration = {"transactional.id": transactional_id, "enable.idempotence": True, "acks": "all"}
        configuration = {**settings.configuration({**_DEFAULTS, **(defaults or {})}), **own}
        if "transaction.timeout.ms" in configuration and "socket.timeout.ms" not in settings.properties:
            del configuration["socket.timeout.ms"]  # the library chooses one that is shorter
        with map_errors():
            self._producer = confluent_kafka.Producer(configuration)

    def init(self) -> None:
        """Take over the id from any previous producer; its unfinished transaction is aborted."""
        self._retry(lambda: self._producer.init_transactions(self._timeout))

    def begin(self) -> None:
        """Start a transaction."""
        self._failed = None
        self._retry(self._producer.begin_transaction)

    def send(self, record: OutgoingRecord, *, written_at: Callable[[int], None] | None = None) -> None:
        """Queue a record; waits while the queue is full. `written_at` gets its offset, at the latest in `commit`."""
        on_delivery = self._note_delivery if written_at is None else partial(self._note_offset, written_at)
        arguments = {**arguments_of(record), "on_delivery": on_delivery}
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with _map_transaction_errors():
                    self._producer.produce(record.topic, **arguments)
                    self._producer.poll(0)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise Unreachable("the queue of unsent records stayed full") from None
                with _map_transaction_errors():
                    self._producer.poll(_PAUSE_SECONDS)

    def send_columns(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        *,
        timestamps_ms: Sequence[int],
        partitions: Sequence[int],
    ) -> None:
        """Queue many records; a timestamp of 0 is the present time, and for partition -1 the producer chooses."""
        produce, poll, note = self._producer.produce, self._producer.poll, self._note_delivery
        rows = zip(values, keys, partitions, timestamps_ms, strict=True)
        with _map_transaction_errors():
            for index, (value, key, partition, timestamp_ms) in enumerate(rows):
                if not index % _POLLED_EVERY:
                    poll(0)
                try:
                    produce(topic, value, key, partition, on_delivery=note, timestamp=timestamp_ms)
                except BufferError:
                    self._wait_for_room()
                    produce(topic, value, key, partition, on_delivery=note, timestamp=timestamp_ms)

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        """Commit offsets (the next one of each partition) for a group, together with the records of the transaction.

        This producer is not a member of the group, so concurrent commits of others are not detected.
        """
        if group not in self._groups:
            self._groups[group] = _group_metadata(group)
        places = [KafkaTopicPartition(*place, offset, metadata) for place, offset in offsets.items()]
        member, seconds = self._groups[group], min(self._timeout, _OFFSETS_SECONDS)

        def send() -> None:
            try:
                call_within(
                    seconds + _GRACE_SECONDS,
                    lambda: self._producer.send_offsets_to_transaction(places, member, seconds),
                )
            except Stuck:
                self._is_stuck = True
                raise

        self._retry(send)

    def commit(self) -> None:
        """Wait for all records of the transaction and commit it."""
        deadline = time.monotonic() + self._timeout
        with _map_transaction_errors():
            while self._producer.flush(_PAUSE_SECONDS):
                if time.monotonic() > deadline:
                    raise AbortNeeded("records could not be delivered in time")
        if self._failed is not None:
            raise AbortNeeded(str(self._failed), code=self._failed.code, cause=self._failed)
        self._retry(lambda: self._producer.commit_transaction(self._timeout))

    def abort(self) -> None:
        """Discard the transaction."""
        self._producer.purge()
        self._retry(lambda: self._producer.abort_transaction(self._timeout))

    def close(self) -> None:
        """Close the producer; the cluster aborts what was not committed."""
        if self._is_stuck:
            return  # its thread still uses it
        # The library raises a SystemError instead of its own error once another producer has taken over the id.
        with suppress(KafkaException, SystemError):
            self._producer.purge()
            self._producer.flush(1.0)

    def _wait_for_room(self) -> None:
        """Wait until the queue of unsent records has become shorter."""
        deadline, before = time.monotonic() + self._timeout, len(self._producer)
        while len(self._producer) >= before:
            if time.monotonic() > deadline:
                raise Unreachable("the queue of unsent records stayed full")
            self._producer.poll(_PAUSE_SECONDS)

    def _note_delivery(self, error: KafkaError | None, _: object) -> None:
        if error is not None and self._failed is None:
            self._failed = from_kafka(error)

    def _note_offset(self, written_at: Callable[[int], None], error: KafkaError | None, message: Message) -> None:
        offset = message.offset() if error is None else None
        if offset is not None:
            written_at(offset)
        self._note_delivery(error, message)

    def _retry(self, step: Callable[[], Any]) -> None:
        """Repeat a step while its outcome is unknown, for as long as the time-out allows."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with _map_transaction_errors():
                    step()
                return
            except (Retriable, Unreachable):
                if self._is_stuck or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)


def call_within(seconds: float, call: Callable[[], None]) -> None:
    """Make a call that may ignore its time-out: raises Stuck when it does not return, and leaves it to its thread.

    When the coordinator of a group dies while offsets are sent to it, librdkafka (2.16) may lose the request, and then
    waits for the response for ever.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=run, name="offsets-of-transaction", daemon=True).start()
    try:
        outcome.result(seconds)
    except TimeoutError:
        raise Stuck(f"the offsets of a transaction were not committed within {seconds:g} s") from None


def _group_metadata(group: str) -> Any:
    """The library's metadata object of a group; only a consumer can create one, even if it never connects."""
    with map_errors():
        consumer = confluent_kafka.Consumer({"group.id": group, "log_level": 0})
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()


class _map_transaction_errors:  # noqa: N801 - used like a function
    """Turns the library's exceptions into ours, by what the caller must do; cheaper per record than a generator."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, exception: BaseException | None, __: object) -> None:
        if isinstance(exception, KafkaException) and isinstance(exception.args[0], KafkaError):
            raise _from_transaction_error(exception.args[0]) from exception


def _from_transaction_error(error: KafkaError) -> ClientError:
    mapped = from_kafka(error)
    if error.fatal() or error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED):
        return Fatal(str(mapped), code=mapped.code)
    if error.txn_requires_abort():
        return AbortNeeded(str(mapped), code=mapped.code)
    if error.retriable():
        return Retriable(str(mapped), code=mapped.code)
    return mapped
