"""Produce requests of API v2 from end to end: their records are encoded, sent, and each gets its outcome."""

import asyncio
from collections.abc import Sequence
from typing import Literal

import msgspec

from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.encoding import Encoder, Encoders
from rest_proxy.formats.formats import NO_CHOICE, Format
from rest_proxy.formats.schema_choices import Target
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import Guarantees, RecordLog
from rest_proxy.produce.v2.requests import NO_HEADERS, NULL, ProduceRequest, Record
from rest_proxy.produce.v2.results import NothingWritten, ProduceResult, count_failures, name_missing, partition_offsets

_CHUNK = 2000
_CHUNK_WITH_SCHEMA = 200
"""How many records are encoded before other requests get a turn; with schemas they take longer."""


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


class RecordWriter:
    """Encodes the records of one request in its format."""

    def __init__(self, format: Format, topic: str, partition: int | None) -> None:  # noqa: A002 - the API's word
        self._format = format
        self._topic = topic
        self._partition = partition
        self._keys: Encoder | None = None
        self._values: Encoder | None = None

    @property
    def key_schema_id(self) -> int | None:
        """The id of the key schema, if there is one."""
        return _schema_id(self._keys)

    @property
    def value_schema_id(self) -> int | None:
        """The id of the value schema, if there is one."""
        return _schema_id(self._values)

    async def prepare(self, request: ProduceRequest, encoders: Encoders) -> None:
        """Look up the schemas; raises ProxyError when they cannot be used for any record."""
        self._keys = await self._encoder(request, encoders, "key")
        self._values = await self._encoder(request, encoders, "value")

    async def write(self, records: Sequence[Record]) -> list[OutgoingRecord | ProxyError]:
        """Encode each record; one that cannot be encoded becomes its error."""
        chunk = _CHUNK_WITH_SCHEMA if self._format.has_schema else _CHUNK
        if len(records) <= chunk:
            return [self._write_one(record) for record in records]
        written: list[OutgoingRecord | ProxyError] = []
        for start in range(0, len(records), chunk):
            written += [self._write_one(record) for record in records[start : start + chunk]]
            await asyncio.sleep(0)
        return written

    async def _encoder(
        self, request: ProduceRequest, encoders: Encoders, part: Literal["key", "value"]
    ) -> Encoder | None:
        is_key = part == "key"
        choice = NO_CHOICE
        if self._format.has_schema:
            choice = request.key_choice() if is_key else request.value_choice()
            if choice is NO_CHOICE:
                # A format with schemas needs one, unless all keys (or values) are null.
                if any(bytes(getattr(record, part)) != b"null" for record in request.records):
                    code = 42201 if is_key else 42202
                    raise ProxyError(code, f"Request includes {part}s but does not include {part} schema")
                return None
        target = Target(self._format, self._topic, is_key, choice)
        return encoders.ready(target) or await encoders.encoder(target)

    def _write_one(self, record: Record) -> OutgoingRecord | ProxyError:
        keys, values = self._keys, self._values
        try:
            written = OutgoingRecord(
                topic=self._topic,
                value=values.encode(record.value) if values is not None else None,
                key=keys.encode(record.key) if keys is not None and record.key is not NULL else None,
                partition=self._partition if record.partition is None else record.partition_id(),
            )
            # The fast path: most records have neither.
            if record.headers is NO_HEADERS and record.timestamp is None:
                return written
            return OutgoingRecord(
                topic=written.topic,
                value=written.value,
                key=written.key,
                partition=written.partition,
                headers=record.header_pairs(),
                timestamp_ms=record.timestamp_ms(),
            )
        except ProxyError as error:
            return error


def _schema_id(encoder: Encoder | None) -> int | None:
    return encoder.schema.id if encoder is not None and encoder.schema is not None else None
