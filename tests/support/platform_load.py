"""Orders on their way into a platform, over Kafka's protocol and over HTTP, and what was acknowledged of them."""

import io
import itertools
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Self

import fastavro
import httpx2
from confluent_kafka import KafkaError, Message, Producer
from typing_extensions import override

from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, PlatformProcess

SCHEMA: Final = {
    "type": "record",
    "name": "Order",
    "namespace": "river",
    "fields": [{"name": "id", "type": "long"}, {"name": "way", "type": "string"}],
}
_PARSED: Final = fastavro.parse_schema(SCHEMA)
_PAUSE_S: Final = 0.1
_AVRO: Final = "application/vnd.kafka.avro.v2+json"

Acknowledged = dict[tuple[int, int], int]
"""Partition and offset, and the order that was acknowledged there."""


class Sender(ABC):
    """Sends until it is told to stop; an order without an answer may have arrived or not, and is not sent again."""

    def __init__(self, platform: PlatformProcess, topic: str, *, first_id: int) -> None:
        self.platform = platform
        self.topic = topic
        self.acknowledged: Acknowledged = {}
        self._ids = itertools.count(first_id)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more; what is on its way arrives first."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{type(self).__name__} does not end"

    def wait_for_more(self) -> None:
        """Wait until more is acknowledged than now: the way is open."""
        before = len(self.acknowledged)
        eventually(lambda: len(self.acknowledged) > before, timeout_s=PATIENCE_S)

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
            self._send([next(self._ids) for _ in range(5)])

    @abstractmethod
    def _send(self, ids: Sequence[int]) -> None:
        """Send a few orders."""


class KafkaSender(Sender):
    """An idempotent producer."""

    def __init__(self, platform: PlatformProcess, topic: str, *, first_id: int) -> None:
        super().__init__(platform, topic, first_id=first_id)
        answer = httpx2.post(
            f"{platform.url('registry')}/subjects/{topic}-value/versions",
            json={"schema": json.dumps(SCHEMA)},
            timeout=PATIENCE_S,
        )
        self._head = b"\0" + int(answer.json()["id"]).to_bytes(4, "big")
        self._producer = Producer(
            {
                "bootstrap.servers": platform.bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    @override
    def _send(self, ids: Sequence[int]) -> None:
        for number in ids:
            self._producer.produce(self.topic, self._encoded(number), on_delivery=self._delivered(number))
        self._producer.poll(0)

    @override
    def stop(self) -> None:
        super().stop()
        assert self._producer.flush(PATIENCE_S) == 0

    def _encoded(self, number: int) -> bytes:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, _PARSED, {"id": number, "way": "kafka"})
        return self._head + body.getvalue()

    def _delivered(self, number: int):  # type: ignore[no-untyped-def] # the library's callback
        def note(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is None and partition is not None and offset is not None:
                self.acknowledged[partition, offset] = number

        return note


class GarbledSender(KafkaSender):
    """The same, with records that are no orders."""

    @override
    def _encoded(self, number: int) -> bytes:
        return b"%d is not Avro" % number


class HttpSender(Sender):
    """Requests to the REST proxy; those that fail are not repeated."""

    def __init__(self, platform: PlatformProcess, topic: str, *, first_id: int) -> None:
        super().__init__(platform, topic, first_id=first_id)
        self.requests = 0
        self.slowest_s = 0.0
        self.refusals: list[str] = []
        """What was answered instead of an acknowledgement."""

    @override
    def _send(self, ids: Sequence[int]) -> None:
        body = {
            "value_schema": json.dumps(SCHEMA),
            "records": [{"value": {"id": number, "way": "http"}} for number in ids],
        }
        self.requests += 1
        began = time.monotonic()
        try:
            answer = httpx2.post(
                f"{self.platform.url('rest-proxy')}/topics/{self.topic}",
                content=json.dumps(body).encode(),
                headers={"Content-Type": _AVRO},
                timeout=PATIENCE_S,
            )
        except httpx2.HTTPError as error:
            self.refusals.append(f"{type(error).__name__}: {error}")
            return
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if answer.status_code != 200:
            self.refusals.append(f"{answer.status_code}: {answer.text}")
            return
        for number, outcome in zip(ids, answer.json()["offsets"], strict=True):
            if outcome.get("error") is None and outcome.get("offset") is not None:
                self.acknowledged[outcome["partition"], outcome["offset"]] = number
            else:
                self.refusals.append(str(outcome))
