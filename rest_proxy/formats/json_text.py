"""JSON kept as text: compact, in UTF-8, with every number as the client wrote it."""

import re

import msgspec

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format

_MAX_EXCERPT = 100
_ERRORS = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SPACE, _NEWLINE, _TAB, _RETURN, _BACKSLASH = b" \n\t\r\\"  # ints: `in` finds them ten times as fast as bytes
_raw = msgspec.json.Decoder(msgspec.Raw).decode
_text = msgspec.json.Decoder(str).decode


class JsonEncoder:
    """Keeps JSON as text, without insignificant white space; null stays null, as in Confluent's proxy."""

    format = Format.JSON
    schema = None

    def encode(self, data: msgspec.Raw) -> bytes | None:
        """The text of one key or value."""
        text = bytes(data)
        if text == b"null" or not text:
            return None
        try:
            return compact(text)
        except _ERRORS as error:
            raise ProxyError(400, f"{excerpt(data)} is not JSON in UTF-8: {error}") from None


def compact(text: bytes) -> bytes:
    """JSON without white space and needless escapes, so that equal data has equal bytes; raises errors of msgspec."""
    if not text.isascii():
        text.decode()  # msgspec does not check strings that it does not decode
    if _SPACE in text or _NEWLINE in text or _TAB in text or _RETURN in text:
        text = msgspec.json.format(text, indent=-1)
    if _BACKSLASH in text and (b"\\u" in text or b"\\/" in text):
        return _STRING.sub(_without_escapes, text)
    return text


def check_json(data: bytes) -> msgspec.Raw:
    """Valid JSON in UTF-8, ready to be embedded in a response; raises errors of msgspec."""
    if not data.isascii():
        data.decode()
    return _raw(data)


def is_null(data: msgspec.Raw) -> bool:
    """Whether a key or value is null or missing."""
    return bytes(data) in (b"", b"null")


def excerpt(data: msgspec.Raw) -> str:
    """The beginning of a key or value, for messages."""
    text = bytes(memoryview(data)[: _MAX_EXCERPT + 1])
    beginning = text[:_MAX_EXCERPT].decode("utf-8", "replace")
    return f"{beginning}…" if len(text) > _MAX_EXCERPT else beginning


def _without_escapes(literal: re.Match[bytes]) -> bytes:
    text = literal[0]
    return msgspec.json.encode(_text(text)) if b"\\" in text else text
