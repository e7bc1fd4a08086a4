"""RemoveRaftVoter, key 81, version 0: a node no longer votes in the quorum (KIP-853).

Supported: one change of the voters at a time; the response follows the commit. A leader that removes itself steps down.
Ignored: nothing.
"""

from core_broker.handlers.add_raft_voter import check_cluster_id
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from core_broker.raft.voters import ReplicaKey


async def handle(request: RemoveRaftVoterRequest, context: RequestContext) -> RemoveRaftVoterResponse:
    """Remove a voter."""
    check_cluster_id(request.cluster_id, context)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    await context.services.metadata.change_voters(lambda node, now: node.remove_voter(key, now))
    return RemoveRaftVoterResponse(error_message=None)
