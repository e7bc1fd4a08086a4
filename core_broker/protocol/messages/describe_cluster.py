"""DescribeCluster (key 60)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since


class DescribeClusterRequest(Message):
    """Request of DescribeCluster (key 60)."""

    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[Int8, Since(1)] = 1
    include_fenced_brokers: Annotated[bool, Since(2)] = False


class DescribeClusterBroker(Message):
    """Part of `DescribeClusterResponse`."""

    broker_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: Annotated[str | None, NullableSince()] = None
    is_fenced: Annotated[bool, Since(2)] = False


class DescribeClusterResponse(Message):
    """Response of DescribeCluster (key 60)."""

    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None
    endpoint_type: Annotated[Int8, Since(1)] = 1
    cluster_id: str = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = -2147483648
