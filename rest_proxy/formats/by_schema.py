"""Data written by a schema of the registry."""

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.formats.json_text import shown
from schema_registry.client.models import RegisteredSchema
from schema_registry.serdes.errors import SerdeError
from schema_registry.serdes.serializer import Writer

_decode = msgspec.json.Decoder().decode
_MAX_REASON = 600
_FAULTS = (SerdeError, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)


class SchemaEncoder:
    """Framed data from its JSON view: Avro's JSON encoding, JSON itself, or Protobuf's mapping; null is no bytes."""

    def __init__(self, writer: Writer, unfit_code: int) -> None:
        self.format = Format.of_schema(writer.registered.definition.schema_type)
        self.schema: RegisteredSchema | None = writer.registered
        self._prefix = writer.prefix
        self._encode = writer.codec.encode_json
        self._unfit_code = unfit_code

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The bytes of one key or value."""
        try:
            view = _decode(data)
            return None if view is None else self._prefix + self._encode(view)
        except _FAULTS as error:
            if not bytes(data):
                return None
            raise ProxyError(
                self._unfit_code, f"Conversion of JSON to {self.format} failed: {_short(error)} (in {shown(data)})"
            ) from None


class SchemaMissing:
    """Stands in where a request names no schema: null needs none, all else is refused."""

    schema = None

    def __init__(self, format_: Format, *, is_key: bool) -> None:
        self.format = format_
        self._is_key = is_key

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """Nothing, if there is nothing."""
        if bytes(data) in (b"", b"null"):
            return None
        if self._is_key:
            raise ProxyError(42201, "Request includes keys but does not include key schema")
        raise ProxyError(42202, "Request includes values but does not include value schema")


def _short(error: Exception) -> str:
    """What is wrong, with its middle left out where it repeats itself level by level."""
    told = str(error)
    half = _MAX_REASON // 2
    return told if len(told) <= _MAX_REASON else f"{told[:half]} … {told[-half:]}"
