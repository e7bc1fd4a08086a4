"""Producers that keep writing while a broker dies and comes back, and remember what they were promised."""

import random
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

PARTITIONS: Final = 3
_RECONNECT: Final = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}
_CALL_TIMEOUT_S: Final = 60.0
_PAUSE_S: Final = 0.01
"""Between a few records and the next ones: a kill meets requests under way at this pace as well as at a faster one."""


class Load:
    """A thread that writes until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, label: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.label = label
        self.failures: list[str] = []
        """What must not happen: each is a failure of the test."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_guarded, name=label)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join(120)
        if self._thread.is_alive():
            self.failures.append(f"{self.label} did not finish")

    @property
    def progress(self) -> int:
        """Grows with everything that was acknowledged."""
        raise NotImplementedError

    def run(self) -> None:
        """Write until `self._stop` is set."""
        raise NotImplementedError

    def _run_guarded(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.failures.append(f"{self.label}: {error!r}")
            raise


class IdempotentLoad(Load):
    """Numbers in order, one series per partition, from one idempotent producer."""

    def __init__(self, bootstrap: str, topic: str, label: str) -> None:
        super().__init__(bootstrap, topic, label)
        self.acknowledged: dict[int, dict[int, int]] = defaultdict(dict)
        """Partition to number to the offset it was acknowledged with."""
        self.sent: dict[int, int] = defaultdict(int)
        self._count = 0

    @property
    def progress(self) -> int:
        """Acknowledged records."""
        return self._count

    def run(self) -> None:
        """Send a few records at a time and let the library retry."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "delivery.timeout.ms": 110_000,
                "queue.buffering.max.messages": 2_000,
                **_RECONNECT,
            }
        )
        while not self._stop.wait(_PAUSE_S):
            for partition in range(PARTITIONS):
                self._send(producer, partition)
            producer.poll(0)
        remaining = producer.flush(_CALL_TIMEOUT_S)
        if remaining:
            self.failures.append(f"{self.label}: {remaining} records were never acknowledged")

    def _send(self, producer: Producer, partition: int) -> None:
        if len(producer) > 1_500:
            return
        number = self.sent[partition]
        value = f"{self.label}:{number}:".encode() + b"." * 1000  # segments are rolled all the time
        producer.produce(self.topic, value, partition=partition, on_delivery=self._report(partition, number))
        self.sent[partition] = number + 1

    def _report(self, partition: int, number: int) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(f"{self.label}: record {number} of partition {partition} failed: {error}")
            else:
                self.acknowledged[partition][number] = message.offset() or 0
                self._count += 1

        return delivered


@dataclass(slots=True, kw_only=True)
class Outcomes:
    """Numbers of transactions by what their producer was told."""

    committed: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)


class TransactionalLoad(Load):
    """Transactions of two records in each partition; some are aborted on purpose."""

    def __init__(self, bootstrap: str, topic: str, label: str, *, seed: int) -> None:
        super().__init__(bootstrap, topic, label)
        self.outcomes = Outcomes()
        self._random = random.Random(seed)

    @property
    def progress(self) -> int:
        """Transactions whose end was acknowledged."""
        return len(self.outcomes.committed) + len(self.outcomes.aborted)

    def run(self) -> None:
        """One transaction after the other; a producer that failed for good is replaced."""
        producer = self._new_producer()
        number = 0
        while not self._stop.wait(_PAUSE_S):
            if not self._transaction(producer, number):
                producer = self._new_producer()
            number += 1

    def _new_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.label,
                "transaction.timeout.ms": 60_000,
                "linger.ms": 0,
                **_RECONNECT,
            }
        )
        while True:
            try:
                producer.init_transactions(_CALL_TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return producer

    def _transaction(self, producer: Producer, number: int) -> bool:
        """Run one; False when the producer is beyond repair."""
        commit = self._random.random() < 0.75
        producer.begin_transaction()
        for part in range(2):
            for partition in range(PARTITIONS):
                producer.produce(self.topic, f"{self.label}:{number}:{part}".encode(), partition=partition)
        try:
            self._end(producer, commit=commit)
        except KafkaException as error:
            return self._give_up(producer, number, error.args[0])
        (self.outcomes.committed if commit else self.outcomes.aborted).add(number)
        return True

    def _end(self, producer: Producer, *, commit: bool) -> None:
        while True:
            try:
                producer.flush(_CALL_TIMEOUT_S)
                producer.commit_transaction(_CALL_TIMEOUT_S) if commit else producer.abort_transaction(_CALL_TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def _give_up(self, producer: Producer, number: int, error: KafkaError) -> bool:
        if error.txn_requires_abort():
            self._end(producer, commit=False)
            self.outcomes.aborted.add(number)
            return True
        self.outcomes.unknown.add(number)
        return False


class CommitLoad(Load):
    """Commits of a group, each one further than the last."""

    def __init__(self, bootstrap: str, topic: str, label: str) -> None:
        super().__init__(bootstrap, topic, label)
        self.acknowledged = 0
        """The last offset whose commit was acknowledged."""
        self.attempted = 0

    @property
    def progress(self) -> int:
        """Acknowledged commits."""
        return self.acknowledged

    def run(self) -> None:
        """Commit one offset after the other; what fails may or may not have been written."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.label, "enable.auto.commit": False, **_RECONNECT}
        )
        while not self._stop.wait(_PAUSE_S):
            self.attempted += 1
            try:
                consumer.commit(offsets=[TopicPartition(self.topic, 0, self.attempted)], asynchronous=False)
            except KafkaException:
                continue
            self.acknowledged = self.attempted
        consumer.close()

    def committed(self) -> int:
        """The offset that the group has now."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.label})
        try:
            (found,) = consumer.committed([TopicPartition(self.topic, 0)], timeout=_CALL_TIMEOUT_S)
            return found.offset
        finally:
            consumer.close()
