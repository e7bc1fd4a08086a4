"""Produce (key 0)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Records, Since, Tag, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class PartitionProduceData(Message):
    index: Int32 = 0
    records: Annotated[Records | None, NullableSince()] = None


class TopicProduceData(Message):
    name: Annotated[str, Since(0, 12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


@message(0, versions=(3, 13), flexible_since=9)
class ProduceRequest(Message):
    transactional_id: Annotated[str | None, Since(3), NullableSince()] = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Message):
    batch_index: Annotated[Int32, Since(8)] = 0
    batch_index_error_message: Annotated[str | None, Since(8), NullableSince()] = None


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[Int32, Since(10)] = -1
    leader_epoch: Annotated[Int32, Since(10)] = -1


class PartitionProduceResponse(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Annotated[Int64, Since(2)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], Since(8)] = []
    error_message: Annotated[str | None, Since(8), NullableSince()] = None
    current_leader: Annotated[LeaderIdAndEpoch, Since(10), Tag(0)] = msgspec.field(default_factory=LeaderIdAndEpoch)


class TopicProduceResponse(Message):
    name: Annotated[str, Since(0, 12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Message):
    node_id: Annotated[Int32, Since(10)] = 0
    host: Annotated[str, Since(10)] = ""
    port: Annotated[Int32, Since(10)] = 0
    rack: Annotated[str | None, Since(10), NullableSince()] = None


@message(0, versions=(3, 13), flexible_since=9)
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    node_endpoints: Annotated[list[NodeEndpoint], Since(10), Tag(0)] = []
