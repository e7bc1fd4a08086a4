"""Records of API v3 on their way to Kafka: read, written by their schemas, sent, answered."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.encoding import Encoder, Encoders
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import Guarantees
from rest_proxy.produce.v3.requests import DataRequest, Malformed, RecordRequest, parse_record
from rest_proxy.produce.v3.results import DeliveredRecord, WrittenPart, delivered, part, told

Result = DeliveredRecord | ProxyError
"""What became of one record."""


class Log(Protocol):
    """Where records go: the producers of this proxy."""

    async def send_all(
        self, records: Sequence[OutgoingRecord | ProxyError], guarantees: Guarantees
    ) -> Sequence[Delivery | ProxyError]:
        """One outcome per record, in their order; raises ProxyError when none was tried."""


class Destination(msgspec.Struct, frozen=True):
    """Where the records of a request go, and how surely."""

    cluster_id: str
    topic: str
    guarantees: Guarantees


class WrittenRecord(msgspec.Struct, frozen=True, gc=False):
    """A record that is ready to be sent, and what its answer will tell."""

    record: OutgoingRecord
    key: WrittenPart | None
    value: WrittenPart | None


class RecordSender:
    """Writes and sends records; every record has an outcome of its own."""

    def __init__(self, log: Log, encoders: Encoders, metrics: ProxyMetrics) -> None:
        self._log = log
        self._encoders = encoders
        self._metrics = metrics

    async def write_text(self, text: bytes | msgspec.Raw, topic: str) -> WrittenRecord | ProxyError:
        """A record from its JSON, or why it is none."""
        try:
            request = parse_record(text)
        except ProxyError as error:
            return error
        return await self.write(request, topic)

    async def write(self, request: RecordRequest, topic: str) -> WrittenRecord | ProxyError:
        """A record from what was asked for, or why it is none."""
        try:
            key = await self._encoded(request.key, topic, is_key=True)
            value = await self._encoded(request.value, topic, is_key=False)
            return WrittenRecord(_outgoing(request, topic, key=key[0], value=value[0]), key[1], value[1])
        except ProxyError as error:
            return error

    async def send(self, written: Sequence[WrittenRecord | ProxyError], destination: Destination) -> list[Result]:
        """What became of each record, in their order.

        When none was tried (too much is on its way, the cluster is gone), that is what became of all of them.
        """
        records = [item if isinstance(item, ProxyError) else item.record for item in written]
        outcomes: Sequence[Delivery | ProxyError]
        try:
            outcomes = await self._log.send_all(records, destination.guarantees)
        except ProxyError as error:
            outcomes = [record if isinstance(record, ProxyError) else error for record in records]
        self._count(written, outcomes)
        return [_result(*pair, destination) for pair in zip(written, outcomes, strict=True)]

    async def _encoded(
        self, data: DataRequest | None, topic: str, *, is_key: bool
    ) -> tuple[bytes | None, WrittenPart | None]:
        if data is None:
            return None, None
        format_, choice = data.target()
        encoder: Encoder = self._encoders.ready(
            format_, topic, is_key=is_key, choice=choice
        ) or await self._encoders.encoder(format_, topic, is_key=is_key, choice=choice)
        encoded = encoder.encode(data.data)
        return encoded, part(encoder, encoded)

    def _count(self, written: Sequence[WrittenRecord | ProxyError], outcomes: Sequence[Delivery | ProxyError]) -> None:
        tallies: dict[str, list[int]] = {}
        for item, outcome in zip(written, outcomes, strict=True):
            tallies.setdefault(_format(item), [0, 0])[type(outcome) is Delivery] += 1
        for format_, (failed, good) in tallies.items():
            self._metrics.produced(format_, delivered=good, failed=failed)


def is_end(item: WrittenRecord | ProxyError) -> bool:
    """Whether nothing that follows a record can be read."""
    return isinstance(item, Malformed)


def _outgoing(request: RecordRequest, topic: str, *, key: bytes | None, value: bytes | None) -> OutgoingRecord:
    return OutgoingRecord(
        topic=topic,
        value=value,
        key=key,
        headers=request.header_pairs() if request.headers else (),
        partition=request.partition(),
        timestamp_ms=request.timestamp_ms(),
    )


def _result(written: WrittenRecord | ProxyError, outcome: Delivery | ProxyError, destination: Destination) -> Result:
    if isinstance(written, ProxyError):
        return written
    if isinstance(outcome, ProxyError):
        return told(outcome, destination.topic, written.record.partition)
    return delivered(outcome, destination.cluster_id, key=written.key, value=written.value)


def _format(item: WrittenRecord | ProxyError) -> str:
    """The format that a record is counted under."""
    if isinstance(item, ProxyError):
        return "unknown"
    described = item.value or item.key
    return "none" if described is None else described.type.lower()
