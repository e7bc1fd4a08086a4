"""Produce requests and responses, decoded and encoded by hand, because every record takes this path.

The generic codec could do both, but it would build objects that are not needed. Tests compare the two.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from core_broker.errors import ErrorCode
from core_broker.handlers.current_leader import NO_ENDPOINTS, LeaderAndEpoch, encode_leader
from core_broker.protocol.frames import finish_response, start_response
from core_broker.protocol.primitives import DecodeError, read_uvarint, skip_tagged_fields, uvarint

FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13
_TRANSACTIONAL_ID_SINCE: Final = 3
_UUID_BYTES: Final = 16
_TOPIC_BYTES_MIN: Final = 3
_PARTITION_BYTES_MIN: Final = 6

Unpack: TypeAlias = Callable[[memoryview, int], tuple[int]]

_unpack_acks = struct.Struct(">hi").unpack_from
_unpack_int32 = struct.Struct(">i").unpack_from
_unpack_int16 = struct.Struct(">h").unpack_from
_pack_int16 = struct.Struct(">h").pack
_pack_int32 = struct.Struct(">i").pack
_pack_oldest = struct.Struct(">ihq").pack
_pack_result_2 = struct.Struct(">ihqq").pack
_pack_result_5 = struct.Struct(">ihqqq").pack
_pack_success = struct.Struct(">ihqqq3s").pack
_NO_RECORD_ERRORS_NO_MESSAGE_NO_TAGS: Final = b"\x01\x00\x00"


class PartitionRecords(msgspec.Struct, gc=False):
    """The batches for one partition, as a slice of the frame."""

    index: int
    records: memoryview | None


class TopicRecords(msgspec.Struct, gc=False):
    """The batches for one topic."""

    name: str
    """Empty if the topic is given by its id."""
    key: bytes
    """The topic on the wire: its name, or its id from version 13 on."""
    partitions: list[PartitionRecords]


class ProduceCall(msgspec.Struct, gc=False):
    """A Produce request."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicRecords]
    size_bytes: int
    """Of the whole request."""
    leaders: list[int] = []
    """The brokers that lead partitions of the request which this one does not lead."""


class PartitionResult(msgspec.Struct, gc=False):
    """The result for one partition."""

    index: int
    error: int = 0
    base_offset: int = -1
    append_time_ms: int = -1
    start_offset: int = -1
    message: str | None = None
    record_errors: Sequence[tuple[int, str]] = ()
    """Index within the batch and error of individual records; `message` is set, too."""
    leader: LeaderAndEpoch | None = None
    """The current leader, with an error that says there is another one (KIP-951)."""


class TopicResult(msgspec.Struct, gc=False):
    """The results for one topic."""

    key: bytes
    partitions: list[PartitionResult]


def read_request(frame: memoryview, position: int, version: int) -> ProduceCall:
    """Decode a request that starts at `position`; raises DecodeError. The records are not copied."""
    try:
        if version >= FLEXIBLE_SINCE:
            return _read_flexible(frame, position, version)
        return _read_plain(frame, position, version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"Produce v{version}: {error}") from error


def _read_flexible(frame: memoryview, position: int, version: int) -> ProduceCall:
    """Versions 9 and up. What is usually one byte is read without a call: short lengths, and that there are no tags."""
    raw = None
    if frame[position]:
        raw, position = _compact_bytes(frame, position)
    else:
        position += 1
    acks, timeout_ms = _unpack_acks(frame, position)
    count, position = _compact_count(frame, position + 6, _TOPIC_BYTES_MIN)
    topics = []
    for _ in range(count):
        if version >= TOPIC_IDS_SINCE:
            key: memoryview | None = frame[position : position + _UUID_BYTES]
            position += _UUID_BYTES
        else:
            key, position = _compact_bytes(frame, position)
        partition_count, position = _compact_count(frame, position, _PARTITION_BYTES_MIN)
        partitions = []
        for _ in range(partition_count):
            (index,) = _unpack_int32(frame, position)
            records, position = _compact_bytes(frame, position + 4)
            position = skip_tagged_fields(frame, position, len(frame)) if frame[position] else position + 1
            partitions.append(PartitionRecords(index, records))
        position = skip_tagged_fields(frame, position, len(frame)) if frame[position] else position + 1
        topics.append(_topic(key, version, partitions))
    if frame[position]:
        skip_tagged_fields(frame, position, len(frame))
    return ProduceCall(None if raw is None else str(raw, "utf-8"), acks, timeout_ms, topics, len(frame))


def _compact_bytes(frame: memoryview, position: int) -> tuple[memoryview | None, int]:
    length = frame[position]
    if length < 128:
        position += 1
    else:
        length, position = read_uvarint(frame, position)
    if length == 0:
        return None, position
    stop = position + length - 1
    if stop > len(frame):
        raise DecodeError(f"{length - 1} bytes run past the end of the request")
    return frame[position:stop], stop


def _compact_count(frame: memoryview, position: int, element_bytes_min: int) -> tuple[int, int]:
    count, position = read_uvarint(frame, position)
    if count == 0 or (count - 1) * element_bytes_min > len(frame) - position:
        raise DecodeError(f"an array of {count - 1} elements in {len(frame) - position} bytes")
    return count - 1, position


def _read_plain(frame: memoryview, position: int, version: int) -> ProduceCall:
    """Versions below 9."""
    raw = None
    if version >= _TRANSACTIONAL_ID_SINCE:
        raw, position = _plain_bytes(frame, position, _unpack_int16, 2)
    acks, timeout_ms = _unpack_acks(frame, position)
    count, position = _plain_count(frame, position + 6, _TOPIC_BYTES_MIN)
    topics = []
    for _ in range(count):
        key, position = _plain_bytes(frame, position, _unpack_int16, 2)
        partition_count, position = _plain_count(frame, position, _PARTITION_BYTES_MIN)
        partitions = []
        for _ in range(partition_count):
            (index,) = _unpack_int32(frame, position)
            records, position = _plain_bytes(frame, position + 4, _unpack_int32, 4)
            partitions.append(PartitionRecords(index, records))
        topics.append(_topic(key, version, partitions))
    return ProduceCall(None if raw is None else str(raw, "utf-8"), acks, timeout_ms, topics, len(frame))


def _plain_bytes(frame: memoryview, position: int, unpack: Unpack, size: int) -> tuple[memoryview | None, int]:
    (length,) = unpack(frame, position)
    position += size
    if length == -1:
        return None, position
    stop = position + length
    if length < -1 or stop > len(frame):
        raise DecodeError(f"{length} bytes run past the end of the request")
    return frame[position:stop], stop


def _plain_count(frame: memoryview, position: int, element_bytes_min: int) -> tuple[int, int]:
    (count,) = _unpack_int32(frame, position)
    position += 4
    if count < 0 or count * element_bytes_min > len(frame) - position:
        raise DecodeError(f"an array of {count} elements in {len(frame) - position} bytes")
    return count, position


def _topic(key: memoryview | None, version: int, partitions: list[PartitionRecords]) -> TopicRecords:
    if key is None:
        raise DecodeError("a topic name must not be null")
    raw = bytes(key)
    return TopicRecords("" if version >= TOPIC_IDS_SINCE else str(raw, "utf-8"), raw, partitions)


def write_response(
    topics: list[TopicResult],
    version: int,
    correlation_id: int,
    *,
    endpoints: bytes = NO_ENDPOINTS,
    throttle_ms: int = 0,
) -> bytearray:
    """The complete response frame; `endpoints` is the tagged end."""
    flexible = version >= FLEXIBLE_SINCE
    out = start_response(correlation_id, flexible=flexible)
    out += uvarint(len(topics) + 1) if flexible else _pack_int32(len(topics))
    for topic in topics:
        if version < TOPIC_IDS_SINCE:
            out += uvarint(len(topic.key) + 1) if flexible else _pack_int16(len(topic.key))
        out += topic.key
        results = topic.partitions
        out += uvarint(len(results) + 1) if flexible else _pack_int32(len(results))
        for result in results:
            if flexible and result.message is None and result.leader is None:
                out += _pack_success(
                    result.index,
                    result.error,
                    result.base_offset,
                    result.append_time_ms,
                    result.start_offset,
                    _NO_RECORD_ERRORS_NO_MESSAGE_NO_TAGS,
                )
            else:
                _write_result(out, result, version, flexible=flexible)
        if flexible:
            out.append(0)
    if version >= 1:
        out += _pack_int32(throttle_ms)
    if flexible:
        out += endpoints
    return finish_response(out)


def _write_result(out: bytearray, result: PartitionResult, version: int, *, flexible: bool) -> None:
    if version >= 5:
        out += _pack_result_5(
            result.index, result.error, result.base_offset, result.append_time_ms, result.start_offset
        )
    elif version >= 2:
        out += _pack_result_2(result.index, result.error, result.base_offset, result.append_time_ms)
    else:
        out += _pack_oldest(result.index, result.error, result.base_offset)
    if version >= 8:
        errors = result.record_errors
        out += uvarint(len(errors) + 1) if flexible else _pack_int32(len(errors))
        for batch_index, message in errors:
            out += _pack_int32(batch_index)
            out += _text_and_tags(message, flexible=flexible)
        out += _text_and_tags(result.message, flexible=flexible)
        if result.leader is not None:
            out[-1:] = b"\x01\x00" + encode_leader(result.leader)


def _text_and_tags(text: str | None, *, flexible: bool) -> bytes:
    """A nullable string, and no tagged fields after it."""
    if text is None:
        return b"\x00\x00" if flexible else b"\xff\xff"
    raw = text.encode()
    if flexible:
        return uvarint(len(raw) + 1) + raw + b"\x00"
    return _pack_int16(len(raw)) + raw


def reject_all(call: ProduceCall, error: ErrorCode) -> list[TopicResult]:
    """The same error for every partition of a request."""
    return [
        TopicResult(topic.key, [PartitionResult(partition.index, error) for partition in topic.partitions])
        for topic in call.topics
    ]
