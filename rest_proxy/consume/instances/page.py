"""The answer of a poll: records in the instance's format, as JSON."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from core_broker.client.records import Header, IncomingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import to_base64
from rest_proxy.formats.decoding import Decoder

_encode = msgspec.json.Encoder().encode


class _Header(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: str | None


class _Record(msgspec.Struct, frozen=True):
    """Confluent's fields in its order, then ours: the time, and headers, if any, as Karapace writes them."""

    topic: str
    key: object
    value: object
    partition: int
    offset: int
    timestamp: int | UnsetType | None = UNSET
    headers: list[_Header] | UnsetType = UNSET


def size(record: IncomingRecord) -> int:
    """Bytes that a record counts for; one at least, so that records without any are not waited for in vain."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers) if record.headers else 0
    return max(1, len(record.key or b"") + len(record.value or b"") + headers)


def encoded(records: Sequence[IncomingRecord], decoder: Decoder, *, is_plain: bool) -> tuple[bytes, int]:
    """The records up to the first that cannot be read, as JSON, and how many they are.

    Raises ProxyError if that is the very first. The decoder must have been prepared for them.
    """
    page: list[_Record] = []
    for record in records:
        try:
            page.append(_told(record, decoder, is_plain=is_plain))
        except ProxyError as error:
            if not page:
                raise _with_advice(error, record) from error
            break
    return _encode(page), len(page)


def _told(record: IncomingRecord, decoder: Decoder, *, is_plain: bool) -> _Record:
    return _Record(
        record.topic,
        decoder.key_or_base64(record),
        decoder.value(record),
        record.partition,
        record.offset,
        UNSET if is_plain else (record.timestamp_ms if record.timestamp_type else None),
        UNSET if is_plain or not record.headers else [_header(header) for header in record.headers],
    )


def _header(header: Header) -> _Header:
    name, value = header
    return _Header(name, None if value is None else to_base64(value))


def _with_advice(error: ProxyError, record: IncomingRecord) -> ProxyError:
    advice = (
        f"Nothing is lost: read on behind it with POST …/positions, topic {record.topic}, partition "
        f"{record.partition}, offset {record.offset + 1}; or read it with an instance of format binary."
    )
    return ProxyError(
        error.code, f"{error.message.rstrip('.')}. {advice}", retry_after_seconds=error.retry_after_seconds
    )
