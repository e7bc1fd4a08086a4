"""A producer that writes to a cluster while brokers come and go, and the records that it left."""

import threading
import time
from collections.abc import Mapping
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.support.admin import eventually

RECORDS_PER_ROUND: Final = 20


class ClusterLoad:
    """An idempotent producer that writes numbers until it is stopped, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, security: Mapping[str, str] | None = None) -> None:
        """`security` are settings of librdkafka."""
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.failed: list[str] = []
        self.longest_stall_s = 0.0
        """The longest time without an acknowledgement."""
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                **(security or {}),
            }
        )
        self._topic = topic
        self._acknowledged_at: float | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(0.01):
            for _ in range(RECORDS_PER_ROUND):
                self._producer.produce(self._topic, str(number).encode(), on_delivery=self._on_delivery)
                number += 1
            self._producer.poll(0)
        self._producer.flush(120)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if error is not None or value is None or partition is None or offset is None:
            self.failed.append(str(error))
            return
        self.acknowledged[value] = (partition, offset)
        now = time.monotonic()
        if self._acknowledged_at is not None:
            self.longest_stall_s = max(self.longest_stall_s, now - self._acknowledged_at)
        self._acknowledged_at = now

    def wait_for_more(self) -> None:
        """Return once further records were acknowledged in every partition."""
        before = len(self.acknowledged)
        eventually(lambda: len(self.acknowledged) > before + 3 * RECORDS_PER_ROUND)


def read_all(
    bootstrap: str, topic: str, partitions: int, security: Mapping[str, str] | None = None
) -> list[tuple[bytes, tuple[int, int]]]:
    """Every record of a topic, with its place."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            **(security or {}),
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[bytes, tuple[int, int]]] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(60)
        assert message is not None, "the topic cannot be read to its end"
        error, partition = message.error(), message.partition()
        assert partition is not None
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(partition)
        else:
            value, offset = message.value(), message.offset()
            assert value is not None
            assert offset is not None
            found.append((value, (partition, offset)))
    consumer.close()
    return found
