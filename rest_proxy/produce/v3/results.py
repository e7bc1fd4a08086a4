"""Answers of API v3 to records: where each went, or why it did not."""

from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError, partition_not_found
from rest_proxy.formats.encoding import Encoder

DELIVERED = 200
_NO_BYTES = -1
"""The size of what is null, as Kafka's Java client tells it."""

encode = msgspec.json.Encoder().encode


class WrittenPart(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """How a key or value was written."""

    type: str
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    size: int


class DeliveredRecord(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """Where a record went."""

    error_code: int
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: str | None = None
    key: WrittenPart | None = None
    value: WrittenPart | None = None


class DeliveredEntry(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """Where a record of a batch went."""

    id: str
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: str | None = None
    key: WrittenPart | None = None
    value: WrittenPart | None = None


class FailedEntry(msgspec.Struct, gc=False):
    """Why a record of a batch went nowhere."""

    id: str
    error_code: int
    message: str


class BatchAnswer(msgspec.Struct):
    """What became of a batch."""

    successes: list[DeliveredEntry]
    failures: list[FailedEntry]


class Failure(msgspec.Struct, gc=False):
    """Why a record went nowhere."""

    error_code: int
    message: str


def part(encoder: Encoder, data: bytes | None) -> WrittenPart:
    """How a key or value was written."""
    size = _NO_BYTES if data is None else len(data)
    schema = encoder.schema
    if schema is None:
        return WrittenPart(type=_type(encoder), size=size)
    return WrittenPart(
        type=_type(encoder),
        subject=schema.subject,
        schema_id=schema.id,
        schema_version=schema.version,
        size=size,
    )


def told(error: ProxyError, topic: str, partition: int | None) -> ProxyError:
    """The same failure in the words and codes of API v3; the client library names neither topic nor partition."""
    match error.code:
        case 40401:
            return ProxyError(40403, "This server does not host this topic-partition.")
        case 40402 if partition is not None:
            return partition_not_found(topic, partition)
    return error


def failure(error: ProxyError) -> Failure:
    """A failure as it is answered."""
    return Failure(error.code, error.message)


def delivered(
    delivery: Delivery, cluster_id: str, *, key: WrittenPart | None, value: WrittenPart | None
) -> DeliveredRecord:
    """A success as it is answered."""
    return DeliveredRecord(
        error_code=DELIVERED,
        cluster_id=cluster_id,
        topic_name=delivery.topic,
        partition_id=delivery.partition,
        offset=delivery.offset,
        timestamp=timestamp(delivery.timestamp_ms),
        key=key,
        value=value,
    )


def entry(record_id: str, answer: DeliveredRecord) -> DeliveredEntry:
    """A success in a batch."""
    return DeliveredEntry(
        id=record_id,
        cluster_id=answer.cluster_id,
        topic_name=answer.topic_name,
        partition_id=answer.partition_id,
        offset=answer.offset,
        timestamp=answer.timestamp,
        key=answer.key,
        value=answer.value,
    )


def timestamp(milliseconds: int) -> str | None:
    """A time as Java writes it: in UTC, and with milliseconds if there are any; None when it is not known."""
    seconds, rest = divmod(milliseconds, 1000)
    if milliseconds < 0 or (second := _second(seconds)) is None:
        return None
    return f"{second}.{rest:03d}Z" if rest else f"{second}Z"


@lru_cache(maxsize=256)
def _second(seconds: int) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=16)
def _name(format_: str) -> str:
    return format_.upper()


def _type(encoder: Encoder) -> str:
    return _name(encoder.format)
