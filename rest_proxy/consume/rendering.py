"""Records as answers tell them: lists, and lines of a stream. A record that cannot be read is told in its place."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from core_broker.client.records import IncomingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format

UNREADABLE = 42207
"""The code of a record that cannot be told in the format that was asked for."""
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What msgspec raises for data that JSON cannot tell."""
_FRAME = 5
"""Bytes before data that is written by a schema: a zero, and the schema's id."""
_encoder = msgspec.json.Encoder()

Told = msgspec.Struct
"""A record in the words of one API."""


class Part(msgspec.Struct, omit_defaults=True, gc=False):
    """A key or value in API v3. One that cannot be read is told as BINARY, with the reason."""

    type: str
    data: object
    schema_id: int | UnsetType = UNSET
    error_code: int | UnsetType = UNSET
    message: str | UnsetType = UNSET


class NamedHeader(msgspec.Struct, gc=False):
    """A header, in the words of API v3 and of Karapace's API v2."""

    name: str
    value: bytes | None


class RecordV3(msgspec.Struct):
    """A record in API v3."""

    partition_id: int
    offset: int
    timestamp: int | None
    timestamp_type: str | None
    headers: Sequence[NamedHeader]
    key: Part | None
    value: Part | None


class RecordV2(msgspec.Struct, omit_defaults=True):
    """A record in API v2; what is beyond Confluent's five fields is left out where there is nothing to say."""

    topic: str
    key: object
    value: object
    partition: int
    offset: int
    timestamp: int | UnsetType | None = UNSET
    headers: list[NamedHeader] | UnsetType = UNSET
    error_code: int | UnsetType = UNSET
    message: str | UnsetType = UNSET
    key_raw: bytes | UnsetType = UNSET
    value_raw: bytes | UnsetType = UNSET


class Rendering:
    """Writes records in the words of one API, with keys and values in chosen formats; safe for any thread."""

    def __init__(self, tell: Callable[[IncomingRecord], Told], refuse: Callable[[IncomingRecord, str], Told]) -> None:
        self._tell = tell
        self._refuse = refuse

    def listed(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records as one list in JSON."""
        told = [self._tell(record) for record in records]
        try:
            return _encoder.encode(told)
        except UNWRITABLE:
            return _encoder.encode([msgspec.Raw(self._line(record)) for record in records])

    def lines(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records as JSON, one a line; each line ends with a newline, and has none inside."""
        told = [self._tell(record) for record in records]
        try:
            text = _encoder.encode_lines(told)
        except UNWRITABLE:
            return b"".join(_one_line(self._line(record)) for record in records)
        if text.count(b"\n") == len(records) and b"\r" not in text:
            return text
        # JSON that is kept as it is written may be spread over lines.
        return b"".join(_one_line(_encoder.encode(record)) for record in told)

    def _line(self, record: IncomingRecord) -> bytes:
        try:
            return _encoder.encode(self._tell(record))
        except UNWRITABLE as error:
            return _encoder.encode(self._refuse(record, str(error)))


def v3(key: Decoder, value: Decoder, *, key_format: Format, value_format: Format) -> Rendering:
    """Records as API v3 tells them."""
    tell_key, tell_value = _part(key, key.key, key_format), _part(value, value.value, value_format)

    def tell(record: IncomingRecord) -> RecordV3:
        return RecordV3(
            record.partition,
            record.offset,
            record.timestamp_ms if record.timestamp_type else None,
            record.timestamp_type or None,
            [NamedHeader(*header) for header in record.headers] if record.headers else (),
            tell_key(record, record.key) if record.key is not None else None,
            tell_value(record, record.value) if record.value is not None else None,
        )

    def refuse(record: IncomingRecord, reason: str) -> RecordV3:
        told = tell(msgspec.structs.replace(record, key=None, value=None))
        told.key, told.value = _refused(record.key, reason), _refused(record.value, reason)
        return told

    return Rendering(tell, refuse)


def v2(key: Decoder, value: Decoder, *, is_plain: bool) -> Rendering:
    """Records as API v2 tells them; plain ones have Confluent's fields alone."""

    def tell(record: IncomingRecord) -> RecordV2:
        try:
            told = RecordV2(record.topic, key.key(record), value.value(record), record.partition, record.offset)
        except ProxyError as error:
            told = _unreadable(record, error, key, value)
        if not is_plain:
            add_attributes(told, record)
        return told

    def refuse(record: IncomingRecord, reason: str) -> RecordV2:
        told = RecordV2(record.topic, None, None, record.partition, record.offset)
        return _with_error(told, record, ProxyError(UNREADABLE, reason))

    return Rendering(tell, refuse)


def _part(
    decoder: Decoder, decode: Callable[[IncomingRecord], object], format_: Format
) -> Callable[[IncomingRecord, bytes], Part]:
    name, has_schema = format_.upper(), format_.has_schema

    def tell(record: IncomingRecord, data: bytes) -> Part:
        try:
            decoded = decode(record)
        except ProxyError as error:
            return Part("BINARY", data, error_code=error.code, message=error.message)
        if has_schema and len(data) >= _FRAME and data[0] == 0:
            schema_id = int.from_bytes(data[1:_FRAME])
            return Part(decoder.format_by(schema_id).upper(), decoded, schema_id)
        return Part(name, decoded)

    return tell


def _refused(data: bytes | None, reason: str) -> Part | None:
    return None if data is None else Part("BINARY", data, error_code=UNREADABLE, message=reason)


def _unreadable(record: IncomingRecord, error: ProxyError, key: Decoder, value: Decoder) -> RecordV2:
    """A record of which the key or the value cannot be read: the other one is told all the same."""
    told = RecordV2(record.topic, None, None, record.partition, record.offset)
    told.error_code, told.message = error.code, error.message
    try:
        told.key = key.key(record)
    except ProxyError:
        told.key_raw = record.key or b""
    try:
        told.value = value.value(record)
    except ProxyError:
        told.value_raw = record.value or b""
    return told


def _with_error(told: RecordV2, record: IncomingRecord, error: ProxyError) -> RecordV2:
    told.error_code, told.message = error.code, error.message
    told.key_raw = UNSET if record.key is None else record.key
    told.value_raw = UNSET if record.value is None else record.value
    return told


def add_attributes(told: RecordV2, record: IncomingRecord) -> None:
    """Tell what Confluent's API v2 does not: the time, and headers, if there are any."""
    told.timestamp = record.timestamp_ms if record.timestamp_type else None
    if record.headers:
        told.headers = [NamedHeader(*header) for header in record.headers]


def _one_line(text: bytes) -> bytes:
    return msgspec.json.format(text, indent=-1) + b"\n"
