"""The answer of a poll: records in the instance's format, as JSON."""

from collections.abc import Sequence

import msgspec

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.rendering import UNREADABLE, UNWRITABLE, RecordV2, add_attributes
from rest_proxy.errors import ProxyError
from rest_proxy.formats.decoding import Decoder

_encode = msgspec.json.Encoder().encode


def size(record: IncomingRecord) -> int:
    """Bytes that a record counts for; one at least, so that records without any are not waited for in vain."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers) if record.headers else 0
    return max(1, len(record.key or b"") + len(record.value or b"") + headers)


def encoded(records: Sequence[IncomingRecord], decoder: Decoder, *, is_plain: bool) -> tuple[bytes, int]:
    """The records up to the first that cannot be read, as JSON, and how many they are.

    Raises ProxyError if that is the very first. The decoder must have been prepared for them.
    """
    page: list[RecordV2] = []
    for record in records:
        try:
            page.append(_told(record, decoder, is_plain=is_plain))
        except ProxyError as error:
            if not page:
                raise _with_advice(error, record) from error
            break
    try:
        return _encode(page), len(page)
    except UNWRITABLE:
        return _one_by_one(page, records)


def _told(record: IncomingRecord, decoder: Decoder, *, is_plain: bool) -> RecordV2:
    key, value = decoder.key_or_base64(record), decoder.value(record)
    told = RecordV2(record.topic, key, value, record.partition, record.offset)
    if not is_plain:
        add_attributes(told, record)
    return told


def _one_by_one(page: Sequence[RecordV2], records: Sequence[IncomingRecord]) -> tuple[bytes, int]:
    """The same for a page that holds what JSON cannot tell."""
    texts: list[bytes] = []
    for told, record in zip(page, records, strict=False):
        try:
            texts.append(_encode(told))
        except UNWRITABLE as error:
            if not texts:
                reason = f"Offset {record.offset} cannot be told as JSON: {error}"
                raise _with_advice(ProxyError(UNREADABLE, reason), record) from error
            break
    return b"[" + b",".join(texts) + b"]", len(texts)


def _with_advice(error: ProxyError, record: IncomingRecord) -> ProxyError:
    advice = (
        f"Nothing is lost: read on behind it with POST …/positions, topic {record.topic}, partition "
        f"{record.partition}, offset {record.offset + 1}; or read it with an instance of format binary."
    )
    return ProxyError(
        error.code, f"{error.message.rstrip('.')}. {advice}", retry_after_seconds=error.retry_after_seconds
    )
