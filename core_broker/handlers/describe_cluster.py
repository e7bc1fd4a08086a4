"""DescribeCluster, key 60, versions 0-2: the brokers and the controller, without any topics (KIP-700).

Supported: brokers with the address of the listener used by the client, fenced brokers (2, KIP-1073), operations.
Ignored: nothing. As in Kafka, controllers return the endpoints of controllers, and brokers those of brokers
(1, KIP-919).
"""

from collections.abc import Iterator
from typing import Final

from core_broker.cluster.endpoints import host_for_client
from core_broker.cluster.metadata import BrokerImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.authorized_operations import NOT_ASKED, cluster_operations
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from core_broker.raft.voters import Endpoint

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_NAMES: Final = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """List the brokers, or the controllers if the client is connected to one."""
    is_controller = context.listener_name in context.services.settings.controller_listener_names
    served = _CONTROLLERS if is_controller else _BROKERS
    if (error := _endpoint_type_error(request.endpoint_type, served)) is not None:
        return DescribeClusterResponse(error_code=error.code, error_message=error.message, endpoint_type=served)
    quorum = context.services.metadata
    return DescribeClusterResponse(
        cluster_id=quorum.cluster_id,
        controller_id=quorum.leader_id if is_controller else quorum.controller_id_for_clients,
        brokers=list(_controllers(context)) if is_controller else list(_brokers(request, context)),
        endpoint_type=served,
        cluster_authorized_operations=(
            cluster_operations(context) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _endpoint_type_error(wanted: int, served: int) -> BrokerError | None:
    if wanted == served:
        return None
    if wanted not in _NAMES:
        return BrokerError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"endpoint type {wanted} is unknown; use 1 (brokers) or 2 (controllers)",
        )
    return BrokerError(
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        f"The request was sent to an endpoint of type {_NAMES[served]}, but we wanted an endpoint of type "
        f"{_NAMES[wanted]}",
    )


def _controllers(context: RequestContext) -> Iterator[DescribeClusterBroker]:
    """The registered controllers, and voters that have not registered yet."""
    quorum = context.services.metadata
    nodes = {voter.key.id: voter.endpoint(context.listener_name) for voter in quorum.voters}
    for controller in quorum.image.controllers.values():
        registered = controller.endpoint(context.listener_name)
        nodes[controller.controller_id] = None if registered is None else Endpoint(registered.host, registered.port)
    for node_id, endpoint in sorted(nodes.items()):
        if endpoint is not None:
            yield DescribeClusterBroker(node_id, endpoint.host, endpoint.port, None)


def _brokers(request: DescribeClusterRequest, context: RequestContext) -> Iterator[DescribeClusterBroker]:
    brokers = context.services.metadata.image.brokers
    for _, broker in sorted(brokers.items()):
        described = _describe(broker, context)
        if described is not None and (request.include_fenced_brokers or not broker.is_fenced):
            yield described


def _describe(broker: BrokerImage, context: RequestContext) -> DescribeClusterBroker | None:
    endpoint = broker.endpoint(context.listener_name)
    if endpoint is None:
        return None
    host = host_for_client(
        endpoint, context.services.metadata.image, context.services.settings, context.session.local_host
    )
    return DescribeClusterBroker(broker.broker_id, host, endpoint.port, broker.rack, broker.is_fenced)
