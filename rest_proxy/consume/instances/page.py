"""The response to a poll: records in the instance's format, as JSON."""

from collections.abc import Sequence

import msgspec

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.rendering import UNENCODABLE, UNREADABLE, RecordV2, add_attributes
from rest_proxy.errors import ProxyError
from rest_proxy.formats.decoding import Decoder

_encode = msgspec.json.Encoder().encode


def size(record: IncomingRecord) -> int:
    """The size of a record for limits; at least 1, so that a poll for `fetch.min.bytes=1` also gets empty records."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers) if record.headers else 0
    return max(1, len(record.key or b"") + len(record.value or b"") + headers)


def encode_page(records: Sequence[IncomingRecord], decoder: Decoder, *, is_plain: bool) -> tuple[bytes, int]:
    """The records up to the first that cannot be decoded, as JSON, and how many they are.

    Raises ProxyError if that is the very first. The decoder must have been prepared for them.
    """
    page: list[RecordV2] = []
    for record in records:
        try:
            key, value = decoder.key_or_base64(record), decoder.value(record)
        except ProxyError as error:
            if not page:
                raise _with_advice(error, record) from error
            break
        rendered = RecordV2(record.topic, key, value, record.partition, record.offset)
        if not is_plain:
            add_attributes(rendered, record)
        page.append(rendered)
    try:
        return _encode(page), len(page)
    except UNENCODABLE:
        return _encode_one_by_one(page, records)


def _encode_one_by_one(page: Sequence[RecordV2], records: Sequence[IncomingRecord]) -> tuple[bytes, int]:
    """Encode a page up to the first record that JSON cannot express."""
    texts: list[bytes] = []
    for rendered, record in zip(page, records, strict=False):
        try:
            texts.append(_encode(rendered))
        except UNENCODABLE as error:
            if not texts:
                reason = f"Offset {record.offset} cannot be represented in JSON: {error}"
                raise _with_advice(ProxyError(UNREADABLE, reason), record) from error
            break
    return b"[" + b",".join(texts) + b"]", len(texts)


def _with_advice(error: ProxyError, record: IncomingRecord) -> ProxyError:
    advice = (
        f"Nothing is lost: skip it with POST …/positions, topic {record.topic}, partition "
        f"{record.partition}, offset {record.offset + 1}; or read it with an instance of format binary."
    )
    return ProxyError(
        error.code, f"{error.message.rstrip('.')}. {advice}", retry_after_seconds=error.retry_after_seconds
    )
