"""Who leads a partition, for clients that asked the wrong broker (KIP-951): saves them a Metadata request."""

import struct
from collections.abc import Iterable
from typing import Final

from core_broker.cluster.endpoints import host_for_client
from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.primitives import uvarint

LEADER_CHANGED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors that are answered with the current leader."""

LeaderAndEpoch = tuple[int, int]

NO_ENDPOINTS: Final = b"\x00"
"""The tagged fields of a response that names no leader."""

_INT32: Final = struct.Struct(">i").pack
_LEADER: Final = struct.Struct(">iib").pack


def find_leader(context: RequestContext, topic: str, index: int) -> LeaderAndEpoch | None:
    """The leader of a partition and its epoch; None if there is no leader, or no such partition."""
    found = context.services.metadata.image.topics.get(topic)
    partition = None if found is None else found.partitions.get(index)
    if partition is None or partition.leader_id not in context.services.metadata.image.brokers:
        return None
    return partition.leader_id, partition.leader_epoch


def encode_leader(leader: LeaderAndEpoch) -> bytes:
    """The size and content of the tagged field CurrentLeader."""
    return b"\x09" + _LEADER(*leader, 0)


def encode_endpoints(leaders: Iterable[int], context: RequestContext) -> bytes:
    """The tagged fields at the end of a response: NodeEndpoints with the addresses of leaders, if there are any."""
    brokers = context.services.metadata.image.brokers
    endpoints = []
    for broker_id in sorted(set(leaders)):
        broker = brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(context.listener_name)
        if broker is not None and endpoint is not None:
            host = host_for_client(
                endpoint, context.services.metadata.image, context.services.settings, context.session.local_host
            )
            endpoints.append(
                _INT32(broker_id) + _text(host) + _INT32(endpoint.port) + _text(broker.rack) + b"\x00",
            )
    if not endpoints:
        return NO_ENDPOINTS
    body = uvarint(len(endpoints) + 1) + b"".join(endpoints)
    return b"\x01\x00" + uvarint(len(body)) + body


def _text(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw
