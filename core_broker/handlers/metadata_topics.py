"""Cached encodings of topics in Metadata responses: most clients request the same topics again and again.

The cache has the encoded part of each topic; a response is a head, such parts, and a tail. A part is valid as long as
the topic's image and the set of brokers are the same objects.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final

from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.metadata import BrokerImage, MetadataImage, TopicImage
from core_broker.errors import ErrorCode
from core_broker.handlers.authorized_operations import TOPIC_OPERATIONS
from core_broker.protocol.fields import encode
from core_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from core_broker.protocol.primitives import uvarint

_NO_LEADER: Final = -1
_STALE_PARTS_MAX: Final = 1000


class EncodedTopics:
    """The encoded topics for the responses of one broker."""

    def __init__(self) -> None:
        self._brokers: dict[int, BrokerImage] | None = None
        self._parts: dict[tuple[int, int], dict[bytes, tuple[TopicImage, bytes]]] = {}

    def parts(
        self,
        topics: Iterable[TopicImage],
        image: MetadataImage,
        *,
        version: int,
        operations: int | Callable[[str], int],
    ) -> list[bytes]:
        """The encoded form of each topic, with the operations that the client may do on all of them or on each."""
        if self._brokers is not image.brokers:
            self._brokers = image.brokers
            self._parts.clear()
        own = None if isinstance(operations, int) else operations
        allowed = operations if isinstance(operations, int) else TOPIC_OPERATIONS
        cache = self._parts.setdefault((version, allowed), {})
        if len(cache) > len(image.topics) + _STALE_PARTS_MAX:
            cache.clear()
        found = []
        for topic in topics:
            if own is not None and (some := own(topic.name)) != allowed:
                # As many combinations as there are clients: not worth a place in the cache.
                found.append(encode_topic(describe_topic(topic, image, operations=some), version))
                continue
            cached = cache.get(topic.topic_id)
            if cached is None or cached[0] is not topic:
                cached = (topic, encode_topic(describe_topic(topic, image, operations=allowed), version))
                cache[topic.topic_id] = cached
            found.append(cached[1])
        return found


def describe_topic(topic: TopicImage, image: MetadataImage, *, operations: int) -> MetadataResponseTopic:
    """A topic with all its partitions."""
    live = {broker.broker_id for broker in image.live_brokers()}
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader_id in live else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader_id if partition.leader_id in live else _NO_LEADER,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=[replica for replica in partition.replicas if replica not in live],
            )
            for index, partition in sorted(topic.partitions.items())
        ],
        topic_authorized_operations=operations,
    )


def encode_topic(topic: MetadataResponseTopic, version: int) -> bytes:
    """The bytes of a topic within a response: encode a response with it, and cut off what surrounds it."""
    before, after = _around_topics(version)
    response = encode(MetadataResponse(topics=[topic]), version)
    return bytes(response[before : len(response) - after])


def write_response(out: bytearray, response: MetadataResponse, parts: Sequence[bytes], version: int) -> None:
    """Append a response to `out`: everything of `response`, which has no topics itself, and these encoded topics."""
    frame = encode(response, version)
    after = _around_topics(version)[1]
    end_of_head = len(frame) - after
    if version >= MetadataResponse.FLEXIBLE_SINCE:
        out += frame[: end_of_head - 1]
        out += uvarint(len(parts) + 1)
    else:
        out += frame[: end_of_head - 4]
        out += struct.pack(">i", len(parts))
    for part in parts:
        out += part
    out += frame[end_of_head:]


@cache
def _around_topics(version: int) -> tuple[int, int]:
    """Bytes before and after the topics in a response without brokers.

    After them come the operations allowed on the cluster (versions 8 to 10), the error (13), and the tagged fields.
    """
    after = 4 * (8 <= version <= 10) + 2 * (version >= 13) + (version >= MetadataResponse.FLEXIBLE_SINCE)
    return len(encode(MetadataResponse(), version)) - after, after
