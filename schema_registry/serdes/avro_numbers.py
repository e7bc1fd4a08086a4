"""Numbers and lengths as Avro writes them."""

from typing import Final

from schema_registry.serdes.errors import InvalidData

RANGES: Final = {"int": 1 << 31, "long": 1 << 63}

_LEAST_TIME: Final = 1 << 35
"""Numbers of six bytes: timestamps in milliseconds, which most records have."""


def varint(number: int) -> bytes:
    """The bytes of a number."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1  # zigzag
    if _LEAST_TIME <= rest < _LEAST_TIME << 7:
        return bytes(
            (
                rest & 0x7F | 0x80,
                rest >> 7 & 0x7F | 0x80,
                rest >> 14 & 0x7F | 0x80,
                rest >> 21 & 0x7F | 0x80,
                rest >> 28 & 0x7F | 0x80,
                rest >> 35,
            )
        )
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


SMALL: Final = tuple(varint(number) for number in range(1024))
"""The bytes of lengths, counts and most numbers."""


def sized(data: bytes) -> bytes:
    """Data with its length before it."""
    size = len(data)
    return (SMALL[size] if size < len(SMALL) else varint(size)) + data


def read_number(data: bytes, position: int) -> tuple[int, int]:
    """A number, and where it ends."""
    byte = data[position]
    number = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift > 63:
            raise InvalidData("a number has more than 64 bits")
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        shift += 7
    if shift > 63 and number >> 64:
        raise InvalidData("a number has more than 64 bits")
    return (number >> 1) ^ -(number & 1), position + 1
