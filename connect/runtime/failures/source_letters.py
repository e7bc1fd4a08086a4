"""Dead letters of sources: what the source had read, as JSON, so that it can be looked at and sent again."""

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
    """What the source could not make a record of, or the words for a value that JSON cannot express."""


def failed_source_record(record: SourceRecord) -> FailedRecord:
    """A record of a source that failed on its way to its topic."""
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
    return _failed(record.topic, body, record.timestamp_ms)


def unreadable_source_data(
    data: bytes | str, *, topic: str, partition: Mapping[str, Value], offset: Mapping[str, Value]
) -> FailedRecord:
    """What a source has read and could make no record of."""
    text = data if isinstance(data, str) else data.decode(errors="backslashreplace")
    body = LetterBody(topic=topic, source_partition=dict(partition), source_offset=dict(offset), unreadable=text)
    return _failed(topic, body, None)


def record_of(letter: bytes) -> SourceRecord | None:
    """The record in a dead letter; None when the source could make none of what it had read."""
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


def _failed(topic: str, body: LetterBody, timestamp_ms: int | None) -> FailedRecord:
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
