"""Sends records in transactions: all of one become visible together, or none does."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from core_broker.client.consumer import Place
from core_broker.client.errors import (
    ClientError,
    Fatal,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
    from_kafka,
    mapped,
)
from core_broker.client.producer import arguments_of
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration

_PAUSE_SECONDS = 0.1
_DEFAULTS: Configuration = {
    "linger.ms": 5,
    # After a new bootstrap, the library sends a group's offsets to a coordinator that it has dismissed, for ever.
    "metadata.recovery.strategy": "none",
}


class AbortNeeded(ClientError):
    """This transaction cannot be committed any more; after `abort` the same records may be sent in another one, unless
    one of them is refused (`is_refusal`)."""

    def __init__(self, message: str, *, code: int = -1, cause: ClientError | None = None) -> None:
        super().__init__(message, code=code)
        self.is_refusal = isinstance(cause, NotAllowed | NotFound | Rejected)


class TransactionalProducer:
    """A producer of one transactional id: whoever calls `init` last is the only one who can write with it.

    Every call may raise AbortNeeded, or Fatal when somebody else has taken the id over. For one thread at a time.
    """

    def __init__(
        self, settings: ClientSettings, *, transactional_id: str, defaults: Configuration | None = None
    ) -> None:
        self._timeout = settings.timeout_seconds
        self._failed: ClientError | None = None
        self._groups: dict[str, Any] = {}
        own: Configuration = {"transactional.id": transactional_id, "enable.idempotence": True, "acks": "all"}
        with mapped():
            self._producer = confluent_kafka.Producer(
                {**settings.configuration({**_DEFAULTS, **(defaults or {})}), **own}
            )

    def init(self) -> None:
        """Take the id over from whoever had it; what they left unfinished is aborted."""
        self._until_done(lambda: self._producer.init_transactions(self._timeout))

    def begin(self) -> None:
        """Start a transaction."""
        self._failed = None
        self._until_done(self._producer.begin_transaction)

    def send(self, record: OutgoingRecord, *, written_at: Callable[[int], None] | None = None) -> None:
        """Queue a record; waits while the queue is full. `written_at` is told its offset, at the latest by `commit`."""
        told = self._note_delivery if written_at is None else partial(self._note_offset, written_at)
        arguments = {**arguments_of(record), "on_delivery": told}
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with _explained():
                    self._producer.produce(record.topic, **arguments)
                    self._producer.poll(0)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise Unreachable("the queue of unsent records stayed full") from None
                with _explained():
                    self._producer.poll(_PAUSE_SECONDS)

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit offsets (the next one of each partition) for a group, together with the records of the transaction.

        They are the group's without anybody being its member: what others commit at the same time is not noticed.
        """
        if group not in self._groups:
            self._groups[group] = _metadata_of(group)
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        metadata = self._groups[group]
        self._until_done(lambda: self._producer.send_offsets_to_transaction(places, metadata, self._timeout))

    def commit(self) -> None:
        """Wait for all records of the transaction, and make them visible."""
        self._flush()
        if self._failed is not None:
            raise AbortNeeded(str(self._failed), code=self._failed.code, cause=self._failed)
        self._until_done(lambda: self._producer.commit_transaction(self._timeout))

    def abort(self) -> None:
        """Let nothing of the transaction become visible."""
        self._producer.purge()
        self._until_done(lambda: self._producer.abort_transaction(self._timeout))

    def close(self) -> None:
        """Leave nothing open; what was not committed is aborted by the cluster."""
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(1.0)

    def _flush(self) -> None:
        deadline = time.monotonic() + self._timeout
        with _explained():
            while self._producer.flush(_PAUSE_SECONDS):
                if time.monotonic() > deadline:
                    raise AbortNeeded("records could not be delivered in time")

    def _note_delivery(self, error: KafkaError | None, _: object) -> None:
        if error is not None and self._failed is None:
            self._failed = from_kafka(error)

    def _note_offset(self, written_at: Callable[[int], None], error: KafkaError | None, message: Message) -> None:
        offset = message.offset() if error is None else None
        if offset is not None:
            written_at(offset)
        self._note_delivery(error, message)

    def _until_done(self, step: Callable[[], Any]) -> None:
        """A step whose outcome is not known is the same step again, for as long as the time-out allows."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with _explained():
                    step()
                return
            except (Retriable, Unreachable):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)


def _metadata_of(group: str) -> Any:
    """What the library wants to know of a group; only a consumer can tell, be it one that never reaches a cluster."""
    with mapped():
        consumer = confluent_kafka.Consumer({"group.id": group, "log_level": 0})
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()


class _explained:  # noqa: N801 - reads as what it does
    """Turns the library's exceptions into ours, by what they ask for."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, exception: BaseException | None, __: object) -> None:
        if isinstance(exception, KafkaException) and isinstance(exception.args[0], KafkaError):
            raise _asked_for(exception.args[0]) from exception


def _asked_for(error: KafkaError) -> ClientError:
    told = from_kafka(error)
    if error.fatal() or error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED):
        return Fatal(str(told), code=told.code)
    if error.txn_requires_abort():
        return AbortNeeded(str(told), code=told.code)
    if error.retriable():
        return Retriable(str(told), code=told.code)
    return told
