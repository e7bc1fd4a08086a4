"""CreateTopics (key 19)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, Tag, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class CreatableReplicaAssignment(Message):
    partition_index: Int32 = 0
    broker_ids: list[Int32] = []


class CreatableTopicConfig(Message):
    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""


class CreatableTopic(Message):
    name: str = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@message(19, versions=(2, 7), flexible_since=5)
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Message):
    name: Annotated[str, Since(5)] = ""
    value: Annotated[str | None, Since(5), NullableSince()] = ""
    read_only: Annotated[bool, Since(5)] = False
    config_source: Annotated[Int8, Since(5)] = -1
    is_sensitive: Annotated[bool, Since(5)] = False


class CreatableTopicResult(Message):
    name: str = ""
    topic_id: Annotated[Uuid, Since(7)] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    topic_config_error_code: Annotated[Int16, Since(5), Tag(0)] = 0
    num_partitions: Annotated[Int32, Since(5)] = -1
    replication_factor: Annotated[Int16, Since(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, Since(5), NullableSince()] = []


@message(19, versions=(2, 7), flexible_since=5)
class CreateTopicsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = []
