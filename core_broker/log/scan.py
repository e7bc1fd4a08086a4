"""Iterates over the batches of a `.log` file, with their contents or from header to header."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crc32c import crc32c

from core_broker.log.log_file import LogFile
from core_broker.protocol.records import CRC_START, HEADER, HEADER_BYTES, LENGTH_BYTES, MAGIC, CorruptBatch

SCAN_BYTES: Final = 4 * 1024 * 1024
WALK_BYTES: Final = 8 * 1024

HeaderFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
"""The header as unpacked: base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp,
max timestamp, producer id, producer epoch, base sequence, record count."""

_unpack_header = HEADER.unpack_from


class BrokenBatch(CorruptBatch):
    """A position in a file where a valid batch is expected but not found."""

    def __init__(self, path: Path | str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.position = position


def scan(file: LogFile, start: int, end: int) -> Iterator[tuple[int, HeaderFields, memoryview]]:
    """Position, header and bytes of each batch from `start` to `end`; reads the file in large pieces.

    Raises BrokenBatch where the file does not continue with a complete batch. Checksums are left to the caller.
    """
    wanted = SCAN_BYTES
    while start < end:
        piece = memoryview(file.read(start, min(wanted, end - start)))
        at, size = 0, HEADER_BYTES
        while len(piece) - at >= HEADER_BYTES:
            fields = _unpack_header(piece, at)
            size = fields[1] + LENGTH_BYTES
            if size < HEADER_BYTES or fields[3] != MAGIC:
                raise BrokenBatch(file.path, start + at, f"no batch header (size {size}, magic {fields[3]})")
            if at + size > len(piece):
                break
            yield start + at, fields, piece[at : at + size]
            at += size
        start += at
        if at == 0 and (size > end - start or len(piece) < min(wanted, end - start)):
            raise BrokenBatch(file.path, start, f"the batch of {size} bytes is truncated")
        # A batch may be larger than a piece: the next piece is large enough for at least that batch.
        wanted = max(SCAN_BYTES, size)


def scan_verified(file: LogFile, start: int, end: int) -> Iterator[tuple[int, HeaderFields, memoryview, int]]:
    """As `scan`, but verifies checksums, and yields the piece of the file with the position of the batch in it.

    Made for recovery, which may have to read millions of small batches, and looks into few of them.
    """
    wanted = SCAN_BYTES
    while start < end:
        piece = memoryview(file.read(start, min(wanted, end - start)))
        at, size, last_header = 0, HEADER_BYTES, len(piece) - HEADER_BYTES
        while at <= last_header:
            fields = _unpack_header(piece, at)
            size = fields[1] + LENGTH_BYTES
            if size < HEADER_BYTES or fields[3] != MAGIC:
                raise BrokenBatch(file.path, start + at, f"no batch header (size {size}, magic {fields[3]})")
            if at + size > len(piece):
                break
            if crc32c(piece[at + CRC_START : at + size]) != fields[4]:
                raise BrokenBatch(file.path, start + at, "the checksum does not match")
            yield start + at, fields, piece, at
            at += size
        start += at
        if at == 0 and (size > end - start or len(piece) < min(wanted, end - start)):
            raise BrokenBatch(file.path, start, f"the batch of {size} bytes is truncated")
        wanted = max(SCAN_BYTES, size)


def walk(file: LogFile, start: int, end: int) -> Iterator[tuple[int, HeaderFields]]:
    """Position and header of each batch from `start` to `end`; reads little, for a few steps.

    Raises BrokenBatch where the file does not continue with a complete batch.
    """
    piece, piece_start = b"", start
    position = start
    while position < end:
        at = position - piece_start
        if at + HEADER_BYTES > len(piece):
            piece, piece_start, at = file.read(position, min(WALK_BYTES, end - position)), position, 0
            if len(piece) < HEADER_BYTES:
                raise BrokenBatch(file.path, position, "the batch header is truncated")
        fields = _unpack_header(piece, at)
        size = fields[1] + LENGTH_BYTES
        if size < HEADER_BYTES or fields[3] != MAGIC or position + size > end:
            raise BrokenBatch(file.path, position, f"no complete batch (size {size}, magic {fields[3]})")
        yield position, fields
        position += size
