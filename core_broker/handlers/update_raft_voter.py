"""UpdateRaftVoter, key 82, version 0: a voter says where it listens now (KIP-853), and its range of `kraft.version`.

Supported: everything.
Ignored: the sender's leader epoch: the newest endpoints count.
"""

from core_broker.handlers.add_raft_voter import check_cluster_id
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from core_broker.raft.voters import Endpoint, ReplicaKey, Voter


async def handle(request: UpdateRaftVoterRequest, context: RequestContext) -> UpdateRaftVoterResponse:
    """Take over the endpoints of a voter."""
    check_cluster_id(request.cluster_id, context)
    quorum = context.services.metadata
    feature = request.kraft_version_feature
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        tuple((item.name, Endpoint(item.host, item.port)) for item in request.listeners),
        (feature.min_supported_version, feature.max_supported_version),
    )
    await quorum.change_voters(lambda node, now: node.update_voter(voter, now))
    host, port = quorum.controller_address or ("", 0)
    return UpdateRaftVoterResponse(current_leader=CurrentLeader(quorum.leader_id, quorum.leader_epoch, host, port))
