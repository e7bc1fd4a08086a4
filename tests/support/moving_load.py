"""Clients that work while a cluster moves from brokers of one kind to another: transactions, and members of groups."""

import threading
import time
from collections.abc import Sequence
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

TIMEOUT_S: Final = 60.0
RECORDS: Final = 12
"""Of a transaction."""
_COMMIT_AGAIN: Final = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    113,  # STALE_MEMBER_EPOCH
}
_ABORTED: Final = 3
"""Every third transaction is aborted."""


class Worker:
    """A client in a thread of its own, which notes every error that it gets."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._run()
        except KafkaException as error:
            self.errors.append(str(error))

    def _run(self) -> None:
        raise NotImplementedError


class TransactionalLoad(Worker):
    """A producer whose transactions write to a topic until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self.committed: list[bytes] = []
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 5, "log_level": 0}
        )

    def _run(self) -> None:
        self._producer.init_transactions(TIMEOUT_S)
        number = 0
        while not self._is_over.wait(0.02):
            number += 1
            fate = "bad" if number % _ABORTED == 0 else "good"
            values = [f"{fate} {number} {index}".encode() for index in range(RECORDS)]
            self._producer.begin_transaction()
            for value in values:
                self._producer.produce(self._topic, value, on_delivery=self._on_delivery)
            if fate == "good":
                self._producer.commit_transaction(TIMEOUT_S)
                self.committed += values
            else:
                self._producer.flush(TIMEOUT_S)
                self._producer.abort_transaction(TIMEOUT_S)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.errors.append(str(error))


class GroupLoad(Worker):
    """The member of a group that reads topics and commits its offsets until it is stopped."""

    def __init__(self, bootstrap: str, topics: Sequence[str], *, group: str, protocol: str) -> None:
        super().__init__()
        self.read: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
        """Offset and value of what it has read of each partition."""
        self.values: set[bytes] = set()
        self.group = group
        self._topics = list(topics)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )

    def _run(self) -> None:
        self._consumer.subscribe(self._topics)
        committed_at = time.monotonic()
        while not self._is_over.is_set():
            self._note(self._consumer.consume(500, 0.2))
            if time.monotonic() > committed_at + 0.5 and self.read:
                self._commit()
                committed_at = time.monotonic()
        self._commit()
        self._consumer.close()

    def _note(self, messages: Sequence[Message]) -> None:
        for message in messages:
            topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value()
            if message.error() is not None or None in (topic, partition, offset, value):
                self.errors.append(str(message.error()))
                continue
            assert topic is not None
            assert partition is not None
            assert offset is not None
            assert value is not None
            self.read.setdefault((topic, partition), []).append((offset, value))
            self.values.add(value)

    def _commit(self) -> None:
        """Commit what was read; again if the coordinator moves or the member's epoch is stale.

        Kafka's Java consumer does the same by itself; librdkafka tries a few times, and then returns the error.
        """
        ends_at = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._NO_OFFSET:
                    return  # nothing was read since the last commit
                if error.args[0].code() not in _COMMIT_AGAIN or time.monotonic() > ends_at:
                    raise
                self._note(self._consumer.consume(1, 0.1))
            else:
                return
