"""Records of MirrorMaker's internal topics: Kafka's structs, numbers big-endian, text after its length (16 bits).

| record | key | value |
|---|---|---|
| offset sync | topic, partition (32 bits) | upstream offset, downstream offset (64 bits each) |
| checkpoint | group, topic, partition (32 bits) | version 0 (16 bits), upstream and downstream offset, metadata |
| heartbeat | source alias, target alias | version 0 (16 bits), milliseconds since 1970 (64 bits) |
"""

import struct
from typing import Final, NamedTuple

from core_broker.client.consumer import TopicPartition

_LENGTH: Final = struct.Struct(">h")
_PARTITION: Final = struct.Struct(">i")
_SYNC: Final = struct.Struct(">qq")
_CHECKPOINT: Final = struct.Struct(">hqq")
_HEARTBEAT: Final = struct.Struct(">hq")
_VERSION: Final = 0


class OffsetSync(NamedTuple):
    """The offsets of a record in the source and of its copy in the target."""

    partition: TopicPartition
    upstream: int
    downstream: int


class Checkpoint(NamedTuple):
    """An offset that a group has committed in the source, and the same in the target."""

    group: str
    partition: TopicPartition
    """In the target."""
    upstream: int
    downstream: int
    metadata: str = ""


class Heartbeat(NamedTuple):
    """A sign of life on the way from one cluster to another."""

    source: str
    target: str
    timestamp_ms: int


def write_sync(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Key and value of an offset sync."""
    topic, partition = sync.partition
    return _text(topic) + _PARTITION.pack(partition), _SYNC.pack(sync.upstream, sync.downstream)


def read_sync(key: bytes | None, value: bytes | None) -> OffsetSync | None:
    """An offset sync; None when the record is not one."""
    try:
        (topic,), partition = _read_key(key or b"", 1)
        return OffsetSync((topic, partition), *_SYNC.unpack_from(value or b""))
    except (struct.error, UnicodeDecodeError):
        return None


def write_checkpoint(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Key and value of a checkpoint."""
    topic, partition = checkpoint.partition
    key = _text(checkpoint.group) + _text(topic) + _PARTITION.pack(partition)
    return key, _CHECKPOINT.pack(_VERSION, checkpoint.upstream, checkpoint.downstream) + _text(checkpoint.metadata)


def read_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint | None:
    """A checkpoint; None when the record is not one, or has an unknown version."""
    try:
        (group, topic), partition = _read_key(key or b"", 2)
        version, upstream, downstream = _CHECKPOINT.unpack_from(value or b"")
        metadata, _ = _read_text(value or b"", _CHECKPOINT.size)
    except (struct.error, UnicodeDecodeError):
        return None
    return Checkpoint(group, (topic, partition), upstream, downstream, metadata) if version == _VERSION else None


def write_heartbeat(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    """Key and value of a heartbeat."""
    key = _text(heartbeat.source) + _text(heartbeat.target)
    return key, _HEARTBEAT.pack(_VERSION, heartbeat.timestamp_ms)


def _text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    start = at + _LENGTH.size
    if length < 0 or start + length > len(data):
        raise struct.error("the text is longer than the record")
    return data[start : start + length].decode(), start + length


def _read_key(data: bytes, count: int) -> tuple[list[str], int]:
    """`count` texts, and the partition that follows them."""
    texts, at = [], 0
    for _ in range(count):
        text, at = _read_text(data, at)
        texts.append(text)
    (partition,) = _PARTITION.unpack_from(data, at)
    return texts, partition
