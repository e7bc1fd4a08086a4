import gzip
import struct
import warnings
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from aiokafka import codec as aiokafka_codec
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.compression import Codec, CompressionError, compress, decompress

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # its import reads files in an old way
    from kafka import codec as kafka_codec

REAL_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@given(codec=st.sampled_from(list(Codec)), data=st.binary(max_size=5000), repeat=st.integers(1, 40))
def test_what_is_compressed_comes_back(codec: Codec, data: bytes, repeat: int) -> None:
    data *= repeat
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize(
    "codec,foreign",
    [
        (Codec.GZIP, kafka_codec.gzip_encode),
        (Codec.LZ4, kafka_codec.lz4_encode),
        (Codec.ZSTD, kafka_codec.zstd_encode),
    ],
)
def test_what_kafka_python_compresses_is_read(codec: Codec, foreign) -> None:  # type: ignore[no-untyped-def]
    data = bytes(range(256)) * 500
    assert decompress(codec, foreign(data)) == data


@pytest.mark.parametrize(
    "codec,foreign",
    [
        (Codec.GZIP, kafka_codec.gzip_decode),
        (Codec.LZ4, kafka_codec.lz4_decode),
        (Codec.ZSTD, kafka_codec.zstd_decode),
    ],
)
def test_kafka_python_reads_what_is_compressed(codec: Codec, foreign) -> None:  # type: ignore[no-untyped-def]
    data = bytes(range(256)) * 500
    assert foreign(compress(codec, data)) == data


def test_snappy_is_framed_as_aiokafka_frames_it() -> None:
    data = bytes(range(256)) * 500
    assert aiokafka_codec.snappy_decode(compress(Codec.SNAPPY, data)) == data
    assert decompress(Codec.SNAPPY, aiokafka_codec.snappy_encode(data)) == data


def test_snappy_without_the_xerial_framing_is_read() -> None:
    data = b"librdkafka writes raw blocks" * 100
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_several_gzip_members_are_read_as_one() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"first ") + gzip.compress(b"second")) == b"first second"


def test_several_zstd_frames_are_read_as_one() -> None:
    frames = zstandard.ZstdCompressor().compress(b"first ") + zstandard.ZstdCompressor().compress(b"second")
    assert decompress(Codec.ZSTD, frames) == b"first second"


def test_lz4_blocks_are_independent_as_java_demands() -> None:
    info = lz4.frame.get_frame_info(compress(Codec.LZ4, bytes(200_000)))
    assert info["block_linked"] is False


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_output_of_exactly_the_cap_is_allowed(codec: Codec) -> None:
    assert len(decompress(codec, compress(codec, bytes(100_000)), 100_000)) == 100_000


@pytest.mark.parametrize("codec", list(Codec))
def test_output_beyond_the_cap_is_refused(codec: Codec) -> None:
    with pytest.raises(CompressionError, match="more than 99999 bytes"):
        decompress(codec, compress(codec, bytes(100_000)), 99_999)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_data_cut_short_is_refused(codec: Codec) -> None:
    packed = compress(codec, bytes(range(256)) * 1000)
    with pytest.raises(CompressionError):
        decompress(codec, packed[: len(packed) // 2])


@given(codec=st.sampled_from(REAL_CODECS), garbage=st.binary(max_size=200))
def test_garbage_is_refused_or_read_but_nothing_else_is_raised(codec: Codec, garbage: bytes) -> None:
    try:
        decompress(codec, garbage, 1_000_000)
    except CompressionError:
        pass


@given(codec=st.sampled_from(REAL_CODECS), position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_flipped_byte_raises_nothing_else(codec: Codec, position: int, flip: int) -> None:
    packed = bytearray(compress(codec, b"some text that repeats, " * 50))
    packed[position % len(packed)] ^= flip
    try:
        decompress(codec, packed, 1_000_000)
    except CompressionError:
        pass


def test_a_gzip_bomb_stops_at_the_cap() -> None:
    layer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(layer.compress(bytes(1 << 20)) for _ in range(256)) + layer.flush()
    with pytest.raises(CompressionError, match="more than"):
        decompress(Codec.GZIP, bomb, 1 << 20)


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_memory_is_taken() -> None:
    """CVE-2023-34455"""
    claim = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, claim + b"\x00")
    with pytest.raises(CompressionError, match="cannot hold"):
        decompress(Codec.SNAPPY, b"\x80\x80\x80\x08" + b"\x00" * 10)


def test_a_xerial_block_length_beyond_the_data_is_refused() -> None:
    header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    with pytest.raises(CompressionError, match="does not fit"):
        decompress(Codec.SNAPPY, header + struct.pack(">i", 2**31 - 1) + b"abc")
    with pytest.raises(CompressionError, match="does not fit"):
        decompress(Codec.SNAPPY, header + struct.pack(">i", -5) + b"abc")


def test_a_zstd_frame_with_a_giant_window_is_refused() -> None:
    frame_header = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([31 << 3])
    with pytest.raises(CompressionError):
        decompress(Codec.ZSTD, frame_header + b"\x01\x00\x00")
