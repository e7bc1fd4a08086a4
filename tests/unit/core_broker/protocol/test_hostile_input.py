"""More than 100,000 hostile inputs to the decoder and to record batches: an error each, never a crash or a big heap."""

import gzip
import random
import struct

import pytest

from core_broker.protocol.compression import Codec, CompressionError, decompress
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.metadata import MetadataRequest
from core_broker.protocol.primitives import DecodeError, uvarint
from core_broker.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    CorruptBatch,
    Record,
    build_batch,
    check_crc,
    parse_batches,
    read_records,
    write_crc,
)
from tests.support.hostile import HUGE_LENGTHS, mutate
from tests.support.memory import PeakMemory
from tests.support.messages import MessageFactory, message_classes

GROWTH_BYTES_MAX = 48 * 1024 * 1024
REQUESTS = [cls for cls in message_classes() if cls.__name__.endswith("Request")]
RESPONSES = [cls for cls in message_classes() if cls.__name__.endswith("Response")]


def attack_decoder(classes: list[type[Message]], *, rounds: int, seed: int) -> tuple[int, int]:
    """Decode mutations of valid messages of every version; returns (refused, accepted). Any other error escapes."""
    factory = MessageFactory(seed)
    refused = accepted = 0
    for cls in classes:
        for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
            valid = bytes(encode(factory.make(cls, version), version))
            for _ in range(rounds):
                try:
                    decode(cls, version, mutate(factory.random, valid))
                    accepted += 1
                except DecodeError:
                    refused += 1
    return refused, accepted


def test_100_000_mutated_requests_of_every_version_are_refused_or_read() -> None:
    with PeakMemory() as memory:
        refused, accepted = attack_decoder(REQUESTS, rounds=400, seed=1)
    assert refused + accepted >= 100_000
    assert refused > 50_000
    assert memory.growth_bytes < GROWTH_BYTES_MAX


def test_mutated_responses_of_every_version_are_refused_or_read() -> None:
    with PeakMemory() as memory:
        refused, accepted = attack_decoder(RESPONSES, rounds=60, seed=2)
    assert refused > accepted / 4
    assert memory.growth_bytes < GROWTH_BYTES_MAX


@pytest.mark.parametrize("length", HUGE_LENGTHS)
def test_a_huge_length_at_any_place_of_any_request_takes_no_memory(length: bytes) -> None:
    """CVE-2022-34917, CVE-2026-111108"""
    with PeakMemory() as memory:
        for cls in REQUESTS:
            for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
                valid = bytes(encode(cls(), version))
                for position in range(len(valid) + 1):
                    try:
                        decode(cls, version, valid[:position] + length + bytes(64))
                    except DecodeError:
                        pass
    assert memory.growth_bytes < GROWTH_BYTES_MAX


def test_a_big_frame_of_tiny_elements_stays_within_bounds() -> None:
    """CVE-2026-111108"""
    names = b"\x00\x00" * 500_000
    with PeakMemory() as memory:
        decode(MetadataRequest, 1, struct.pack(">i", 500_000) + names)
    assert memory.growth_bytes < 120 * len(names)


def test_a_big_frame_of_unknown_tags_is_stepped_over_without_being_kept() -> None:
    """CVE-2026-111115"""
    tags = (uvarint(9) + b"\x00") * 500_000
    body = bytes(encode(MetadataRequest(), 12))[:-1] + uvarint(500_000) + tags
    with PeakMemory() as memory:
        decode(MetadataRequest, 12, body)
    assert memory.growth_bytes < GROWTH_BYTES_MAX


def sample_batches(chance: random.Random) -> list[bytes]:
    def value() -> bytes:
        return chance.randbytes(chance.randint(0, 60))

    records = [Record(-1, 1000 + n, value() if n % 3 else None, value(), (("h", value()),) * (n % 3)) for n in range(6)]
    return [
        bytes(build_batch(records, codec=codec, producer_id=5, producer_epoch=1, base_sequence=0)) for codec in Codec
    ]


def attack_batches(*, rounds: int, seed: int, repair_crc: bool) -> tuple[int, int]:
    chance = random.Random(seed)
    refused = accepted = 0
    for _ in range(rounds):
        for valid in sample_batches(chance):
            data = bytearray(mutate(chance, valid))
            if repair_crc and len(data) >= HEADER_BYTES:
                struct.pack_into(">i", data, 8, len(data) - 12)
                data[16] = 2
                write_crc(data)
            try:
                for header in parse_batches(data):
                    if not repair_crc and not check_crc(data, header):
                        raise CorruptBatch("checksum")
                    read_records(data, header, max_bytes=1 << 20)
                accepted += 1
            except CorruptBatch:
                refused += 1
    return refused, accepted


def test_mutated_batches_are_refused_by_their_checksum() -> None:
    with PeakMemory() as memory:
        refused, accepted = attack_batches(rounds=2_000, seed=3, repair_crc=False)
    assert refused + accepted == 10_000
    assert accepted < 1_000  # only the mutations that stay clear of what the checksum covers
    assert memory.growth_bytes < GROWTH_BYTES_MAX


def test_mutated_batches_with_a_right_checksum_are_refused_or_read_within_bounds() -> None:
    with PeakMemory() as memory:
        refused, accepted = attack_batches(rounds=4_000, seed=4, repair_crc=True)
    assert refused + accepted == 20_000
    assert refused > 10_000
    assert memory.growth_bytes < GROWTH_BYTES_MAX


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_decompression_bomb_is_refused_before_it_takes_the_memory(codec: Codec) -> None:
    """The class of CVE-2023-34453 and CVE-2023-34454, for every codec."""
    bomb = build_batch([Record(-1, 0, None, bytes(200 << 20))], codec=codec)
    (header,) = parse_batches(bomb)
    with PeakMemory() as memory, pytest.raises(CorruptBatch, match="more than"):
        read_records(bomb, header, max_bytes=1 << 20)
    assert memory.growth_bytes < GROWTH_BYTES_MAX


def test_a_gzip_blob_of_thousands_of_empty_members_is_refused() -> None:
    with pytest.raises(CompressionError, match="members"):
        decompress(Codec.GZIP, gzip.compress(b"") * 1_000)


def test_a_record_count_that_cannot_fit_is_refused() -> None:
    batch = build_batch([Record(-1, 0, b"k", b"v")])
    struct.pack_into(">i", batch, HEADER_BYTES - 4, 2**31 - 1)
    write_crc(batch)
    (header,) = parse_batches(batch)
    with pytest.raises(CorruptBatch, match="cannot fit"):
        read_records(batch, header)


def test_each_bit_under_the_checksum_matters() -> None:
    batch = build_batch([Record(-1, 0, b"key", b"value")])
    for position in range(CRC_START, len(batch)):
        for bit in range(8):
            batch[position] ^= 1 << bit
            assert not check_crc(batch, parse_batches(batch)[0])
            batch[position] ^= 1 << bit
