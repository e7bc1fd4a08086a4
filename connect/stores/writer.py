"""Writes to the worker's topics, and waits for the acknowledgement."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from connect.api.errors import ConfigError, ConnectError, RetriableError
from core_broker.client.errors import ClientError, Fatal, NotAllowed, Retriable, Unreachable
from core_broker.client.producer import Producer
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings

Pair = tuple[bytes, bytes | None]
"""Key and value of a record; without a value it deletes the key."""

PARTITIONER: Final = {"partitioner": "murmur2_random"}
"""Kafka Connect's partitioner: with another one, a key could have values in two partitions."""
_PROPERTIES: Final = {
    **PARTITIONER,
    "acks": "all",
    "linger.ms": "1",
    # The order is enough, and duplicates do no harm; a producer id would cost half a second at the start.
    "enable.idempotence": "false",
    "max.in.flight.requests.per.connection": "1",
}
_POLL_SECONDS: Final = 0.05


@contextmanager
def mapped_client_errors(topic: str) -> Iterator[None]:
    """Map errors of the client to ConnectError and its subclasses."""
    try:
        yield
    except (Unreachable, Retriable) as error:
        raise RetriableError(f"Topic {topic}: {error}") from error
    except NotAllowed as error:
        raise ConfigError(f"Topic {topic}: {error}") from error
    except ClientError as error:
        raise ConnectError(f"Topic {topic}: {error}") from error


class TopicWriter:
    """Writes records and waits for the acknowledgement. Thread-safe."""

    def __init__(self, settings: ClientSettings, topic: str) -> None:
        self.topic = topic
        self._settings = replace(settings, properties={**_PROPERTIES, **settings.properties})
        self._lock = threading.Lock()
        self._producer: Producer | None = None

    def send(self, pairs: Sequence[Pair]) -> list[int]:
        """Write all records, and return their offsets when all are acknowledged.

        RetriableError when some may not be: the same records may be sent again.
        """
        with mapped_client_errors(self.topic):
            try:
                return self._send(self._open(), pairs)
            except Fatal:
                self.close()
                return self._send(self._open(), pairs)

    def close(self) -> None:
        """Drop the producer."""
        with self._lock:
            self._producer = None

    def _open(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = Producer(self._settings)
            return self._producer

    def _send(self, producer: Producer, pairs: Sequence[Pair]) -> list[int]:
        outcomes: dict[int, Delivery | ClientError] = {}
        for number, (key, value) in enumerate(pairs):
            record = OutgoingRecord(topic=self.topic, key=key, value=value)
            producer.send(record, partial(outcomes.__setitem__, number))
        # Another thread's poll may deliver our outcome, hence the short waits.
        ends_at = time.monotonic() + self._settings.timeout_seconds + 1
        while len(outcomes) < len(pairs):
            if time.monotonic() > ends_at:
                raise Unreachable("records were not acknowledged in time")
            producer.poll(_POLL_SECONDS)
        offsets: list[int] = []
        for number in range(len(pairs)):
            outcome = outcomes[number]
            if isinstance(outcome, ClientError):
                raise outcome
            offsets.append(outcome.offset)
        return offsets
