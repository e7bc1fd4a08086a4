"""A producer for records in columns, with as few calls per record as possible: Spark writes millions."""

import time
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from core_broker.client.errors import ClientError, Unreachable, from_kafka, from_queueing, map_errors
from core_broker.client.records import Header
from core_broker.client.settings import ClientSettings, Configuration

ANY_PARTITION: Final = -1
_FULL_SECONDS: Final = 0.05
_POLLED_EVERY: Final = 500
_DEFAULTS: Final[Configuration] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    "message.timeout.ms": 120_000,
    # The Java client's partitioner, so that a key goes to the same partition as with other Kafka clients.
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 65_536,
    "queue.buffering.max.messages": 500_000,
}


class NotSent(ClientError):
    """A record could not be written; `topic` is its topic."""

    def __init__(self, topic: str, reason: ClientError) -> None:
        super().__init__(f"A record could not be written to topic {topic}: {reason}", code=reason.code)
        self.topic = topic
        self.reason = reason


class ColumnProducer:
    """A producer for one thread: idempotent, at least once. After NotSent the records in flight are given up."""

    def __init__(self, settings: ClientSettings) -> None:
        self._failure: NotSent | None = None
        self._timeout = settings.timeout_seconds
        # With millions of records a callback is affordable only for those that failed.
        needed = {"delivery.report.only.error": True, "on_delivery": self._note_delivery}
        with map_errors():
            self._producer = confluent_kafka.Producer({**settings.configuration(_DEFAULTS), **needed})

    def send(
        self,
        topics: str | Iterable[str],
        values: Sequence[bytes | None],
        *,
        keys: Iterable[bytes | None] | None = None,
        partitions: Iterable[int] | None = None,
        headers: Iterable[Sequence[Header] | None] | None = None,
        timestamps_ms: Iterable[int] | None = None,
    ) -> None:
        """Queue one record for each value; waits while the queue is full. Raises NotSent for these or earlier ones.

        A timestamp of 0 is the present time.
        """
        rows = zip(
            repeat(topics) if isinstance(topics, str) else topics,
            values,
            repeat(None) if keys is None else keys,
            repeat(ANY_PARTITION) if partitions is None else partitions,
            repeat(None) if headers is None else headers,
            repeat(0) if timestamps_ms is None else timestamps_ms,
            strict=False,  # repeat() never ends
        )
        for index, row in enumerate(rows):
            self._queue(*row)
            if not index % _POLLED_EVERY:
                self._producer.poll(0)
                self._check()

    def _queue(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        headers: Sequence[Header] | None,
        timestamp_ms: int,
    ) -> None:
        deadline = 0.0
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, headers=list(headers) if headers else None, timestamp=timestamp_ms
                )
                return
            except BufferError:
                deadline = deadline or time.monotonic() + self._timeout
                if time.monotonic() > deadline:
                    raise NotSent(topic, Unreachable("the queue of unsent records stayed full")) from None
                self._producer.poll(_FULL_SECONDS)
                self._check()
            except KafkaException as exception:
                raise NotSent(topic, from_queueing(exception.args[0], topic)) from exception

    def flush(self) -> None:
        """Wait until everything sent is written; raises NotSent."""
        deadline = time.monotonic() + self._timeout
        while left := self._flush(_FULL_SECONDS * 10):
            self._check()
            if time.monotonic() > deadline:
                raise Unreachable(f"{left} records were not acknowledged in time")
        self._check()

    def _flush(self, seconds: float) -> int:
        """How many records are left. Raises the error after which the library sends nothing more."""
        try:
            with map_errors():
                return self._producer.flush(seconds)
        except SystemError as error:
            # The library has raised it before it called us about a record, and Python complains of that.
            if not isinstance(error.__cause__, KafkaException):
                raise
            raise from_kafka(error.__cause__.args[0]) from error

    def close(self) -> None:
        """Discard the records in flight."""
        with map_errors():
            self._producer.purge()
            self._producer.flush(1.0)

    def _note_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = NotSent(message.topic() or "", from_kafka(error))

    def _check(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
