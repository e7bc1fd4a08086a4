"""Keys and values as Kafka's own serializers write them: one number, text or bytes."""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from streams.formats.errors import FormatError
from streams.formats.fitting import Unfit
from streams.formats.layout import Layout
from streams.model.types import Name, Primitive


class _Plain(NamedTuple):
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _packed(form: str) -> _Plain:
    packer = struct.Struct(form)

    def decode(data: bytes) -> Any:
        if len(data) != packer.size:
            raise Unfit(f"expected {packer.size} bytes, not {len(data)}")
        return packer.unpack(data)[0]

    return _Plain(packer.pack, decode)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


PLAIN: Final[Mapping[Name, _Plain]] = {
    Name.INTEGER: _packed(">i"),
    Name.BIGINT: _packed(">q"),
    Name.DOUBLE: _packed(">d"),
    Name.STRING: _Plain(str.encode, _text),
    Name.BYTES: _Plain(bytes, bytes),
}


def check_kafka(layout: Layout) -> None:
    """Raise FormatError if the KAFKA format has no bytes for the type of the column."""
    for column in layout.columns:
        kind = column.sql_type
        if not isinstance(kind, Primitive) or kind.name not in PLAIN:
            raise FormatError(f"The KAFKA format cannot hold the column {column.name} of type {kind}.")


class KafkaCodec:
    """One plain value, and no coercion."""

    def __init__(self, layout: Layout) -> None:
        check_kafka(layout)
        (column,) = layout.columns
        kind = column.sql_type
        assert isinstance(kind, Primitive)
        self._plain = PLAIN[kind.name]

    def encode(self, values: Sequence[Any]) -> bytes | None:
        """The bytes of the value."""
        (value,) = values
        return None if value is None else self._plain.encode(value)

    def decode(self, data: bytes) -> Sequence[Any] | None:
        """The value of the bytes."""
        return [self._plain.decode(data)]
