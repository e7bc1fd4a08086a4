"""Dead letters of sources: the source's record as JSON, so that it can be inspected and redriven."""

from collections.abc import Mapping

import msgspec

from connect.api.data import Schema, Value
from connect.api.errors import ConnectError
from connect.api.record import Header, SourceRecord
from connect.converters.json.converter import JsonConverter
from connect.runtime.failures.failed_record import FailedRecord

_WITH_SCHEMAS = {"schemas.enable": "true"}


class LetterBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A record of a source. Keys and values are JSON with their schemas, as JsonConverter writes them."""

    topic: str
    partition: int | None = None
    timestamp: int | None = None
    key: msgspec.Raw = msgspec.Raw(b"null")
    value: msgspec.Raw = msgspec.Raw(b"null")
    headers: list[tuple[str, msgspec.Raw]] = []
    source_partition: dict[str, Value] = {}
    source_offset: dict[str, Value] = {}
    unreadable: str | None = None
    """Data that the source could not turn into a record, or a text for a value that JSON cannot express."""


def failed_source_record(record: SourceRecord) -> FailedRecord:
    """The failed record for a source's record."""
    converter = JsonConverter(_WITH_SCHEMAS, is_key=False)
    body = LetterBody(
        topic=record.topic,
        partition=record.partition,
        timestamp=record.timestamp_ms,
        source_partition=dict(record.source_partition),
        source_offset=dict(record.source_offset),
    )
    try:
        body.key = _json(converter, record.topic, record.key_schema, record.key)
        body.value = _json(converter, record.topic, record.value_schema, record.value)
        body.headers = [(h.key, _json(converter, record.topic, h.schema, h.value)) for h in record.headers]
    except ConnectError:
        body.unreadable = repr((record.key, record.value))
    return _failed_record(record.topic, body, record.timestamp_ms)


def unreadable_source_data(
    data: bytes | str, *, topic: str, partition: Mapping[str, Value], offset: Mapping[str, Value]
) -> FailedRecord:
    """The failed record for data that a source could not turn into a record."""
    text = data if isinstance(data, str) else data.decode(errors="backslashreplace")
    body = LetterBody(topic=topic, source_partition=dict(partition), source_offset=dict(offset), unreadable=text)
    return _failed_record(topic, body, None)


def record_of(letter: bytes) -> SourceRecord | None:
    """The record in a dead letter; None when the source could not turn its data into a record."""
    body = msgspec.json.decode(letter, type=LetterBody)
    if body.unreadable is not None:
        return None
    converter = JsonConverter(_WITH_SCHEMAS, is_key=False)
    key_schema, key = converter.to_connect(body.topic, _bytes(body.key))
    value_schema, value = converter.to_connect(body.topic, _bytes(body.value))
    headers = []
    for name, data in body.headers:
        schema, header = converter.to_connect(body.topic, _bytes(data))
        headers.append(Header(name, header, schema))
    return SourceRecord(
        topic=body.topic,
        partition=body.partition,
        timestamp_ms=body.timestamp,
        key_schema=key_schema,
        key=key,
        value_schema=value_schema,
        value=value,
        headers=tuple(headers),
        source_partition=body.source_partition,
        source_offset=body.source_offset,
    )


def _failed_record(topic: str, body: LetterBody, timestamp_ms: int | None) -> FailedRecord:
    return FailedRecord(
        topic=topic,
        partition=None,
        offset=None,
        key=None,
        value=msgspec.json.encode(body),
        headers=(),
        timestamp_ms=timestamp_ms,
    )


def _json(converter: JsonConverter, topic: str, schema: Schema | None, value: Value) -> msgspec.Raw:
    data = converter.from_connect(topic, schema, value)
    return msgspec.Raw(b"null" if data is None else data)


def _bytes(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data == b"null" else data
