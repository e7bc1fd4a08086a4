"""Bodies of produce requests in API v2: read from bytes in one go, keys and values left as the JSON text they are."""

import re

import msgspec

from rest_proxy.errors import ProxyError, too_large
from rest_proxy.formats.formats import NO_CHOICE, SchemaChoice

NULL = msgspec.Raw(b"null")
"""A key or value that a record leaves out."""
NO_HEADERS = msgspec.Raw(b"null")
_MAX_SCHEMA_ID = 2**31 - 1
_MAX_VALUES = 1_000_000
"""Of objects, lists and members in a body, whatever they stand for: each takes time and memory once it is read."""
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
    """Records, and the schemas that their keys and values have; those may be left out where the format has none."""

    records: list[Record] = []
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None

    def key_choice(self) -> SchemaChoice:
        """What is said about the keys' schema; NO_CHOICE itself when that is nothing."""
        return _choice(self.key_schema, self.key_schema_id)

    def value_choice(self) -> SchemaChoice:
        """What is said about the values' schema; NO_CHOICE itself when that is nothing."""
        return _choice(self.value_schema, self.value_schema_id)


# Numbers may come as text, as Jackson and hence Confluent's proxy take them.
_decode = msgspec.json.Decoder(ProduceRequest, strict=False).decode


def parse(body: bytes, *, max_records: int) -> ProduceRequest:
    """Read a body; raises ProxyError when it cannot be meant as a whole.

    Codes are Confluent's: 400 for what is no JSON or has wrong types, 422 for what is missing or not known.
    """
    if not body:
        raise ProxyError(422, "The body is empty: it must be an object with records")
    if not body.isascii():
        _check_text(body)
    _check_values(body)
    try:
        request = _decode(body)
    except msgspec.ValidationError as error:
        raise _misfit(str(error)) from None
    except msgspec.DecodeError as error:
        raise ProxyError(400, f"The body is not valid JSON: {error}") from None
    except RecursionError:
        raise ProxyError(400, "The body is not valid JSON: it nests too deep") from None
    if not request.records:
        raise ProxyError(422, "records may not be empty")
    if len(request.records) > max_records:
        raise too_large(
            f"{len(request.records)} records: a request has at most {max_records} (produce.request.max.records)"
        )
    return request


def _choice(schema: str | None, schema_id: int | None) -> SchemaChoice:
    if schema_id is not None:
        # No registry has it, whatever it is asked.
        if not 0 <= schema_id <= _MAX_SCHEMA_ID:
            raise ProxyError(42205, f"Schema id {schema_id}: must be between 0 and {_MAX_SCHEMA_ID}")
        return SchemaChoice(schema_id=schema_id)
    return NO_CHOICE if schema is None else SchemaChoice(schema=schema)


def _check_text(body: bytes) -> None:
    # Keys and values are passed over unread, so that wrong bytes in them would be found by nobody.
    try:
        body.decode()
    except UnicodeDecodeError:
        raise ProxyError(400, "The body is not valid JSON: it is no text in UTF-8") from None


def _check_values(body: bytes) -> None:
    """Refuse too many values before they are made: five million empty records fit into a body."""
    if len(body) > _MAX_VALUES and _values(body) > _MAX_VALUES and _values(_STRINGS.sub(b"", body)) > _MAX_VALUES:
        raise too_large(f"The body has more than {_MAX_VALUES} values: send its records in several requests")


def _values(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _misfit(told: str) -> ProxyError:
    if found := _UNKNOWN_FIELD.search(told):
        return ProxyError(422, f"Unrecognized field: {found[1][:80]}")
    if told.endswith("at `$.records`") and "`null`" in told:
        return ProxyError(422, "records may not be null")
    return ProxyError(422 if told == "Expected `object`, got `null`" else 400, f"The body does not fit: {told[:200]}")
