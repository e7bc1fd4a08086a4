"""TxnOffsetCommit (key 28)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since


class TxnOffsetCommitRequestPartition(Message):
    """Part of `TxnOffsetCommitRequest`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, Since(2)] = -1
    committed_metadata: Annotated[str | None, NullableSince()] = ""


class TxnOffsetCommitRequestTopic(Message):
    """Part of `TxnOffsetCommitRequest`."""

    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    """Request of TxnOffsetCommit (key 28)."""

    API_KEY = 28
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3

    transactional_id: str = ""
    group_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, Since(3)] = -1
    member_id: Annotated[str, Since(3)] = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    """Part of `TxnOffsetCommitResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Message):
    """Part of `TxnOffsetCommitResponse`."""

    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    """Response of TxnOffsetCommit (key 28)."""

    API_KEY = 28
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
