"""Bodies of produce requests in API v2: decoded in one pass, with keys and values left as JSON text."""

import re
from typing import Annotated

import msgspec

from core_broker.client.records import Header
from rest_proxy.errors import ProxyError, too_large
from rest_proxy.formats.binary import from_base64
from rest_proxy.formats.formats import NO_CHOICE, SchemaChoice
from rest_proxy.formats.timestamps import MAX_TIMESTAMP_MS, parse_timestamp

NULL = msgspec.Raw(b"null")
"""A key or value that the record does not have."""
NO_HEADERS = msgspec.Raw(b"null")
_MAX_INT = 2**31 - 1
_MAX_HEADERS = 10_000
_INVALID_DATA = 42205
"""The code for data that does not match its format."""
_MAX_VALUES = 1_000_000
"""Most objects, lists and members in a body, wherever they are: each takes time and memory once it is decoded."""
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`(?: - at `\$|$)", re.DOTALL)


class Record(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One record of a request."""

    key: msgspec.Raw = NULL
    value: msgspec.Raw = NULL
    partition: int | None = None
    headers: msgspec.Raw = NO_HEADERS
    timestamp: int | str | None = None

    def partition_id(self) -> int | None:
        """The requested partition, if the number is valid; raises ProxyError for this record."""
        given = self.partition
        if given is not None and not 0 <= given <= _MAX_INT:
            raise ProxyError(422, f"Record partition {str(given)[:80]} must be between 0 and {_MAX_INT}")
        return given

    def timestamp_ms(self) -> int | None:
        """The timestamp, given in milliseconds or ISO 8601; raises ProxyError for this record."""
        given = self.timestamp
        if given is None:
            return None
        milliseconds = given if isinstance(given, int) else parse_timestamp(given)
        if milliseconds is None:
            shown = f"{str(given)[:80]!r} must be in milliseconds or ISO 8601, as in 2026-01-31T12:00:00Z"
            raise ProxyError(_INVALID_DATA, f"Record timestamp {shown}")
        # The client library takes 0 for "now", which is not what a client that sends 0 means.
        if not 0 < milliseconds <= MAX_TIMESTAMP_MS:
            reason = "must be after 1970 and before the year 10000"
            raise ProxyError(_INVALID_DATA, f"Record timestamp {str(given)[:80]} {reason}")
        return milliseconds

    def header_pairs(self) -> list[Header]:
        """The headers, `[{"name" or "key", "value"}]` with base64 values; raises ProxyError for this record."""
        try:
            decoded = _decode_headers(self.headers) or ()
        except (msgspec.DecodeError, RecursionError) as error:
            expected = f'must be a list of {{"name", "value": base64}}: {str(error)[:200]}'
            raise ProxyError(_INVALID_DATA, f"Record headers {expected}") from None
        return [_name_and_value(header) for header in decoded]


class _Header(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A header: its `name`, as Karapace and API v3 have it, or its `key`, as Kafka does."""

    name: str | None = None
    key: str | None = None
    value: str | None = None


_decode_headers = msgspec.json.Decoder(Annotated[list[_Header], msgspec.Meta(max_length=_MAX_HEADERS)] | None).decode


class ProduceRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Records, and the schemas of their keys and values if the format has schemas."""

    records: list[Record] = []
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None

    def key_choice(self) -> SchemaChoice:
        """The schema of the keys; NO_CHOICE itself if the request names none."""
        return _choice(self.key_schema, self.key_schema_id)

    def value_choice(self) -> SchemaChoice:
        """The schema of the values; NO_CHOICE itself if the request names none."""
        return _choice(self.value_schema, self.value_schema_id)


# Numbers may be sent as strings: Jackson, and hence Confluent's proxy, accepts them.
_decode = msgspec.json.Decoder(ProduceRequest, strict=False).decode


def parse(body: bytes, *, max_records: int) -> ProduceRequest:
    """Decode a body; raises ProxyError when it is invalid as a whole.

    Codes are Confluent's: 400 for invalid JSON or wrong types, 422 for missing or unknown fields.
    """
    if not body:
        raise ProxyError(422, "The body is empty: it must be an object with records")
    if not body.isascii():
        # The decoder does not look into keys and values, so it would miss invalid bytes in them.
        try:
            body.decode()
        except UnicodeDecodeError:
            raise ProxyError(400, "The body is not valid JSON: it is not encoded in UTF-8") from None
    # Count before decoding: five million empty records fit into a body. Strings are removed only if the first count,
    # which includes the commas and brackets in them, is too high.
    if len(body) > _MAX_VALUES and _values(body) > _MAX_VALUES and _values(_STRINGS.sub(b"", body)) > _MAX_VALUES:
        raise too_large(f"The body has more than {_MAX_VALUES} values: send its records in several requests")
    try:
        request = _decode(body)
    except msgspec.ValidationError as error:
        raise _invalid_body(str(error)) from None
    except msgspec.DecodeError as error:
        raise ProxyError(400, f"The body is not valid JSON: {error}") from None
    except RecursionError:
        raise ProxyError(400, "The body is not valid JSON: it is nested too deeply") from None
    if not request.records:
        raise ProxyError(422, "records may not be empty")
    if len(request.records) > max_records:
        raise too_large(
            f"{len(request.records)} records: a request has at most {max_records} (produce.request.max.records)"
        )
    return request


def _choice(schema: str | None, schema_id: int | None) -> SchemaChoice:
    if schema_id is not None:
        # No registry can have such an id.
        if not 0 <= schema_id <= _MAX_INT:
            raise ProxyError(_INVALID_DATA, f"Schema id {schema_id}: must be between 0 and {_MAX_INT}")
        return SchemaChoice(schema_id=schema_id)
    return NO_CHOICE if schema is None else SchemaChoice(schema=schema)


def _name_and_value(header: _Header) -> Header:
    name = header.name if header.name is not None else header.key
    if name is None:
        raise ProxyError(_INVALID_DATA, "A record header must have a name")
    if header.value is None:
        return name, None
    try:
        return name, from_base64(header.value)
    except ValueError as error:
        raise ProxyError(_INVALID_DATA, f"The record header {name[:80]} is not in base64: {error}") from None


def _values(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _invalid_body(reason: str) -> ProxyError:
    """Confluent's code and message for what msgspec reports."""
    if found := _UNKNOWN_FIELD.search(reason):
        return ProxyError(422, f"Unrecognized field: {found[1][:80]}")
    if reason.endswith("at `$.records`") and "`null`" in reason:
        return ProxyError(422, "records may not be null")
    code = 422 if reason == "Expected `object`, got `null`" else 400
    return ProxyError(code, f"The body is not a valid produce request: {reason[:200]}")
