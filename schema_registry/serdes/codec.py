"""The interface of all formats: values and their JSON view to bytes and back, with one schema."""

from typing import Any, Protocol

Value = Any
"""Python data as returned by the format's own library."""
JsonView = Any
"""The same data in JSON: None, bool, int, float, str, list and dict."""


class Codec(Protocol):
    """Reads and writes data of one schema, without any framing; raises InvalidData. Safe for any number of threads."""

    def encode(self, value: Value) -> bytes:
        """The bytes of a value."""
        ...

    def decode(self, data: bytes, start: int = 0) -> Value:
        """The value of bytes, from `start` on."""
        ...

    def encode_json(self, view: JsonView) -> bytes:
        """The bytes of a value in the format's JSON encoding."""
        ...

    def decode_json(self, data: bytes, start: int = 0) -> JsonView:
        """The value of bytes, in the format's JSON encoding."""
        ...
