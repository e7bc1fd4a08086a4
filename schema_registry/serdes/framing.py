"""How records name their schema: before the data, or in a header.

    data:    00 | id, 4 bytes, big-endian          | message indexes (Protobuf only) | data
    header:  01 | guid, 16 bytes, in `__value_schema_id` or `__key_schema_id` | message indexes (Protobuf only)

Message indexes are the path from the file to the message: how many there are, then each, as zigzag varints; the usual
[0] is a single 0. Both forms are accepted in both places, as in Confluent's clients.
"""

import uuid
from collections.abc import Iterable, Sequence

import msgspec

from schema_registry.serdes.errors import NotFramed

KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"

_ID = b"\x00"
_GUID = b"\x01"
_ID_BYTES = 5
_GUID_BYTES = 17
_MAX_INDEXES = 100
"""Levels of nested messages; Protobuf's compiler allows fewer."""
_MAX_VARINT_BYTES = 5

Header = tuple[str, bytes | None]


class Frame(msgspec.Struct, frozen=True, gc=False):
    """The name of a schema, and where the rest begins."""

    schema: int | str
    """The id, or the guid as text."""
    tail: bytes
    """The bytes that the name was read from."""
    start: int
    """Where the name ends in `tail`."""
    is_in_header: bool


def read_frame(data: bytes, header: bytes | None = None) -> Frame:
    """Find the name of a schema in the header, if there is one, or before the data; raises NotFramed."""
    source = data if header is None else header
    magic = source[:1]
    if magic == _ID and len(source) >= _ID_BYTES:
        return Frame(int.from_bytes(source[1:_ID_BYTES], "big"), source, _ID_BYTES, header is not None)
    if magic == _GUID and len(source) >= _GUID_BYTES:
        guid = str(uuid.UUID(bytes=bytes(source[1:_GUID_BYTES])))
        return Frame(guid, source, _GUID_BYTES, header is not None)
    place = "the header" if header is not None else "the data"
    if not source:
        raise NotFramed(f"{place} is empty and does not name a schema")
    if magic in (_ID, _GUID):
        raise NotFramed(f"{place} ends within the name of its schema, after {len(source)} bytes")
    raise NotFramed(f"{place} begins with byte {source[0]:#04x}, not with the 0x00 of a schema id")


def read_message_indexes(frame: Frame) -> tuple[tuple[int, ...], int]:
    """The message indexes after a schema's name, and where they end."""
    count, position = _read_varint(frame.tail, frame.start)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MAX_INDEXES:
        raise NotFramed(
            f"a message cannot be nested {count} levels deep: these bytes are not Protobuf data of a registry"
        )
    indexes = []
    for _ in range(count):
        index, position = _read_varint(frame.tail, position)
        indexes.append(index)
    return tuple(indexes), position


def id_prefix(schema_id: int, message_indexes: Sequence[int] | None = None) -> bytes:
    """The prefix that names a schema by its id."""
    return _ID + schema_id.to_bytes(4, "big") + _message_indexes(message_indexes)


def guid_header(guid: str, message_indexes: Sequence[int] | None = None) -> bytes:
    """The header that names a schema by its guid."""
    return _GUID + uuid.UUID(guid).bytes + _message_indexes(message_indexes)


def header_name(*, is_key: bool) -> str:
    """The header that names the schema of a record's key or value."""
    return KEY_HEADER if is_key else VALUE_HEADER


def header_of(headers: Iterable[Header] | None, *, is_key: bool) -> bytes | None:
    """The header that names a schema, if there is one."""
    if not headers:
        return None
    wanted = KEY_HEADER if is_key else VALUE_HEADER
    return next((value for name, value in headers if name == wanted), None)


def _message_indexes(indexes: Sequence[int] | None) -> bytes:
    if indexes is None:
        return b""
    if tuple(indexes) == (0,):
        return b"\x00"
    return b"".join(_varint(number) for number in (len(indexes), *indexes))


def _varint(number: int) -> bytes:
    rest = number << 1  # zigzag; indexes are never negative
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(data[position : position + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + shift + 1
    raise NotFramed("the data ends within its message indexes, or these are not numbers")
