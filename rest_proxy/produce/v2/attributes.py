"""What a record of API v2 may have besides key and value: headers, a timestamp, a partition."""

from typing import Annotated

import msgspec

from core_broker.client.records import Header
from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import from_base64
from rest_proxy.formats.timestamps import MAX_TIMESTAMP_MS, parse_timestamp

INVALID_DATA = 42205
"""The code for data that does not match its format."""
_MAX_PARTITION = 2**31 - 1
_MAX_HEADERS = 10_000


class _Header(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A header: its `name`, as Karapace and API v3 have it, or its `key`, as Kafka does."""

    name: str | None = None
    key: str | None = None
    value: str | None = None


_decode_headers = msgspec.json.Decoder(Annotated[list[_Header], msgspec.Meta(max_length=_MAX_HEADERS)] | None).decode


def headers(text: msgspec.Raw) -> list[Header]:
    """The headers of a record, `[{"name" or "key", "value"}]` with base64 values; raises ProxyError for this record."""
    try:
        decoded = _decode_headers(text) or ()
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProxyError(
            INVALID_DATA, f'Record headers must be a list of {{"name", "value": base64}}: {str(error)[:200]}'
        ) from None
    return [_name_and_value(header) for header in decoded]


def timestamp_ms(given: int | str) -> int:
    """The timestamp of a record, in milliseconds or ISO 8601; raises ProxyError for this record."""
    milliseconds = given if isinstance(given, int) else parse_timestamp(given)
    if milliseconds is None:
        raise ProxyError(
            INVALID_DATA,
            f"Record timestamp {str(given)[:80]!r} must be in milliseconds or ISO 8601, as in 2026-01-31T12:00:00Z",
        )
    # The client library takes 0 for "now", which is not what a client that sends 0 means.
    if not 0 < milliseconds <= MAX_TIMESTAMP_MS:
        raise ProxyError(
            INVALID_DATA, f"Record timestamp {str(given)[:80]} must be after 1970 and before the year 10000"
        )
    return milliseconds


def partition(given: int) -> int:
    """The partition of a record, if the number is valid; raises ProxyError for this record."""
    if not 0 <= given <= _MAX_PARTITION:
        raise ProxyError(422, f"Record partition {str(given)[:80]} must be between 0 and {_MAX_PARTITION}")
    return given


def _name_and_value(header: _Header) -> Header:
    name = header.name if header.name is not None else header.key
    if name is None:
        raise ProxyError(INVALID_DATA, "A record header must have a name")
    if header.value is None:
        return name, None
    try:
        return name, from_base64(header.value)
    except ValueError as error:
        raise ProxyError(INVALID_DATA, f"The record header {name[:80]} is not in base64: {error}") from None
