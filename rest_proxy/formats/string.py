"""Text, kept in UTF-8."""

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.formats.json_text import is_nothing, shown

_decode = msgspec.json.Decoder(str | None).decode


class StringEncoder:
    """Text from a JSON string; null is no bytes at all."""

    format = Format.STRING
    schema = None

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The text of one key or value."""
        try:
            text = _decode(data)
            return None if text is None else text.encode()
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
            if is_nothing(data):
                return None
            raise ProxyError(400, f"{shown(data)} is not text: expected a string in UTF-8, or null") from None
