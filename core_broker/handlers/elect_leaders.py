"""ElectLeaders, key 43, versions 0-2: moves leadership to the preferred replica (KIP-183, KIP-460).

Supported: selected partitions, or (null) all. With one replica the leader is always the preferred one, hence
ELECTION_NOT_NEEDED.
Ignored: the time-out.

Versions: 1 election type and top-level error; 2 flexible.
"""

from collections.abc import Sequence
from typing import Final

from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import elect_leaders as wire

_ELECTION_TYPES: Final = (0, 1)


def handle(request: wire.ElectLeadersRequest, context: RequestContext) -> wire.ElectLeadersResponse:
    """Report for each partition why no election is needed."""
    if request.election_type not in _ELECTION_TYPES:
        message = f"election type {request.election_type} is unknown; use 0 (preferred) or 1 (unclean)"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    image = context.services.metadata.image
    # As in Kafka, a request for all partitions lists only those with an election or an error.
    topics = request.topic_partitions or []
    return wire.ElectLeadersResponse(
        replica_election_results=[
            wire.ReplicaElectionResult(item.topic, _results(item.topic, item.partitions, image)) for item in topics
        ]
    )


def _results(topic: str, indexes: Sequence[int], image: MetadataImage) -> list[wire.PartitionResult]:
    known = image.topics[topic].partitions if topic in image.topics else {}
    return [
        wire.PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
        if index in known
        else wire.PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
        for index in indexes
    ]
