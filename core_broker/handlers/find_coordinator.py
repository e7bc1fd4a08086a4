"""FindCoordinator, key 10, versions 0-6.

Returns the broker that coordinates a group (type 0) or a transactional id (type 1): the leader of the partition of the
internal topic that the key maps to. The first request has that topic created by the controller. While the partition has
no leader that is alive, COORDINATOR_NOT_AVAILABLE is returned.
Refused: share groups (type 2), with INVALID_REQUEST.

Versions: 1 key type and error message; 3 flexible; 4 many keys (KIP-699); 5 TRANSACTION_ABORTABLE; 6 share groups
(KIP-932).
"""

import asyncio
from typing import Final

from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, partition_for
from core_broker.cluster.endpoints import host_for_client
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import may_use, may_use_cluster
from core_broker.handlers.access_table import DENIED
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from core_broker.security.operations import ResourceType

_BATCHED_SINCE: Final = 4
_KEYS_PER_TURN: Final = 1000
_TOPIC_OF_TYPE: Final = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
_KIND_OF_TYPE: Final = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
_SHARE_GROUPS: Final = 2


async def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """Find the coordinator of each key."""
    is_batched = context.api_version >= _BATCHED_SINCE
    keys = request.coordinator_keys if is_batched else [request.key]
    if request.key_type == _SHARE_GROUPS and not may_use_cluster(context):
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    kind = _KIND_OF_TYPE.get(request.key_type)
    may_describe = may_use(context, kind) if kind is not None else None
    found = []
    for position, key in enumerate(keys, 1):
        if kind is not None and may_describe is not None and not may_describe(key):
            found.append(_error(key, DENIED[kind]))
        else:
            found.append(await _find(key, request.key_type, context))
        if position % _KEYS_PER_TURN == 0:
            await asyncio.sleep(0)
    if is_batched:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _find(key: str, key_type: int, context: RequestContext) -> Coordinator:
    topic_name = _TOPIC_OF_TYPE.get(key_type)
    if topic_name is None or (topic_name == TRANSACTIONS_TOPIC and not key):
        return _error(key, ErrorCode.INVALID_REQUEST)
    services = context.services
    if topic_name not in services.metadata.image.topics:
        try:
            await services.topic_creation.ensure_internal_topic(topic_name)
        except BrokerError:
            return _error(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    image = context.services.metadata.image
    topic = image.topics.get(topic_name)
    if topic is None or not topic.partitions:
        return _error(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader_id = topic.partitions[partition_for(key, len(topic.partitions))].leader_id
    broker = image.brokers.get(leader_id)
    # A fenced broker is about to be replaced as the leader.
    endpoint = broker.endpoint(context.listener_name) if broker is not None and not broker.is_fenced else None
    if broker is None or endpoint is None:
        return _error(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    host = host_for_client(
        endpoint, context.services.metadata.image, context.services.settings, context.session.local_host
    )
    return Coordinator(key, leader_id, host, endpoint.port, ErrorCode.NONE, None)


def _error(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(key, -1, "", -1, error, BrokerError(error).message)
