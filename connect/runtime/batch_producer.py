"""A producer for one thread that tracks when whole batches of records have arrived. Idempotent by default."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from core_broker.client.errors import ClientError, Fatal, from_kafka, from_queueing, map_errors
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration

_FULL_SECONDS = 0.05
_NO_PARTITION = -1
_NO_TIME = 0


class Batch:
    """Records that were sent together; complete when each was delivered or has failed."""

    __slots__ = ("failures", "left", "offsets")

    def __init__(self, count: int, *, keeps_offsets: bool = False) -> None:
        self.left = count
        self.offsets = [-1] * count if keeps_offsets else []
        """The offset of each record, by its index in the batch; -1 if unknown. Empty unless `keeps_offsets`."""
        self.failures: list[tuple[int, ClientError]] = []
        """The records that were not written, by their index in the batch, and why."""

    @property
    def is_complete(self) -> bool:
        """Whether the outcome of every record is known."""
        return self.left == 0

    def reject(self, index: int, error: ClientError) -> None:
        """Count a record that could not even be queued."""
        self.left -= 1
        self.failures.append((index, error))

    def note_delivery(self, index: int, error: KafkaError | None, message: Message) -> None:
        """Count a record whose delivery report has arrived."""
        self.left -= 1
        if error is not None:
            self.failures.append((index, from_kafka(error)))
        elif self.offsets:
            offset = message.offset()
            self.offsets[index] = -1 if offset is None else offset


class BatchProducer:
    """A producer for one thread. Delivery reports are processed in `send` and `poll`."""

    def __init__(self, settings: ClientSettings, *, defaults: Configuration | None = None) -> None:
        own: Configuration = {"enable.idempotence": True, "acks": "all", "linger.ms": 5}
        with map_errors():
            self._producer = confluent_kafka.Producer(settings.configuration({**own, **(defaults or {})}))

    def send(
        self, records: Sequence[OutgoingRecord], *, give_up: Callable[[], bool], keeps_offsets: bool = False
    ) -> Batch:
        """Queue records; waits while the queue is full, until `give_up` returns True."""
        batch = Batch(len(records), keeps_offsets=keeps_offsets)
        for index, record in enumerate(records):
            while not self._try_queue(batch, index, record):
                if give_up():
                    raise Fatal("stopped while waiting for room in the queue of unsent records")
                self.poll(_FULL_SECONDS)
        self._producer.poll(0)
        return batch

    def _try_queue(self, batch: Batch, index: int, record: OutgoingRecord) -> bool:
        """False when the queue is full; True when the record was queued or rejected for good."""
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                _NO_PARTITION if record.partition is None else record.partition,
                partial(batch.note_delivery, index),
                timestamp=record.timestamp_ms or _NO_TIME,
                headers=list(record.headers) if record.headers else None,
            )
        except BufferError:
            return False
        except KafkaException as exception:
            batch.reject(index, from_queueing(exception.args[0], record.topic))
        return True

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Process delivery reports."""
        with map_errors():
            self._producer.poll(timeout_seconds)

    def finish(self, batches: Sequence[Batch], timeout_seconds: float) -> bool:
        """Wait until all these batches are complete; False on time-out."""
        deadline = time.monotonic() + timeout_seconds
        while any(not batch.is_complete for batch in batches):
            if time.monotonic() > deadline:
                return False
            self.poll(_FULL_SECONDS)
        return True

    def close(self) -> None:
        """Discard the records in flight."""
        with map_errors():
            self._producer.purge()
            self._producer.flush(1.0)
