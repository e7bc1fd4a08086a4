"""Renders records as JSON: lists, and lines of a stream. A record that cannot be decoded keeps its place."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from core_broker.client.records import IncomingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format

UNREADABLE = 42207
"""The code for a record that cannot be decoded in the requested format."""
UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What msgspec raises for data that JSON cannot express."""
_FRAME = 5
"""Bytes in front of data with a schema: a zero, and the id of the schema."""
_encoder = msgspec.json.Encoder()

RenderedRecord = msgspec.Struct
"""A record in the form of one API."""


class RenderedPart(msgspec.Struct, omit_defaults=True, gc=False):
    """A key or value in API v3. One that cannot be decoded is BINARY, with the reason."""

    type: str
    data: object
    schema_id: int | UnsetType = UNSET
    error_code: int | UnsetType = UNSET
    message: str | UnsetType = UNSET


class NamedHeader(msgspec.Struct, gc=False):
    """A header, in the form of API v3 and of Karapace's API v2."""

    name: str
    value: bytes | None


class RecordV3(msgspec.Struct):
    """A record in API v3."""

    partition_id: int
    offset: int
    timestamp: int | None
    timestamp_type: str | None
    headers: Sequence[NamedHeader]
    key: RenderedPart | None
    value: RenderedPart | None


class RecordV2(msgspec.Struct, omit_defaults=True):
    """A record in API v2; fields beyond Confluent's five are left out if they are not set."""

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


class RecordRenderer:
    """Renders records in the form of one API, with keys and values in the requested formats; thread-safe."""

    def __init__(
        self,
        render: Callable[[IncomingRecord], RenderedRecord],
        render_unencodable: Callable[[IncomingRecord, str], RenderedRecord],
    ) -> None:
        self._render = render
        self._render_unencodable = render_unencodable

    def render_list(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records as one JSON array."""
        rendered = [self._render(record) for record in records]
        try:
            return _encoder.encode(rendered)
        except UNENCODABLE:
            return _encoder.encode([msgspec.Raw(self._encode(record)) for record in records])

    def render_lines(self, records: Sequence[IncomingRecord]) -> bytes:
        """Records as JSON, one per line; each line ends with a newline and has none inside."""
        rendered = [self._render(record) for record in records]
        try:
            text = _encoder.encode_lines(rendered)
        except UNENCODABLE:
            return b"".join(_one_line(self._encode(record)) for record in records)
        if text.count(b"\n") == len(records) and b"\r" not in text:
            return text
        # JSON that is embedded as it was written may contain line breaks.
        return b"".join(_one_line(_encoder.encode(record)) for record in rendered)

    def _encode(self, record: IncomingRecord) -> bytes:
        try:
            return _encoder.encode(self._render(record))
        except UNENCODABLE as error:
            return _encoder.encode(self._render_unencodable(record, str(error)))


def v3_renderer(key: Decoder, value: Decoder, *, key_format: Format, value_format: Format) -> RecordRenderer:
    """A renderer for API v3."""
    render_key = _part_renderer(key, key.key, key_format)
    render_value = _part_renderer(value, value.value, value_format)

    def render(record: IncomingRecord) -> RecordV3:
        return RecordV3(
            record.partition,
            record.offset,
            record.timestamp_ms if record.timestamp_type else None,
            record.timestamp_type or None,
            [NamedHeader(*header) for header in record.headers] if record.headers else (),
            render_key(record, record.key) if record.key is not None else None,
            render_value(record, record.value) if record.value is not None else None,
        )

    def render_unencodable(record: IncomingRecord, reason: str) -> RecordV3:
        rendered = render(msgspec.structs.replace(record, key=None, value=None))
        rendered.key, rendered.value = _raw_part(record.key, reason), _raw_part(record.value, reason)
        return rendered

    return RecordRenderer(render, render_unencodable)


def v2_renderer(key: Decoder, value: Decoder, *, is_plain: bool) -> RecordRenderer:
    """A renderer for API v2; plain records have Confluent's fields alone."""

    def render(record: IncomingRecord) -> RecordV2:
        try:
            rendered = RecordV2(record.topic, key.key(record), value.value(record), record.partition, record.offset)
        except ProxyError as error:
            rendered = _undecodable_v2(record, error, key, value)
        if not is_plain:
            add_attributes(rendered, record)
        return rendered

    def render_unencodable(record: IncomingRecord, reason: str) -> RecordV2:
        rendered = RecordV2(record.topic, None, None, record.partition, record.offset)
        rendered.error_code, rendered.message = UNREADABLE, reason
        rendered.key_raw = UNSET if record.key is None else record.key
        rendered.value_raw = UNSET if record.value is None else record.value
        return rendered

    return RecordRenderer(render, render_unencodable)


def _part_renderer(
    decoder: Decoder, decode: Callable[[IncomingRecord], object], format_: Format
) -> Callable[[IncomingRecord, bytes], RenderedPart]:
    name, has_schema = format_.upper(), format_.has_schema

    def render(record: IncomingRecord, data: bytes) -> RenderedPart:
        try:
            decoded = decode(record)
        except ProxyError as error:
            return RenderedPart("BINARY", data, error_code=error.code, message=error.message)
        if has_schema and len(data) >= _FRAME and data[0] == 0:
            schema_id = int.from_bytes(data[1:_FRAME])
            return RenderedPart(decoder.format_by(schema_id).upper(), decoded, schema_id)
        return RenderedPart(name, decoded)

    return render


def _raw_part(data: bytes | None, reason: str) -> RenderedPart | None:
    return None if data is None else RenderedPart("BINARY", data, error_code=UNREADABLE, message=reason)


def _undecodable_v2(record: IncomingRecord, error: ProxyError, key: Decoder, value: Decoder) -> RecordV2:
    """A record whose key or value cannot be decoded: the other one is rendered all the same."""
    rendered = RecordV2(record.topic, None, None, record.partition, record.offset)
    rendered.error_code, rendered.message = error.code, error.message
    try:
        rendered.key = key.key(record)
    except ProxyError:
        rendered.key_raw = record.key or b""
    try:
        rendered.value = value.value(record)
    except ProxyError:
        rendered.value_raw = record.value or b""
    return rendered


def add_attributes(rendered: RecordV2, record: IncomingRecord) -> None:
    """Add what Confluent's API v2 lacks: the timestamp, and headers if there are any."""
    rendered.timestamp = record.timestamp_ms if record.timestamp_type else None
    if record.headers:
        rendered.headers = [NamedHeader(*header) for header in record.headers]


def _one_line(text: bytes) -> bytes:
    return msgspec.json.format(text, indent=-1) + b"\n"
