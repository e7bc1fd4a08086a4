"""Bodies of produce requests in API v2: decoded in one pass, with keys and values left as JSON text."""

import re

import msgspec

from rest_proxy.errors import ProxyError, too_large
from rest_proxy.formats.formats import NO_CHOICE, SchemaChoice

NULL = msgspec.Raw(b"null")
"""A key or value that the record does not have."""
NO_HEADERS = msgspec.Raw(b"null")
_MAX_SCHEMA_ID = 2**31 - 1
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
        if not 0 <= schema_id <= _MAX_SCHEMA_ID:
            raise ProxyError(42205, f"Schema id {schema_id}: must be between 0 and {_MAX_SCHEMA_ID}")
        return SchemaChoice(schema_id=schema_id)
    return NO_CHOICE if schema is None else SchemaChoice(schema=schema)


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
