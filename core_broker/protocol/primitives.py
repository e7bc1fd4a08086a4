"""Primitive values of the wire format: variable-length integers, and the error for invalid input."""

from typing import Final

ZERO_UUID: Final = bytes(16)

type_of_buffer = bytes | bytearray | memoryview
"""The buffers that every reader of this package accepts."""


class DecodeError(ValueError):
    """Bytes from outside do not follow the wire format."""


_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(128))
_VARINT_BYTES_MAX: Final = 5


def uvarint(value: int) -> bytes:
    """Encode an unsigned integer with seven bits per byte, least significant first."""
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 128:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: type_of_buffer, position: int) -> tuple[int, int]:
    """Decode an unsigned 32-bit integer; returns it and the position after it."""
    byte = buffer[position]
    if byte < 128:
        return byte, position + 1
    value = byte & 0x7F
    for index in range(1, _VARINT_BYTES_MAX):
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position + index + 1
    raise DecodeError(f"varint at byte {position} is longer than 32 bits")


def skip_tagged_fields(buffer: type_of_buffer, position: int, end: int) -> int:
    """Skip a section of unknown tagged fields; returns the position after it."""
    count, position = read_uvarint(buffer, position)
    if count > end - position:
        raise DecodeError(f"{count} tagged fields cannot fit into {end - position} bytes")
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > end:
            raise DecodeError(f"tagged field of {size} bytes runs past the end of the message")
    return position
