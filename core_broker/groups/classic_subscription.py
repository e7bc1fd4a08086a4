"""The consumer protocol embedded in classic groups, as far as the coordinator reads it.

Clients encode their subscriptions and assignments as opaque bytes; a version comes first, and later versions only add
fields at the end.
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
    """All topics that members subscribe to; None if a subscription cannot be decoded.

    Clients may send anything: a subscription that cannot be decoded only means that offsets are kept longer.
    """
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            topics.update(read_subscription(subscription).topics)
        except DecodeError:
            return None
    return frozenset(topics)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription and owned partitions; raises DecodeError."""
    version = _version_of(metadata, ConsumerProtocolSubscription.VERSIONS)
    return decode(ConsumerProtocolSubscription, version, metadata, _VERSION.size)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """The leader's assignment for a member, empty if there is none yet; raises DecodeError."""
    if not assignment:
        return ConsumerProtocolAssignment()
    version = _version_of(assignment, ConsumerProtocolAssignment.VERSIONS)
    return decode(ConsumerProtocolAssignment, version, assignment, _VERSION.size)


def write_assignment(assignment: Assignment, topics: Topics, subscription: bytes) -> bytes:
    """An assignment for a member, in the version of its subscription; deleted topics are left out."""
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
    """Partitions by topic id; deleted topics are left out."""
    return {topics[name].topic_id: frozenset(numbers) for name, numbers in partitions if numbers and name in topics}


def _version_of(data: bytes, versions: tuple[int, int]) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("the version is missing")
    version: int = _VERSION.unpack_from(data)[0]
    if version < versions[0]:
        raise DecodeError(f"version {version} is not supported")
    return min(version, versions[1])
