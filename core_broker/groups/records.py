"""Keys and values of the records in `__consumer_offsets`, byte for byte as Kafka stores them.

A key begins with an int16 for the kind of record (0 and 1 offset, 2 classic group, 3 to 16 KIP-848), a value with an
int16 for its version. Tools that read the topic, and a Kafka broker that takes over the data, depend on both.
"""

import struct
from typing import Final

from core_broker.groups.group import StoredRecord
from core_broker.groups.offsets import NO_EXPIRY, CommittedOffset
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.primitives import ZERO_UUID, DecodeError
from core_broker.protocol.stored import groups as stored

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_OFFSET_KEY_HEAD: Final = struct.Struct(">hh")
_OFFSET_VALUE_HEAD: Final = struct.Struct(">hqih")
_GROUP_VALUE_VERSION: Final = 3
_KINDS: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    0: (stored.LegacyOffsetCommitKey, stored.OffsetCommitValue),
    1: (stored.OffsetCommitKey, stored.OffsetCommitValue),
    2: (stored.GroupMetadataKey, stored.GroupMetadataValue),
    3: (stored.ConsumerGroupMetadataKey, stored.ConsumerGroupMetadataValue),
    4: (stored.ConsumerGroupPartitionMetadataKey, stored.ConsumerGroupPartitionMetadataValue),
    5: (stored.ConsumerGroupMemberMetadataKey, stored.ConsumerGroupMemberMetadataValue),
    6: (stored.ConsumerGroupTargetAssignmentMetadataKey, stored.ConsumerGroupTargetAssignmentMetadataValue),
    7: (stored.ConsumerGroupTargetAssignmentMemberKey, stored.ConsumerGroupTargetAssignmentMemberValue),
    8: (stored.ConsumerGroupCurrentMemberAssignmentKey, stored.ConsumerGroupCurrentMemberAssignmentValue),
    16: (stored.ConsumerGroupRegularExpressionKey, stored.ConsumerGroupRegularExpressionValue),
}


def encode_key(key: Message) -> bytes:
    """A key with its kind as a prefix."""
    if key.API_KEY is None:
        raise ValueError(f"{type(key).__name__} is not a key of __consumer_offsets")
    return _INT16.pack(key.API_KEY) + encode(key, 0)


def encode_value(value: Message, version: int) -> bytes:
    """A value with its version as a prefix."""
    return _INT16.pack(version) + encode(value, version)


def decode_record(key: bytes, value: bytes | None) -> tuple[Message, Message | None] | None:
    """Key and value (None: deleted); None for an unknown kind, which later versions may write.

    Raises DecodeError if the bytes do not match their kind or version.
    """
    if len(key) < _INT16.size:
        raise DecodeError(f"a key of {len(key)} bytes has no kind")
    kinds = _KINDS.get(_INT16.unpack_from(key)[0])
    if kinds is None:
        return None
    key_type, value_type = kinds
    return decode(key_type, 0, key, _INT16.size), None if value is None else _decode_value(value_type, value)


def _decode_value(value_type: type[Message], value: bytes) -> Message:
    if len(value) < _INT16.size:
        raise DecodeError(f"a value of {len(value)} bytes has no version")
    version = _INT16.unpack_from(value)[0]
    first, last = value_type.VERSIONS
    if not first <= version <= last:
        raise DecodeError(f"{value_type.__name__} v{version}: only versions {first} to {last} are supported")
    return decode(value_type, version, value, _INT16.size)


# --- offsets ----------------------------------------------------------------------------------------------------------


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Key of a committed offset; encoded by hand, since every commit needs one for each partition."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_OFFSET_KEY_HEAD.pack(1, len(group)), group, _INT16.pack(len(name)), name, _INT32.pack(partition)))


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> StoredRecord:
    """Key and value of a commit. Version 1 is the only one with an expiry, 4 the only one with a topic id."""
    key = offset_key(group_id, topic, partition)
    if committed.expires_at_ms == NO_EXPIRY and committed.topic_id == ZERO_UUID:
        metadata = committed.metadata.encode()
        head = _OFFSET_VALUE_HEAD.pack(3, committed.offset, committed.leader_epoch, len(metadata))
        return key, b"".join((head, metadata, _INT64.pack(committed.committed_at_ms)))
    value = stored.OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.committed_at_ms,
        expire_timestamp=committed.expires_at_ms,
        topic_id=committed.topic_id,
    )
    return key, encode_value(value, 1 if committed.expires_at_ms != NO_EXPIRY else 4)


def committed_offset(value: stored.OffsetCommitValue, log_offset: int) -> CommittedOffset:
    """A stored value as a committed offset."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        committed_at_ms=value.commit_timestamp,
        expires_at_ms=value.expire_timestamp,
        topic_id=value.topic_id,
        log_offset=log_offset,
    )


# --- classic groups ---------------------------------------------------------------------------------------------------


def group_key(group_id: str) -> bytes:
    """Key of a classic group."""
    return encode_key(stored.GroupMetadataKey(group_id))


def group_record(group_id: str, value: stored.GroupMetadataValue) -> StoredRecord:
    """Key and value of a classic group."""
    return group_key(group_id), encode_value(value, _GROUP_VALUE_VERSION)
