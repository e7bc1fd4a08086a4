"""JSON kept as text: compact, in UTF-8, with every number as it was written."""

import re

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format

_MAX_SHOWN = 100
_FAULTS = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SPACE, _NEWLINE, _TAB, _RETURN, _BACKSLASH = b" \n\t\r\\"  # numbers are looked for ten times as fast as bytes
_raw = msgspec.json.Decoder(msgspec.Raw).decode
_text = msgspec.json.Decoder(str).decode


class JsonEncoder:
    """The text of JSON without the space between its parts; null is no bytes at all, as Confluent's proxy has it."""

    format = Format.JSON
    schema = None

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The text of one key or value."""
        text = bytes(data)
        if text == b"null" or not text:
            return None
        try:
            return compact(text)
        except _FAULTS as error:
            raise ProxyError(400, f"{shown(data)} is not JSON in UTF-8: {error}") from None


def compact(text: bytes) -> bytes:
    """Valid JSON without what may be left out, so that equal data are equal bytes; raises what msgspec does."""
    if not text.isascii():
        text.decode()  # msgspec looks into strings only when it makes some
    if _SPACE in text or _NEWLINE in text or _TAB in text or _RETURN in text:
        text = msgspec.json.format(text, indent=-1)
    if _BACKSLASH in text and (b"\\u" in text or b"\\/" in text):
        return _STRING.sub(_unescaped, text)
    return text


def checked(data: bytes) -> msgspec.Raw:
    """Bytes as JSON that can stand in an answer as it is; raises what msgspec does."""
    if not data.isascii():
        data.decode()
    return _raw(data)


def is_nothing(data: msgspec.Raw) -> bool:
    """Whether a request says null, or nothing, for a key or value."""
    return bytes(data) in (b"", b"null")


def shown(data: msgspec.Raw) -> str:
    """The beginning of what a request says, for messages."""
    text = bytes(memoryview(data)[: _MAX_SHOWN + 1])
    told = text[:_MAX_SHOWN].decode("utf-8", "replace")
    return f"{told}…" if len(text) > _MAX_SHOWN else told


def _unescaped(literal: re.Match[bytes]) -> bytes:
    text = literal[0]
    return msgspec.json.encode(_text(text)) if b"\\" in text else text
