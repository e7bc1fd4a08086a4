"""The consumer protocol that members of a classic group exchange through the coordinator."""

from typing import Annotated

from core_broker.protocol.fields import Int32, Message, NullableSince, Since, message


class TopicPartition(Message):
    topic: Annotated[str, Since(1)] = ""
    partitions: Annotated[list[Int32], Since(1)] = []


@message(versions=(0, 3))
class ConsumerProtocolSubscription(Message):
    topics: list[str] = []
    user_data: Annotated[bytes | None, NullableSince()] = None
    owned_partitions: Annotated[list[TopicPartition], Since(1)] = []
    generation_id: Annotated[Int32, Since(2)] = -1
    rack_id: Annotated[str | None, Since(3), NullableSince()] = None


class ConsumerProtocolAssignmentTopicPartition(Message):
    topic: str = ""
    partitions: list[Int32] = []


@message(versions=(0, 3))
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = []
    user_data: Annotated[bytes | None, NullableSince()] = None
