"""AddRaftVoter, key 80, versions 0-1: an observer that has caught up becomes a voter of the quorum (KIP-853).

Supported: one change of the voters at a time; the response follows the commit.
Ignored: `timeout_ms`: a change takes as long as the quorum needs, at most 30 seconds. `ack_when_committed` (1): always.
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
    await context.services.metadata.change_voters(lambda node, now: node.add_voter(voter, now))
    return AddRaftVoterResponse(error_message=None)


def check_cluster_id(cluster_id: str | None, context: RequestContext) -> None:
    """Raise INCONSISTENT_CLUSTER_ID for a request to another cluster; null is accepted."""
    own = context.services.metadata.cluster_id
    if cluster_id is not None and cluster_id != own:
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {own}, not {cluster_id}")
