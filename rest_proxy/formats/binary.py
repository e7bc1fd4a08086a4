"""Any bytes, as base64."""

import binascii
from collections.abc import Callable

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.formats.json_text import excerpt, is_null

_decode: Callable[[msgspec.Raw], bytes | None] = msgspec.json.Decoder(bytes | None).decode
_decode_text = msgspec.json.Decoder(str).decode


class BinaryEncoder:
    """Decodes base64 of the standard alphabet, with or without the padding at the end; null stays null."""

    format = Format.BINARY
    schema = None

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The bytes of one key or value."""
        try:
            return _decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
            pass
        # msgspec decodes base64 quickly, but insists on the padding.
        if is_null(data):
            return None
        try:
            return from_base64(_decode_text(data))
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, ValueError):
            raise ProxyError(
                400, f"{excerpt(data)} is not base64: expected a string of A-Z, a-z, 0-9, + and /, or null"
            ) from None


def from_base64(text: str) -> bytes:
    """Decode base64 as Confluent's proxy does: the padding may be missing; raises ValueError."""
    digits = text.rstrip("=")
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4), strict_mode=True)


def to_base64(data: bytes) -> str:
    """Encode in base64: standard alphabet, padded."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")
