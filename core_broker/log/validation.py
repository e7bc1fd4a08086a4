"""The leader's checks of batches before it appends them, and its changes to them.

The checks read only the header, so their cost does not depend on the number of records. Records are opened only if a
topic's settings require it: keys on a compacted topic, a limit on the age of timestamps. A batch with a valid header
and invalid records can therefore be appended, and readers must expect that. A batch is accepted or rejected as a whole,
but the error names the individual records at fault (KIP-467).
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from crc32c import crc32c

from core_broker.errors import RECORD_ERRORS_MAX, BrokerError, ErrorCode, RecordsRefused
from core_broker.log.producer_state import Origin
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    Record,
    change_codec,
    iterate_records,
    parse_batches,
    stamp_append_time,
)
from core_broker.service.clock import Clock
from core_broker.settings.topic import TopicSettings

NO_LIMIT: Final = 2**63 - 1
DECOMPRESSED_BYTES_MIN: Final = 64 * 1024 * 1024
OPENED_RECORDS_MAX: Final = 500_000
"""A megabyte can decompress to ten million records; opening so many would block all other clients for seconds."""

_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
_CODEC_LAST: Final = max(Codec)
_CLIENT_MAY_NOT_SET: Final = CONTROL_BIT | LOG_APPEND_TIME_BIT

_unpack_header = HEADER.unpack_from
_unpack_length = struct.Struct(">i").unpack_from
_LENGTH_AT: Final = 8


Admitted: TypeAlias = tuple[memoryview, list[BatchHeader], int]
"""Batches to append, their headers, and the timestamp set on them (-1 if the producer's timestamps are kept)."""


class AppendRules:
    """The checks required by one topic's settings."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_clock",
        "_codec",
        "_codec_level",
        "_latest_timestamp",
        "_max_message_bytes",
        "_needs_keys",
        "_opens_records",
        "_segment_bytes",
        "_stamps_append_time",
        "decompressed_bytes_max",
    )

    def __init__(self, settings: TopicSettings, clock: Clock) -> None:
        self._clock = clock
        self.configure(settings)

    def configure(self, settings: TopicSettings) -> None:
        """Apply new settings."""
        self._max_message_bytes = settings.max_message_bytes
        self._segment_bytes = settings.segment_bytes
        self._stamps_append_time = settings.message_timestamp_type == "LogAppendTime"
        self._before_max_ms = settings.message_timestamp_before_max_ms
        self._after_max_ms = settings.message_timestamp_after_max_ms
        self._needs_keys = "compact" in settings.cleanup_policy
        limits_age = self._before_max_ms < NO_LIMIT and not self._stamps_append_time
        self._opens_records = self._needs_keys or limits_age
        self._codec = _CODECS.get(settings.compression_type)
        levels = {
            Codec.GZIP: settings.compression_gzip_level,
            Codec.LZ4: settings.compression_lz4_level,
            Codec.ZSTD: settings.compression_zstd_level,
        }
        self._codec_level = None if self._codec is None else levels.get(self._codec)
        self.decompressed_bytes_max = max(10 * settings.max_message_bytes, DECOMPRESSED_BYTES_MIN)
        self._latest_timestamp = NO_LIMIT if self._stamps_append_time else NO_TIMESTAMP

    def admit(self, view: memoryview, origin: Origin) -> Admitted:
        """Check a leader's append; raises BrokerError. The batches may be changed in place or replaced."""
        headers = parse_headers(view)
        for header in headers:
            self._check(view, header, origin)
        if self._opens_records and origin is Origin.CLIENT:
            for header in headers:
                self._check_records(view, header)
        if len(headers) > 1:
            _check_several(headers, origin)
        if self._codec is not None:
            view, headers = self._recompress(view, headers)
        append_time_ms = self._stamp(view, headers) if self._stamps_append_time else NO_TIMESTAMP
        return view, headers, append_time_ms

    def _check(self, view: memoryview, header: BatchHeader, origin: Origin) -> None:
        size = header.length + LENGTH_BYTES
        if size > self._max_message_bytes or size > self._segment_bytes:
            self._reject_size(size)
        start = header.position
        body = view[CRC_START:] if size == len(view) else view[start + CRC_START : start + size]
        if crc32c(body) != header.crc:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "the checksum of the batch does not match")
        count = header.record_count
        if count <= 0 or header.last_offset_delta != count - 1 or header.attributes & CODEC_MASK > _CODEC_LAST:
            _reject_header(header)
        if origin is Origin.CLIENT:
            _check_client(header)
        if header.max_timestamp > self._latest_timestamp or header.max_timestamp < NO_TIMESTAMP:
            self._check_latest_timestamp(view, header)

    def _reject_size(self, size: int) -> None:
        if size > self._max_message_bytes:
            raise BrokerError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch has {size} bytes; max.message.bytes allows {self._max_message_bytes}",
            )
        raise BrokerError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes; segment.bytes allows {self._segment_bytes}"
        )

    def _check_latest_timestamp(self, view: memoryview, header: BatchHeader) -> None:
        """The slow path: the latest allowed timestamp is cached, and moves forward with the clock."""
        if self._stamps_append_time:
            return
        self._latest_timestamp = min(self._clock.now_ms() + self._after_max_ms, NO_LIMIT)
        if NO_TIMESTAMP <= header.max_timestamp <= self._latest_timestamp:
            return
        if header.record_count <= OPENED_RECORDS_MAX:
            self._check_records(view, header, latest=self._latest_timestamp)
        # The records are fine and only the header is wrong, or there are too many records to check.
        raise BrokerError(ErrorCode.INVALID_TIMESTAMP, self._too_late(header.max_timestamp, self._latest_timestamp))

    def _too_late(self, timestamp: int, latest: int) -> str:
        return (
            f"timestamp {timestamp} is later than {latest}, "
            f"which message.timestamp.after.max.ms={self._after_max_ms} allows"
        )

    def open_records(self, view: memoryview) -> Iterator[Record]:
        """The records of a producer's batches, with the same header checks as for an append; raises BrokerError."""
        for header in parse_headers(view):
            self._check(view, header, Origin.CLIENT)
            yield from self._open(view, header)

    def _open(self, view: memoryview, header: BatchHeader) -> Iterator[Record]:
        if header.record_count > OPENED_RECORDS_MAX:
            raise BrokerError(
                ErrorCode.INVALID_RECORD,
                f"the batch has {header.record_count} records; at most {OPENED_RECORDS_MAX} can be checked",
            )
        try:
            yield from iterate_records(view, header, max_bytes=self.decompressed_bytes_max)
        except CorruptBatch as error:
            raise BrokerError(ErrorCode.INVALID_RECORD, f"the records cannot be read: {error}") from error

    def _check_records(self, view: memoryview, header: BatchHeader, *, latest: int = NO_LIMIT) -> None:
        """Check each record; raises RecordsRefused with all bad ones."""
        if header.attributes & CONTROL_BIT:
            return
        needs_keys = self._needs_keys
        earliest = NO_TIMESTAMP
        if not self._stamps_append_time and self._before_max_ms < NO_LIMIT:
            earliest = self._clock.now_ms() - self._before_max_ms
        code = ErrorCode.INVALID_RECORD
        bad: dict[int, str] = {}
        for index, record in enumerate(self._open(view, header)):
            timestamp = record.timestamp
            if needs_keys and record.key is None:
                bad[index] = "a record of a compacted topic must have a key"
            elif NO_TIMESTAMP != timestamp < earliest:
                code = ErrorCode.INVALID_TIMESTAMP
                bad[index] = (
                    f"timestamp {timestamp} is earlier than {earliest}, "
                    f"which message.timestamp.before.max.ms={self._before_max_ms} allows"
                )
            elif timestamp > latest:
                code = ErrorCode.INVALID_TIMESTAMP
                bad[index] = self._too_late(timestamp, latest)
            else:
                continue
            if len(bad) == RECORD_ERRORS_MAX:
                break
        if bad:
            raise RecordsRefused(code, bad)

    def _recompress(self, view: memoryview, headers: list[BatchHeader]) -> tuple[memoryview, list[BatchHeader]]:
        """Recompress all batches with the topic's compression.type."""
        codec = self._codec
        assert codec is not None
        if all(header.attributes & CODEC_MASK == codec or header.is_control for header in headers):
            return view, headers
        out = bytearray()
        for header in headers:
            if header.attributes & CODEC_MASK == codec or header.is_control:
                out += view[header.position : header.position + header.size]
                continue
            try:
                out += change_codec(view, header, codec, level=self._codec_level, max_bytes=self.decompressed_bytes_max)
            except CorruptBatch as error:
                raise BrokerError(ErrorCode.INVALID_RECORD, f"the records cannot be read: {error}") from error
        headers = parse_batches(out)
        if (largest := max(header.size for header in headers)) > min(self._max_message_bytes, self._segment_bytes):
            self._reject_size(largest)
        return memoryview(out), headers

    def _stamp(self, view: memoryview, headers: list[BatchHeader]) -> int:
        now_ms = self._clock.now_ms()
        for header in headers:
            stamp_append_time(view[header.position : header.position + header.size], header, now_ms)
        return now_ms


def parse_headers(view: memoryview) -> list[BatchHeader]:
    """The headers of the batches in a buffer; raises BrokerError if it contains anything else."""
    if len(view) >= HEADER_BYTES:
        fields = _unpack_header(view, 0)
        if fields[1] == len(view) - LENGTH_BYTES and fields[3] == MAGIC:
            return [BatchHeader(0, *fields)]
    if not view:
        raise BrokerError(ErrorCode.INVALID_RECORD, "at least one record batch is required")
    if len(view) > MAGIC_POSITION and view[MAGIC_POSITION] < MAGIC:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"message format {view[MAGIC_POSITION]} is not supported; use record batches (magic 2)",
        )
    try:
        return parse_batches(view)
    except CorruptBatch as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def parse_complete_headers(view: memoryview) -> list[BatchHeader]:
    """As `parse_headers`, but a last batch that is cut off is left out: leaders cut their responses anywhere."""
    position = 0
    while len(view) - position >= LENGTH_BYTES:
        size = _unpack_length(view, position + _LENGTH_AT)[0] + LENGTH_BYTES
        if size < HEADER_BYTES:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"the batch at byte {position} claims {size} bytes")
        if size > len(view) - position:
            break
        position += size
    return parse_headers(view[:position])


def _reject_header(header: BatchHeader) -> None:
    if header.attributes & CODEC_MASK > _CODEC_LAST:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {header.attributes & CODEC_MASK} is unknown"
        )
    raise BrokerError(
        ErrorCode.INVALID_RECORD,
        f"the batch has {header.record_count} records, but its last offset delta is {header.last_offset_delta}",
    )


def _check_client(header: BatchHeader) -> None:
    """Restrictions that apply to producers only."""
    if header.attributes & _CLIENT_MAY_NOT_SET:
        if header.attributes & CONTROL_BIT:
            raise BrokerError(ErrorCode.INVALID_RECORD, "clients may not write control records")
        raise BrokerError(ErrorCode.INVALID_TIMESTAMP, "producers may not set the timestamp type LogAppendTime")
    if header.base_offset != 0:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"the base offset must be 0, not {header.base_offset}")
    if header.producer_id >= 0:
        if header.base_sequence < 0 or header.producer_epoch < 0:
            raise BrokerError(
                ErrorCode.INVALID_RECORD,
                f"producer {header.producer_id} has sequence {header.base_sequence} and epoch "
                f"{header.producer_epoch}; neither may be negative",
            )
    elif header.attributes & TRANSACTIONAL_BIT:
        raise BrokerError(ErrorCode.INVALID_RECORD, "a transactional batch must have a producer id")


def _check_several(headers: Sequence[BatchHeader], origin: Origin) -> None:
    """The sequences of several batches cannot be checked, since the state does not include the first ones yet."""
    if origin is Origin.CLIENT and any(header.producer_id >= 0 for header in headers):
        raise BrokerError(
            ErrorCode.INVALID_RECORD,
            f"an idempotent producer may send only one batch per partition, not {len(headers)}",
        )
