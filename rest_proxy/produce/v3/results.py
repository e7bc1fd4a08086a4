"""Results of API v3: where each record was written, or why it was not."""

from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from msgspec import UNSET, UnsetType

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError, partition_not_found
from rest_proxy.formats.encoding import Encoder

DELIVERED = 200
_NO_BYTES = -1
"""The size of null, as in Kafka's Java client."""

encode = msgspec.json.Encoder().encode


class WrittenPart(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """How a key or value was encoded."""

    type: str
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    size: int


class DeliveredRecord(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """Where a record was written; in a batch it has an id instead of the code."""

    id: str | UnsetType = UNSET
    error_code: int | UnsetType = UNSET
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: str | None = None
    key: WrittenPart | None = None
    value: WrittenPart | None = None


class FailedRecord(msgspec.Struct, kw_only=True, gc=False):
    """Why a record was not written; in a batch it has an id."""

    id: str | UnsetType = UNSET
    error_code: int
    message: str


class BatchResult(msgspec.Struct):
    """The results of a batch."""

    successes: list[DeliveredRecord]
    failures: list[FailedRecord]


def written_part(encoder: Encoder, data: bytes | None) -> WrittenPart:
    """Describe a key or value that was encoded."""
    size = _NO_BYTES if data is None else len(data)
    schema = encoder.schema
    if schema is None:
        return WrittenPart(type=_type_name(encoder.format), size=size)
    return WrittenPart(
        type=_type_name(encoder.format),
        subject=schema.subject,
        schema_id=schema.id,
        schema_version=schema.version,
        size=size,
    )


def to_v3_error(error: ProxyError, topic: str, partition: int | None) -> ProxyError:
    """An error of the producers with API v3's codes and messages; the client library names no topic or partition."""
    match error.code:
        case 40401:
            return ProxyError(40403, "This server does not host this topic-partition.")
        case 40402 if partition is not None:
            return partition_not_found(topic, partition)
    return error


def failed_record(error: ProxyError, record_id: str | UnsetType = UNSET) -> FailedRecord:
    """An error in the form of the response."""
    return FailedRecord(id=record_id, error_code=error.code, message=error.message)


def delivered_record(
    delivery: Delivery, cluster_id: str, *, key: WrittenPart | None, value: WrittenPart | None
) -> DeliveredRecord:
    """A delivery in the form of the response."""
    return DeliveredRecord(
        error_code=DELIVERED,
        cluster_id=cluster_id,
        topic_name=delivery.topic,
        partition_id=delivery.partition,
        offset=delivery.offset,
        timestamp=format_timestamp(delivery.timestamp_ms),
        key=key,
        value=value,
    )


def format_timestamp(milliseconds: int) -> str | None:
    """A timestamp as Java formats it: in UTC, with milliseconds unless they are zero; None if it is not known."""
    seconds, rest = divmod(milliseconds, 1000)
    if milliseconds < 0 or (second := _format_second(seconds)) is None:
        return None
    return f"{second}.{rest:03d}Z" if rest else f"{second}Z"


# Cached, like the names below: consecutive records mostly share the second, and formatting costs more than the look-up.
@lru_cache(maxsize=256)
def _format_second(seconds: int) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=16)
def _type_name(format_: str) -> str:
    return format_.upper()
