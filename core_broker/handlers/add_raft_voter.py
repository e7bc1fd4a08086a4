"""AddRaftVoter, key 80, versions 0-1: an observer that has caught up becomes a voter of the quorum (KIP-853).

Supported: one change of the voters at a time; the response follows the commit.
Ignored: `timeout_ms`: a change takes as long as the quorum needs, at most 30 seconds.

Versions: 1 ack_when_committed: a controller of Apache Kafka that joins by itself does not fetch before the response, so
it does not wait for the commit, which may need its fetch (KIP-1186).
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from core_broker.raft.voters import Endpoint, ReplicaKey, Voter


async def handle(request: AddRaftVoterRequest, context: RequestContext) -> AddRaftVoterResponse:
    """Add a voter."""
    check_cluster_id(request.cluster_id, context)
    endpoints = tuple((item.name, Endpoint(item.host, item.port)) for item in request.listeners)
    voter = Voter(ReplicaKey(request.voter_id, request.voter_directory_id), endpoints)
    quorum = context.services.metadata
    await quorum.change_voters(lambda node, now: node.add_voter(voter, now), wait=request.ack_when_committed)
    return AddRaftVoterResponse(error_message=None)


def check_cluster_id(cluster_id: str | None, context: RequestContext) -> None:
    """Raise INCONSISTENT_CLUSTER_ID for a request to another cluster; null is accepted."""
    own = context.services.metadata.cluster_id
    if cluster_id is not None and cluster_id != own:
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {own}, not {cluster_id}")
