"""Produce requests of API v2 from end to end: their records are encoded, sent, and each gets its outcome."""

from collections.abc import Sequence

import msgspec

from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import Guarantees, RecordLog
from rest_proxy.produce.v2.records import RecordWriter
from rest_proxy.produce.v2.requests import ProduceRequest
from rest_proxy.produce.v2.results import (
    NothingWritten,
    ProduceResult,
    count_failures,
    name_missing,
    partition_offsets,
)


class Destination(msgspec.Struct, frozen=True):
    """Where the records of a request go, and with which guarantees."""

    topic: str
    partition: int | None
    """For records that do not name a partition themselves."""
    guarantees: Guarantees


class V2RecordSender:
    """Encodes and sends the records of requests; a bad record does not stop the others."""

    def __init__(self, log: RecordLog, encoders: Encoders, metrics: ProxyMetrics) -> None:
        self._log = log
        self._encoders = encoders
        self._metrics = metrics

    async def send(self, request: ProduceRequest, format_: Format, destination: Destination) -> ProduceResult:
        """The outcome of each record; raises NothingWritten when all fail, another ProxyError when none was tried."""
        writer = RecordWriter(format_, destination.topic, destination.partition)
        await writer.prepare(request, self._encoders)
        records = await writer.write(request.records)
        outcomes: Sequence[Delivery | ProxyError] = await self._log.send_all(records, destination.guarantees)
        failed = count_failures(outcomes)
        self._metrics.add_produced(format_, delivered=len(outcomes) - failed, failed=failed)
        if failed:
            outcomes = [
                name_missing(
                    outcome, destination.topic, record.partition if isinstance(record, OutgoingRecord) else None
                )
                for outcome, record in zip(outcomes, records, strict=True)
            ]
        offsets = partition_offsets(outcomes)
        first = outcomes[0]
        if failed == len(outcomes) and isinstance(first, ProxyError):
            raise NothingWritten(first, offsets)
        return ProduceResult(offsets, writer.key_schema_id, writer.value_schema_id)
