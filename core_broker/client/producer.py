"""A simple producer. Idempotent by default, so that a retry never duplicates a record."""

import logging
from collections.abc import Callable
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, Message

from core_broker.client.errors import ClientError, Fatal, Unreachable, from_kafka, map_errors
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration

log = logging.getLogger(__name__)

OnDelivery = Callable[[Delivery | ClientError], None]

_QUEUE_POLL_SECONDS = 0.1


class Producer:
    """A producer; a context manager that waits at its end until everything is delivered.

    `send` returns at once; `on_delivery` is called from `send`, `poll` or `flush` with the position of the record or
    the error.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._timeout = settings.timeout_seconds
        defaults: Configuration = {
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": settings.timeout_ms,
        }
        with map_errors():
            self._producer = confluent_kafka.Producer(settings.configuration(defaults))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()
        else:
            self.close()

    def send(self, record: OutgoingRecord, on_delivery: OnDelivery | None = None) -> None:
        """Queue a record; waits while the queue is full, for as long as the time-out allows."""
        arguments = arguments_of(record)
        if on_delivery:
            arguments["on_delivery"] = lambda error, message: on_delivery(_outcome(error, message))
        for _ in range(max(1, int(self._timeout / _QUEUE_POLL_SECONDS))):
            try:
                with map_errors():
                    self._producer.produce(record.topic, **arguments)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(_QUEUE_POLL_SECONDS)
        raise Unreachable("the queue of unsent records stayed full: the cluster does not accept them")

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Run pending delivery callbacks."""
        self._producer.poll(timeout_seconds)

    def close(self) -> None:
        """Discard the records in flight."""
        self._producer.purge()
        self._producer.flush(1.0)

    def flush(self) -> None:
        """Wait until every record is delivered or has failed."""
        left = self._producer.flush(self._timeout + 1.0)
        if left:
            raise Unreachable(f"{left} records could not be delivered in time")


def arguments_of(record: OutgoingRecord) -> dict[str, Any]:
    """The library's arguments for a record, except its topic."""
    arguments: dict[str, Any] = {"value": record.value, "key": record.key}
    if record.headers:
        arguments["headers"] = list(record.headers)
    if record.partition is not None:
        arguments["partition"] = record.partition
    if record.timestamp_ms is not None:
        arguments["timestamp"] = record.timestamp_ms
    return arguments


def _outcome(error: KafkaError | None, message: Message) -> Delivery | ClientError:
    if error is not None:
        return from_kafka(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        return Fatal("a delivery report lacks the topic, partition or offset")
    return Delivery(topic=topic, partition=partition, offset=offset, timestamp_ms=message.timestamp()[1])
