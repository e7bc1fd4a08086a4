"""How a record says which schema it was written with: an id before its payload, or an id or GUID in a header.

A payload begins with a zero byte and the id in four bytes. In a header the same may stand, or a byte of one and the
sixteen bytes of a GUID. For Protobuf the path to the message within its file follows, wherever the id stands.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

Headers = Sequence[tuple[str, bytes | None]]

ID_END: Final = 5
"""Where the id before a payload ends."""
_ID_MAGIC: Final = 0
_GUID_END: Final = 17
_ID_MAX: Final = 2**31 - 1
_TAIL_BYTES_MAX: Final = 96
_INDEXES_MAX: Final = 16
"""Depth of a message within messages; descriptors that are nested deeper are not heard of."""
_INDEX_BITS_MAX: Final = 28


class Side(StrEnum):
    """Which part of a record is meant."""

    KEY = "key"
    VALUE = "value"

    @property
    def header(self) -> str:
        """The header that may hold the schema of this side."""
        return f"__{self}_schema_id"


class Framing(msgspec.Struct, frozen=True, gc=False):
    """The schema that a record names, and the first bytes of what comes after."""

    schema: int | bytes
    """An id, or the sixteen bytes of a GUID."""
    tail: bytes = b""


class BadFraming(ValueError):
    """A record that does not name a schema; the message says what is wrong with it."""


def read_framing(side: Side, data: bytes, headers: Headers) -> Framing:
    """The schema that a key or value was written with; raises BadFraming. A header goes before the payload."""
    named = [value for name, value in headers if name == side.header and value is not None] if headers else ()
    if not named:
        return _in_payload(side, data)
    if any(value != named[0] for value in named):
        raise BadFraming(f"header {side.header} is there more than once, with different schemas")
    return _in_header(side, named[0])


def _in_payload(side: Side, data: bytes) -> Framing:
    if not data:
        raise BadFraming(f"{side} is empty; it must begin with a zero byte and the id of its schema")
    if data[0] != _ID_MAGIC:
        raise BadFraming(f"{side} begins with byte {data[0]}, not with a zero byte and the id of its schema")
    if len(data) < ID_END:
        raise BadFraming(f"{side} has {len(data)} bytes, too few for the id of its schema")
    return _by_id(side, data)


def _in_header(side: Side, data: bytes) -> Framing:
    match data[:1]:
        case b"\x00" if len(data) >= ID_END:
            return _by_id(side, data)
        case b"\x01" if len(data) >= _GUID_END:
            return Framing(data[1:_GUID_END], data[_GUID_END : _GUID_END + _TAIL_BYTES_MAX])
        case _:
            raise BadFraming(f"header {side.header} holds neither the id nor the GUID of a schema")


def _by_id(side: Side, data: bytes) -> Framing:
    schema_id = int.from_bytes(data[1:ID_END], "big")
    if schema_id > _ID_MAX:
        raise BadFraming(f"{side} names schema {schema_id}; no registry gives an id above {_ID_MAX}")
    return Framing(schema_id, data[ID_END : ID_END + _TAIL_BYTES_MAX])


def guid_text(guid: bytes) -> str:
    """A GUID as registries write it."""
    text = guid.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def read_message_indexes(tail: bytes) -> tuple[int, ...]:
    """The path to a Protobuf message within its file; raises BadFraming. A count of 0 is short for the first one."""
    count, position = _varint(tail, 0)
    if not 0 <= count <= _INDEXES_MAX:
        raise BadFraming(f"a path of {count} message indexes; at most {_INDEXES_MAX} are allowed")
    indexes = []
    for _ in range(count):
        index, position = _varint(tail, position)
        indexes.append(index)
    return tuple(indexes) or (0,)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag number, and the position after it."""
    value = shift = 0
    while position < len(data) and shift <= _INDEX_BITS_MAX:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise BadFraming("the path to the Protobuf message is broken")
