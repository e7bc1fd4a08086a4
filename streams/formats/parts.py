"""The interface of all formats: the columns of a key or of a value to bytes and back."""

from collections.abc import Sequence
from typing import Any, Protocol


class PartCodec(Protocol):
    """Reads and writes keys or values, one at a time; raises ValueError. Safe for any number of threads."""

    def encode(self, values: Sequence[Any]) -> bytes | None:
        """The bytes of the values of the columns, which are of their types."""
        ...

    def decode(self, data: bytes) -> Sequence[Any] | None:
        """The values of the columns; None if the data says that there are none."""
        ...
