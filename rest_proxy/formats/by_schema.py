"""Encoders for formats with schemas."""

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.formats.json_text import excerpt
from schema_registry.client.models import RegisteredSchema
from schema_registry.serdes.errors import SerdeError
from schema_registry.serdes.serializer import Writer

_decode = msgspec.json.Decoder().decode
_MAX_REASON = 600
_ERRORS = (SerdeError, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)


class SchemaEncoder:
    """Encodes and frames data from its JSON form: Avro's JSON encoding, JSON itself, or Protobuf's; null stays null."""

    def __init__(self, writer: Writer, mismatch_code: int) -> None:
        self.format = Format.of_schema(writer.registered.definition.schema_type)
        self.schema: RegisteredSchema | None = writer.registered
        self._prefix = writer.prefix
        self._encode = writer.codec.encode_json
        self._mismatch_code = mismatch_code

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The bytes of one key or value."""
        try:
            view = _decode(data)
            return None if view is None else self._prefix + self._encode(view)
        except _ERRORS as error:
            if not bytes(data):
                return None
            reason = str(error)
            if len(reason) > _MAX_REASON:
                # Errors deep inside repeat themselves level by level: the middle can go.
                reason = f"{reason[: _MAX_REASON // 2]} … {reason[-_MAX_REASON // 2 :]}"
            message = f"Conversion of JSON to {self.format} failed: {reason} (in {excerpt(data)})"
            raise ProxyError(self._mismatch_code, message) from None


class SchemaMissing:
    """The encoder for requests that name no schema: null needs none, anything else is refused."""

    schema = None

    def __init__(self, format_: Format, *, is_key: bool) -> None:
        self.format = format_
        self._is_key = is_key

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """None for null; raises ProxyError for anything else."""
        if bytes(data) in (b"", b"null"):
            return None
        if self._is_key:
            raise ProxyError(42201, "Request includes keys but does not include key schema")
        raise ProxyError(42202, "Request includes values but does not include value schema")
