"""Reads the schema of a record: an id before its payload, or an id or GUID in a header.

A payload begins with a zero byte and the id in four bytes. A header has the same, or a byte of one and the sixteen
bytes of a GUID. For Protobuf the path to the message within its file follows the id in both cases.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

Headers = Sequence[tuple[str, bytes | None]]

ID_END: Final = 5
"""The end of the id before a payload."""
_ID_MAGIC: Final = 0
_GUID_END: Final = 17
_ID_MAX: Final = 2**31 - 1
_TAIL_BYTES_MAX: Final = 96
_INDEXES_MAX: Final = 16
"""Maximum nesting depth of a message; deeper descriptors do not occur in practice."""
_INDEX_BITS_MAX: Final = 28


class Side(StrEnum):
    """The key or the value of a record."""

    KEY = "key"
    VALUE = "value"

    @property
    def header(self) -> str:
        """The header that may contain the schema of this side."""
        return f"__{self}_schema_id"


class Framing(msgspec.Struct, frozen=True, gc=False):
    """The schema of a record, and the first bytes after it."""

    schema: int | bytes
    """An id, or the sixteen bytes of a GUID."""
    tail: bytes = b""


class BadFraming(ValueError):
    """A record without a valid schema reference; the message says why."""


def read_framing(side: Side, data: bytes, headers: Headers) -> Framing:
    """The schema of a key or value; raises BadFraming. A header takes precedence over the payload."""
    named = [value for name, value in headers if name == side.header and value is not None] if headers else ()
    if not named:
        return _in_payload(side, data)
    if any(value != named[0] for value in named):
        raise BadFraming(f"header {side.header} occurs more than once, with different schemas")
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
            raise BadFraming(f"header {side.header} contains neither the id nor the GUID of a schema")


def _by_id(side: Side, data: bytes) -> Framing:
    schema_id = int.from_bytes(data[1:ID_END], "big")
    if schema_id > _ID_MAX:
        raise BadFraming(f"{side} has schema id {schema_id}, but the largest valid id is {_ID_MAX}")
    return Framing(schema_id, data[ID_END : ID_END + _TAIL_BYTES_MAX])


def guid_text(guid: bytes) -> str:
    """A GUID in the format of registries."""
    text = guid.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def read_message_indexes(tail: bytes) -> tuple[int, ...]:
    """The path to a Protobuf message within its file; raises BadFraming. A count of 0 means the first message."""
    count, position = _varint(tail, 0)
    if not 0 <= count <= _INDEXES_MAX:
        raise BadFraming(f"the path has {count} message indexes; at most {_INDEXES_MAX} are allowed")
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
    raise BadFraming("the path to the Protobuf message is invalid")
