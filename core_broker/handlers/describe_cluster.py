"""DescribeCluster, key 60, versions 0-2: the brokers and the controller, without any topics (KIP-700).

Supported: brokers with the address of the listener used by the client, fenced brokers (2, KIP-1073), operations.
Ignored: nothing. As in Kafka, only controllers return the endpoints of controllers (1, KIP-919).
"""

from typing import Final

from core_broker.cluster.endpoints import host_for_client
from core_broker.cluster.metadata import BrokerImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKER_ENDPOINTS: Final = 1


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """List the brokers."""
    if (error := _endpoint_type_error(request.endpoint_type)) is not None:
        return DescribeClusterResponse(
            error_code=error.code, error_message=error.message, endpoint_type=_BROKER_ENDPOINTS
        )
    quorum = context.services.metadata
    brokers = sorted(quorum.image.brokers.values(), key=lambda broker: broker.broker_id)
    described = (
        _describe(broker, context) for broker in brokers if request.include_fenced_brokers or not broker.is_fenced
    )
    return DescribeClusterResponse(
        cluster_id=quorum.cluster_id,
        controller_id=quorum.leader_id,
        brokers=[broker for broker in described if broker is not None],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _endpoint_type_error(endpoint_type: int) -> BrokerError | None:
    match endpoint_type:
        case 1:
            return None
        case 2:
            return BrokerError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
            )
        case _:
            return BrokerError(
                ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                f"endpoint type {endpoint_type} is unknown; use 1 (brokers) or 2 (controllers)",
            )


def _describe(broker: BrokerImage, context: RequestContext) -> DescribeClusterBroker | None:
    endpoint = broker.endpoint(context.listener_name)
    if endpoint is None:
        return None
    host = host_for_client(endpoint, context.local_host)
    return DescribeClusterBroker(broker.broker_id, host, endpoint.port, broker.rack, broker.is_fenced)
