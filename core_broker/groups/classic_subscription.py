"""What members of a classic consumer group tell each other, as far as the coordinator looks into it.

Clients put their subscriptions and assignments into the requests as bytes of their own; a version comes first, and
later versions only add fields at the end.
"""

import struct
from collections.abc import Iterable
from typing import Final

from core_broker.groups.assignors import Assignment
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_VERSION: Final = struct.Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that members subscribe to; None when one of them says it in a way that cannot be read.

    Clients may put anything there: what cannot be read only means that offsets are kept longer.
    """
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            topics.update(read_subscription(subscription).topics)
        except DecodeError:
            return None
    return frozenset(topics)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a member reads and owns; raises DecodeError."""
    version = _version_of(metadata, ConsumerProtocolSubscription.VERSIONS)
    return decode(ConsumerProtocolSubscription, version, metadata, _VERSION.size)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """What a leader has given to a member, nothing if it has not assigned yet; raises DecodeError."""
    if not assignment:
        return ConsumerProtocolAssignment()
    version = _version_of(assignment, ConsumerProtocolAssignment.VERSIONS)
    return decode(ConsumerProtocolAssignment, version, assignment, _VERSION.size)


def write_assignment(assignment: Assignment, topics: Topics, subscription: bytes) -> bytes:
    """An assignment for a member, in the version in which it subscribes; topics that are gone are left out."""
    first, last = ConsumerProtocolAssignment.VERSIONS
    version = (
        max(first, min(_VERSION.unpack_from(subscription)[0], last)) if len(subscription) >= _VERSION.size else first
    )
    names = {topic.topic_id: name for name, topic in topics.items() if topic.topic_id in assignment}
    content = ConsumerProtocolAssignment(
        [
            ConsumerProtocolAssignmentTopicPartition(names[topic_id], sorted(numbers))
            for topic_id, numbers in assignment.items()
            if topic_id in names
        ]
    )
    return _VERSION.pack(version) + encode(content, version)


def by_topic_id(partitions: Iterable[tuple[str, list[int]]], topics: Topics) -> Assignment:
    """Partitions by topic id; topics that are gone are left out."""
    return {topics[name].topic_id: frozenset(numbers) for name, numbers in partitions if numbers and name in topics}


def _version_of(data: bytes, versions: tuple[int, int]) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("no version in front")
    version: int = _VERSION.unpack_from(data)[0]
    if version < versions[0]:
        raise DecodeError(f"version {version}")
    return min(version, versions[1])
