"""Sends records by batches from a thread, and tells when a whole batch has arrived. Idempotent by default."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from core_broker.client.errors import ClientError, Fatal, from_kafka, from_queueing, mapped
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration

_FULL_SECONDS = 0.05
_NO_PARTITION = -1
_NO_TIME = 0


class Batch:
    """Records that were sent together; complete when each has arrived or failed."""

    __slots__ = ("failures", "left", "offsets")

    def __init__(self, count: int, *, keeps_offsets: bool = False) -> None:
        self.left = count
        self.offsets = [-1] * count if keeps_offsets else []
        """Where each record was written, by its place in the batch; -1 where that is not known. Empty unless kept."""
        self.failures: list[tuple[int, ClientError]] = []
        """Which records, by their place in the batch, were not written, and why."""

    @property
    def is_complete(self) -> bool:
        """Whether the fate of every record is known."""
        return self.left == 0

    def _refused(self, index: int, error: ClientError) -> None:
        self.left -= 1
        self.failures.append((index, error))

    def _told(self, index: int, error: KafkaError | None, message: Message) -> None:
        self.left -= 1
        if error is not None:
            self.failures.append((index, from_kafka(error)))
        elif self.offsets:
            offset = message.offset()
            self.offsets[index] = -1 if offset is None else offset


class BatchProducer:
    """A producer for one thread. What became of records is learnt in `send` and `poll`."""

    def __init__(self, settings: ClientSettings, *, defaults: Configuration | None = None) -> None:
        own: Configuration = {"enable.idempotence": True, "acks": "all", "linger.ms": 5}
        with mapped():
            self._producer = confluent_kafka.Producer(settings.configuration({**own, **(defaults or {})}))

    def send(
        self, records: Sequence[OutgoingRecord], *, give_up: Callable[[], bool], keeps_offsets: bool = False
    ) -> Batch:
        """Queue records; waits while the queue is full, until `give_up` says that waiting makes no sense."""
        batch = Batch(len(records), keeps_offsets=keeps_offsets)
        for index, record in enumerate(records):
            while not self._queued(batch, index, record):
                if give_up():
                    raise Fatal("told to stop while records waited to be sent")
                self.poll(_FULL_SECONDS)
        self._producer.poll(0)
        return batch

    def _queued(self, batch: Batch, index: int, record: OutgoingRecord) -> bool:
        """Whether the record was taken, or refused for good; False when there is no room."""
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                _NO_PARTITION if record.partition is None else record.partition,
                partial(batch._told, index),
                timestamp=record.timestamp_ms or _NO_TIME,
                headers=list(record.headers) if record.headers else None,
            )
        except BufferError:
            return False
        except KafkaException as exception:
            batch._refused(index, from_queueing(exception.args[0], record.topic))
        return True

    def poll(self, timeout_seconds: float = 0.0) -> None:
        """Learn what became of records."""
        with mapped():
            self._producer.poll(timeout_seconds)

    def finish(self, batches: Sequence[Batch], timeout_seconds: float) -> bool:
        """Wait until all these batches are complete; False when they are not in time."""
        deadline = time.monotonic() + timeout_seconds
        while any(not batch.is_complete for batch in batches):
            if time.monotonic() > deadline:
                return False
            self.poll(_FULL_SECONDS)
        return True

    def close(self) -> None:
        """Give up what is on its way."""
        with mapped():
            self._producer.purge()
            self._producer.flush(1.0)
