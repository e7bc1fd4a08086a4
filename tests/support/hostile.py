"""Hostile bytes: what a broken or malicious client may send in the place of a sound message."""

import random
import struct
from typing import Final

from core_broker.protocol.primitives import uvarint

HUGE_LENGTHS: Final = (
    uvarint(0xFFFFFFFF),  # 2^32 - 1 as a compact length: the allocation bomb
    uvarint(0x7FFFFFFF),
    uvarint(1 << 24),
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    struct.pack(">i", 2**31 - 1),
    struct.pack(">i", -2),
    struct.pack(">i", -(2**31)),
    struct.pack(">I", 0xFFFFFFFF),
    struct.pack(">h", 2**15 - 1),
    struct.pack(">h", -2),
)


def mutate(chance: random.Random, data: bytes) -> bytes:
    """Make one to three changes of different kinds to a message."""
    for _ in range(chance.randint(1, 3)):
        data = chance.choice(_MUTATIONS)(chance, data)
    return data


def _flip_bits(chance: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(chance.randint(1, 8) if out else 0):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def _truncate(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randint(0, len(data))]


def _insert_noise(chance: random.Random, data: bytes) -> bytes:
    position = chance.randint(0, len(data))
    return data[:position] + chance.randbytes(chance.randint(1, 24)) + data[position:]


def _overwrite_with_a_huge_length(chance: random.Random, data: bytes) -> bytes:
    position = chance.randint(0, len(data))
    huge = chance.choice(HUGE_LENGTHS)
    return data[:position] + huge + data[position + len(huge) :]


def _insert_a_huge_length(chance: random.Random, data: bytes) -> bytes:
    position = chance.randint(0, len(data))
    return data[:position] + chance.choice(HUGE_LENGTHS) + data[position:]


def _repeat_a_part(chance: random.Random, data: bytes) -> bytes:
    start, stop = sorted(chance.randint(0, len(data)) for _ in range(2))
    return data[:stop] + data[start:stop] * chance.randint(1, 4) + data[stop:]


def _many_tags(chance: random.Random, data: bytes) -> bytes:
    """A tag section with many tags, or with tags whose content looks like tags again."""
    count = chance.randint(1, 200)
    tags = b"".join(uvarint(chance.randrange(6)) + b"\x02" + b"\x01\x00" for _ in range(count))
    return data[:-1] + uvarint(chance.choice((count, count, 0xFFFFFFFF))) + tags


def _noise(chance: random.Random, data: bytes) -> bytes:
    return chance.randbytes(chance.randint(0, 64))


_MUTATIONS: Final = (
    _flip_bits,
    _flip_bits,
    _truncate,
    _insert_noise,
    _overwrite_with_a_huge_length,
    _overwrite_with_a_huge_length,
    _insert_a_huge_length,
    _repeat_a_part,
    _many_tags,
    _noise,
)
