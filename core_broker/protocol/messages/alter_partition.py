"""AlterPartition (key 56)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class BrokerState(Message):
    broker_id: Annotated[Int32, Since(3)] = 0
    broker_epoch: Annotated[Int64, Since(3)] = -1


class PartitionData(Message):
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Annotated[list[Int32], Since(0, 2)] = []
    new_isr_with_epochs: Annotated[list[BrokerState], Since(3)] = []
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


class TopicData(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


@message(56, versions=(2, 3), flexible_since=0)
class AlterPartitionRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[TopicData] = []


class AlterPartitionResponsePartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


class AlterPartitionResponseTopicData(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[AlterPartitionResponsePartitionData] = []


@message(56, versions=(2, 3), flexible_since=0)
class AlterPartitionResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[AlterPartitionResponseTopicData] = []
