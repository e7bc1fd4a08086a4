"""ElectLeaders, key 43, versions 0-2: elects the preferred replica, or any replica at all (KIP-183, KIP-460).

Supported: selected partitions, or (null) all; preferred elections, and unclean ones, which may lose records.
Ignored: the time-out.

Versions: 1 election type and top-level error; 2 flexible.
"""

from typing import Final

from core_broker.cluster.controller.transitions import Election
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import elect_leaders as wire

_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}


async def handle(request: wire.ElectLeadersRequest, context: RequestContext) -> wire.ElectLeadersResponse:
    """Elect leaders, and report for each partition why that is impossible or not needed."""
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        message = f"election type {request.election_type} is unknown; use 0 (preferred) or 1 (unclean)"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    wanted = request.topic_partitions
    partitions = None if wanted is None else [(item.topic, index) for item in wanted for index in item.partitions]
    results: dict[str, list[wire.PartitionResult]] = {}
    # As in Kafka, a request for all partitions lists only those with an election or an error.
    for (topic, index), error in (await context.services.controller.elect_leaders(election, partitions)).items():
        code, text = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
        results.setdefault(topic, []).append(wire.PartitionResult(index, code, text))
    return wire.ElectLeadersResponse(
        replica_election_results=[wire.ReplicaElectionResult(topic, items) for topic, items in results.items()]
    )
