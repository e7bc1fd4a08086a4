"""Records in requests of API v3: decoded in one pass and checked as Confluent's proxy does."""

from datetime import datetime
from typing import Annotated, TypeVar

import msgspec

from core_broker.client.records import Header
from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import from_base64
from rest_proxy.formats.formats import NO_CHOICE, Format, SchemaChoice
from schema_registry.serdes.subject_names import SubjectNameStrategy

T = TypeVar("T")

_FORMATS = {format_.name: format_ for format_ in Format}
_STRATEGIES = {strategy.value: strategy for strategy in SubjectNameStrategy}
_NOTHING = msgspec.Raw(b"null")
_MAX_PARTITION = 2**31 - 1
_MAX_HEADERS = 10_000
_MAX_SECONDS = 253_402_300_799
"""The end of the year 9999: the last one that ISO 8601 can express."""


class Malformed(ProxyError):
    """Text that is not JSON: nothing that follows it in the body can be parsed either."""


class HeaderRequest(msgspec.Struct, gc=False):
    """One header of a record."""

    name: str
    value: str | None = None
    """In base64."""


class DataRequest(msgspec.Struct, gc=False):
    """A key or a value, and its format and schema."""

    type: str | None = None
    subject: str | None = None
    subject_name_strategy: str | None = None
    schema_id: int | None = None
    schema_version: int | str | None = None
    schema: str | None = None
    data: msgspec.Raw = _NOTHING

    def target(self) -> tuple[Format | None, SchemaChoice]:
        """The format, None if the schema determines it, and the schema; raises ProxyError."""
        if self.type is None:
            return None, self._choice()
        format_ = _FORMATS.get(self.type)
        if format_ is None:
            raise ProxyError(400, f"type={self.type[:80]!r}: must be one of {', '.join(_FORMATS)}")
        return format_, self._choice()

    def _choice(self) -> SchemaChoice:
        given = (self.schema, self.schema_id, self.schema_version, self.subject, self.subject_name_strategy)
        if given == (None, None, None, None, None):
            return NO_CHOICE
        strategy, name = None, self.subject_name_strategy
        if name is not None:
            strategy = _STRATEGIES.get(name)
            if strategy is None:
                raise ProxyError(400, f"subject_name_strategy={name[:80]!r}: must be one of {', '.join(_STRATEGIES)}")
        return SchemaChoice(
            schema=self.schema,
            schema_id=self.schema_id,
            schema_version=self.schema_version,
            subject=self.subject,
            strategy=strategy,
        )


class RecordRequest(msgspec.Struct, gc=False):
    """A record to write; unknown fields are ignored."""

    partition_id: int | None = None
    timestamp: str | int | float | None = None
    headers: Annotated[list[HeaderRequest], msgspec.Meta(max_length=_MAX_HEADERS)] | None = None
    key: DataRequest | None = None
    value: DataRequest | None = None

    def partition(self) -> int | None:
        """The requested partition, if the number is valid; raises ProxyError."""
        given = self.partition_id
        if given is not None and not 0 <= given <= _MAX_PARTITION:
            raise ProxyError(40402, f"Partition not found: partition_id={given} must be between 0 and {_MAX_PARTITION}")
        return given

    def timestamp_ms(self) -> int | None:
        """The timestamp: text is ISO 8601, a number counts seconds, as in Confluent's proxy; raises ProxyError."""
        given = self.timestamp
        if given is None:
            return None
        seconds = _parse_seconds(given) if isinstance(given, str) else given
        # The client library takes 0 for "now", which is not what a client that sends 0 means. NaN fails here, too.
        if not 0 < seconds <= _MAX_SECONDS:
            shown = str(given)[:80]
            raise ProxyError(400, f"timestamp={shown}: must be after 1970 and before 10000; a number counts seconds")
        return round(seconds * 1000)

    def header_pairs(self) -> list[Header]:
        """The headers, in their order; raises ProxyError."""
        return [_name_and_value(header) for header in self.headers or ()]


class BatchRequest(msgspec.Struct):
    """Several records, each to be decoded by itself."""

    entries: list[msgspec.Raw] | None = None


class _Entry(msgspec.Struct, gc=False):
    id: object = None


_record = msgspec.json.Decoder(RecordRequest, strict=False)
_batch = msgspec.json.Decoder(BatchRequest)
_entry = msgspec.json.Decoder(_Entry)


def parse_record(text: bytes | msgspec.Raw) -> RecordRequest:
    """One record; raises Malformed, or another ProxyError when it is JSON but not a record."""
    return _decode(text, _record)


def parse_batch(text: bytes) -> BatchRequest:
    """The records of a batch; raises ProxyError."""
    return _decode(text, _batch)


def entry_id(text: msgspec.Raw) -> object:
    """The id of an entry in a batch, not yet checked; raises ProxyError."""
    return _decode(text, _entry).id


def _decode(text: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise ProxyError(400, f"Error processing JSON: {error}") from None
    except UnicodeDecodeError:
        raise Malformed(400, "Error processing JSON: it is not encoded in UTF-8") from None
    except msgspec.DecodeError as error:
        # msgspec reports an unpaired surrogate like broken syntax, but the text after it can still be parsed.
        if b"\\ud" in bytes(text).lower():
            raise ProxyError(400, "Error processing JSON: it is malformed or contains an unpaired surrogate") from None
        raise Malformed(400, f"Error processing JSON: {error}") from None
    except RecursionError:
        raise ProxyError(400, "Error processing JSON: it is nested too deeply") from None


def _name_and_value(header: HeaderRequest) -> Header:
    if "\0" in header.name:
        # The client library would take it for the end of the name.
        raise ProxyError(400, f"The name of header {header.name[:80]!r} contains a NUL")
    if header.value is None:
        return header.name, None
    try:
        return header.name, from_base64(header.value)
    except ValueError as error:
        raise ProxyError(400, f"The value of header {header.name[:80]!r} is not base64: {error}") from None


def _parse_seconds(text: str) -> float:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ProxyError(400, f"timestamp={text[:80]!r}: must be in ISO 8601 with a zone, as in 2026-01-31T12:00:00Z")
    return time.timestamp()
