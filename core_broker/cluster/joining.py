"""How a new node learns which cluster it belongs to: it asks the controllers that its settings name."""

import asyncio
import logging
import random
from typing import Final

from core_broker.errors import ErrorCode
from core_broker.peers.peers import Address, PeerError, Peers
from core_broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_CONTROLLERS: Final = 2
_TIMEOUT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.25
_LOG_SECONDS: Final = 10.0


async def find_cluster_id(peers: Peers, settings: BrokerSettings) -> str:
    """The id of the cluster of `controller.quorum.bootstrap.servers`; waits until one of them answers."""
    loop = asyncio.get_running_loop()
    servers = [Address(*server) for server in settings.quorum_servers]
    next_log = loop.time() + _LOG_SECONDS
    while True:
        server = random.choice(servers)
        try:
            request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
            response = await peers.call(server, request, timeout_seconds=_TIMEOUT_SECONDS, purpose="joining")
            assert isinstance(response, DescribeClusterResponse)
            if response.cluster_id:
                log.info("joining cluster", extra={"cluster_id": response.cluster_id, "controller": str(server)})
                return response.cluster_id
            reason = f"{server} belongs to no cluster yet"
            if response.error_code:  # controllers of Apache Kafka do, below metadata.version 15
                said = response.error_message or ErrorCode(response.error_code).name
                reason = f"{server} does not say which cluster it belongs to ({said}); set cluster.id"
                if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                    reason += ", or add the principal of this node to super.users there"
            elif settings.static_voters:
                reason += "; nodes of a new cluster with controller.quorum.voters need the same cluster.id"
        except PeerError as error:
            reason = str(error)
        if loop.time() >= next_log:
            next_log = loop.time() + _LOG_SECONDS
            log.warning("waiting for a controller of the cluster to join", extra={"reason": reason})
        await asyncio.sleep(_RETRY_SECONDS)
