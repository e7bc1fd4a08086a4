"""Produce requests of API v3: records are parsed, encoded and sent, and each gets its result."""

from collections.abc import Sequence

import msgspec

from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.schema_choices import Target
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import Guarantees, RecordLog
from rest_proxy.produce.v3.requests import DataRequest, Malformed, RecordRequest, parse_record
from rest_proxy.produce.v3.results import DeliveredRecord, WrittenPart, delivered_record, to_v3_error, written_part

Result = DeliveredRecord | ProxyError
"""The result of one record."""


class Destination(msgspec.Struct, frozen=True):
    """Where the records of a request go, and with which guarantees."""

    cluster_id: str
    topic: str
    guarantees: Guarantees


class WrittenRecord(msgspec.Struct, frozen=True, gc=False):
    """An encoded record, and how its result will describe key and value."""

    record: OutgoingRecord
    key: WrittenPart | None
    value: WrittenPart | None


class V3RecordSender:
    """Encodes and sends records; a bad record does not stop the others."""

    def __init__(self, log: RecordLog, encoders: Encoders, metrics: ProxyMetrics) -> None:
        self._log = log
        self._encoders = encoders
        self._metrics = metrics

    async def write_text(self, text: bytes | msgspec.Raw, topic: str) -> WrittenRecord | ProxyError:
        """Parse and encode a record; an invalid one becomes its error."""
        try:
            request = parse_record(text)
        except ProxyError as error:
            return error
        return await self.write(request, topic)

    async def write(self, request: RecordRequest, topic: str) -> WrittenRecord | ProxyError:
        """Encode a record; one that cannot be encoded becomes its error."""
        try:
            key, key_part = await self._encode(request.key, topic, is_key=True)
            value, value_part = await self._encode(request.value, topic, is_key=False)
            record = OutgoingRecord(
                topic=topic,
                value=value,
                key=key,
                headers=request.header_pairs() if request.headers else (),
                partition=request.partition(),
                timestamp_ms=request.timestamp_ms(),
            )
            return WrittenRecord(record, key_part, value_part)
        except ProxyError as error:
            return error

    async def send(self, written: Sequence[WrittenRecord | ProxyError], destination: Destination) -> list[Result]:
        """The result of each record, in their order.

        When none was tried (too much is in flight, the cluster is unreachable), all of them get that error.
        """
        records = [item if isinstance(item, ProxyError) else item.record for item in written]
        outcomes: Sequence[Delivery | ProxyError]
        try:
            outcomes = await self._log.send_all(records, destination.guarantees)
        except ProxyError as error:
            outcomes = [record if isinstance(record, ProxyError) else error for record in records]
        self._count(written, outcomes)
        return [_result(*pair, destination) for pair in zip(written, outcomes, strict=True)]

    async def _encode(
        self, data: DataRequest | None, topic: str, *, is_key: bool
    ) -> tuple[bytes | None, WrittenPart | None]:
        if data is None:
            return None, None
        format_, choice = data.target()
        target = Target(format_, topic, is_key, choice)
        encoder = self._encoders.ready(target) or await self._encoders.encoder(target)
        encoded = encoder.encode(data.data)
        return encoded, written_part(encoder, encoded)

    def _count(self, written: Sequence[WrittenRecord | ProxyError], outcomes: Sequence[Delivery | ProxyError]) -> None:
        """Add to the metrics; the format of a record is that of its value, or of its key if it has no value."""
        tallies: dict[str, list[int]] = {}
        for item, outcome in zip(written, outcomes, strict=True):
            if isinstance(item, ProxyError):
                format_ = "unknown"
            else:
                part = item.value or item.key
                format_ = "none" if part is None else part.type.lower()
            tallies.setdefault(format_, [0, 0])[type(outcome) is Delivery] += 1
        for format_, (failed, delivered) in tallies.items():
            self._metrics.add_produced(format_, delivered=delivered, failed=failed)


def is_end(item: WrittenRecord | ProxyError) -> bool:
    """Whether nothing that follows a record can be parsed."""
    return isinstance(item, Malformed)


def _result(written: WrittenRecord | ProxyError, outcome: Delivery | ProxyError, destination: Destination) -> Result:
    if isinstance(written, ProxyError):
        return written
    if isinstance(outcome, ProxyError):
        return to_v3_error(outcome, destination.topic, written.record.partition)
    return delivered_record(outcome, destination.cluster_id, key=written.key, value=written.value)
