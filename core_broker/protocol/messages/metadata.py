"""Metadata (key 3)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class MetadataRequestTopic(Message):
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    name: Annotated[str | None, NullableSince(10)] = ""


@message(3, versions=(0, 13), flexible_since=9)
class MetadataRequest(Message):
    topics: Annotated[list[MetadataRequestTopic] | None, NullableSince(1)] = []
    allow_auto_topic_creation: Annotated[bool, Since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, Since(8, 10)] = False
    include_topic_authorized_operations: Annotated[bool, Since(8)] = False


class MetadataResponseBroker(Message):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: Annotated[str | None, Since(1), NullableSince()] = None


class MetadataResponsePartition(Message):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, Since(7)] = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: Annotated[list[Int32], Since(5)] = []


class MetadataResponseTopic(Message):
    error_code: Int16 = 0
    name: Annotated[str | None, NullableSince(12)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    is_internal: Annotated[bool, Since(1)] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[Int32, Since(8)] = -2147483648


@message(3, versions=(0, 13), flexible_since=9)
class MetadataResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, Since(2), NullableSince()] = None
    controller_id: Annotated[Int32, Since(1)] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[Int32, Since(8, 10)] = -2147483648
    error_code: Annotated[Int16, Since(13)] = 0
