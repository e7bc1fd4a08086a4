"""Text, kept in UTF-8."""

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.formats.json_text import excerpt, is_null

_decode = msgspec.json.Decoder(str | None).decode


class StringEncoder:
    """Encodes a JSON string as UTF-8; null stays null."""

    format = Format.STRING
    schema = None

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The text of one key or value."""
        try:
            text = _decode(data)
            return None if text is None else text.encode()
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
            if is_null(data):
                return None
            raise ProxyError(400, f"{excerpt(data)} is not text: expected a string in UTF-8, or null") from None
