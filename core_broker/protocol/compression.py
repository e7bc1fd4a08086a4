"""The compression codecs of record batches, with a limit on the decompressed size.

A small untrusted batch may decompress to gigabytes, so no length in the data is trusted: output is produced in pieces,
and decompression stops as soon as it exceeds the limit.

The formats are those of Kafka's clients: plain gzip, LZ4 frames with independent blocks (the Java client rejects
dependent ones), Zstandard frames, and for Snappy the framing of the xerial library, which Java writes around raw
blocks; librdkafka writes a raw block without it, and both are accepted.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import cramjam
import lz4.frame
import zstandard

Buffer = bytes | bytearray | memoryview

DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
"""The default limit: max(10 x max.message.bytes, 64 MiB) with Kafka's default."""


class Codec(IntEnum):
    """How the records of a batch are compressed: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """Compressed data that is invalid, or decompresses to more than the limit."""


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress a records section in the format that Kafka's clients expect; `level` None is the codec's default."""
    return _COMPRESSORS[codec](data, level)


def decompress(codec: Codec, data: Buffer, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Decompress a records section; raises CompressionError for invalid input or more than `max_bytes` of output."""
    return _DECOMPRESSORS[codec](data, max_bytes)


def _too_big(max_bytes: int) -> CompressionError:
    return CompressionError(f"decompresses to more than {max_bytes} bytes")


# -- none -------------------------------------------------------------------------------------------------------------


def _keep(data: Buffer, _: int | None) -> bytes:
    return bytes(data)


def _keep_bounded(data: Buffer, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_big(max_bytes)
    return bytes(data)


# -- gzip -------------------------------------------------------------------------------------------------------------

_GZIP_WINDOW: Final = 31  # 15 bits of window, and 16 for "with a gzip header"
_GZIP_MEMBERS_MAX: Final = 256
"""Clients write one. Each costs a copy of the rest of the data, so thousands of empty members are an attack."""


def _gzip(data: Buffer, level: int | None) -> bytes:
    return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=_GZIP_WINDOW)


def _gunzip(data: Buffer, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    room = max_bytes + 1
    rest: Buffer = data
    while rest:
        if len(pieces) == _GZIP_MEMBERS_MAX:
            raise CompressionError(f"gzip: more than {_GZIP_MEMBERS_MAX} members")
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            piece = member.decompress(rest, room)
        except zlib.error as error:
            raise CompressionError(f"gzip: {error}") from error
        pieces.append(piece)
        room -= len(piece)
        if room <= 0:
            raise _too_big(max_bytes)
        if not member.eof:
            raise CompressionError("gzip: the data is truncated")
        rest = member.unused_data  # Java's reader accepts several members in sequence
    if not pieces:
        raise CompressionError("gzip: no data")
    return b"".join(pieces)


# -- snappy -----------------------------------------------------------------------------------------------------------

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_MAGIC: Final = _XERIAL_HEADER[:8]
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">i")
_SNAPPY_GROWTH_MAX: Final = 64
"""Three bytes of Snappy encode at most 64 bytes of output, so a larger claimed size is invalid."""


def _snappy(data: Buffer, _: int | None) -> bytes:
    view = memoryview(data)
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += _BLOCK_LENGTH.pack(len(block))
        out += block
    return bytes(out)


def _unsnappy(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, max_bytes)
    pieces: list[bytes] = []
    total_size = 0
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise CompressionError("snappy: the header is truncated")
    while position < len(view):
        block, position = _xerial_block(view, position)
        total_size += _snappy_size(block)
        if total_size > max_bytes:
            raise _too_big(max_bytes)
        pieces.append(_unsnappy_block(block, max_bytes))
    return b"".join(pieces)


def _xerial_block(view: memoryview, position: int) -> tuple[memoryview, int]:
    """The block whose length is at `position`, and the position after it."""
    start = position + _BLOCK_LENGTH.size
    if start > len(view):
        raise CompressionError("snappy: a block length is truncated")
    (length,) = _BLOCK_LENGTH.unpack_from(view, position)
    if length < 0 or length > len(view) - start:
        raise CompressionError(f"snappy: block of {length} bytes does not fit into {len(view) - start}")
    return view[start : start + length], start + length


def _unsnappy_block(block: memoryview, max_bytes: int) -> bytes:
    if _snappy_size(block) > max_bytes:
        raise _too_big(max_bytes)
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from error


def _snappy_size(block: memoryview) -> int:
    """The decompressed size that a raw block claims."""
    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from error
    if size > len(block) * _SNAPPY_GROWTH_MAX:
        raise CompressionError(f"snappy: {len(block)} bytes cannot hold {size}")
    return size


# -- lz4 --------------------------------------------------------------------------------------------------------------


_LZ4_DEFAULT_LEVEL: Final = 9
_LZ4_FAST: Final = 0
_LZ4_HIGH_MIN: Final = 3
"""Below it the library compresses fast, whatever level it is given."""


def _lz4(data: Buffer, level: int | None) -> bytes:
    # As Kafka does it (KIP-390): the default level means the fast compressor, every other one the high compressor.
    is_fast = level is None or level == _LZ4_DEFAULT_LEVEL
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=_LZ4_FAST if is_fast else max(level or 0, _LZ4_HIGH_MIN),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _unlz4(data: Buffer, max_bytes: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        out: bytes = frame.decompress(data, max_length=max_bytes + 1)
    except (RuntimeError, EOFError) as error:
        raise CompressionError(f"lz4: {error}") from error
    if len(out) > max_bytes:
        raise _too_big(max_bytes)
    if not frame.eof:
        raise CompressionError("lz4: the data is truncated")
    return out


# -- zstd -------------------------------------------------------------------------------------------------------------

_ZSTD_LEVEL: Final = 3
_ZSTD_WINDOW_BYTES_MAX: Final = 128 * 1024 * 1024
_ZSTD_INPUT_BYTES: Final = 1024
"""Four bytes can decompress to 128 KiB, so input is passed in small pieces: at most 32 MiB exceed the limit."""


def _zstd(data: Buffer, level: int | None) -> bytes:
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL if level is None else level).compress(data)


def _unzstd(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    pieces: list[bytes] = []
    room = max_bytes
    position = 0
    while position < len(view):
        # A frame states the window that its decoder must allocate; more than 128 MiB is an attack.
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX).decompressobj()
        while not frame.eof:
            if position >= len(view):
                raise CompressionError("zstd: the data is truncated")
            room -= _feed_zstd(frame, view[position : position + _ZSTD_INPUT_BYTES], pieces)
            position += _ZSTD_INPUT_BYTES
            if room < 0:
                raise _too_big(max_bytes)
        position = min(position, len(view)) - len(frame.unused_data)
    return b"".join(pieces)


def _feed_zstd(frame: "zstandard.ZstdDecompressionObj", piece: memoryview, out: list[bytes]) -> int:
    try:
        decompressed = frame.decompress(piece)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: {error}") from error
    out.append(decompressed)
    return len(decompressed)


_COMPRESSORS: Final[dict[Codec, Callable[[Buffer, int | None], bytes]]] = {
    Codec.NONE: _keep,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: Final[dict[Codec, Callable[[Buffer, int], bytes]]] = {
    Codec.NONE: _keep_bounded,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
