"""Keys and values of `__transaction_state`."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, NullableSince, Since, Tag, message


@message(0, versions=(0, 0))
class TransactionLogKey(Message):
    transactional_id: str = ""


class PartitionsSchema(Message):
    topic: str = ""
    partition_ids: list[Int32] = []


@message(0, versions=(0, 1), flexible_since=1)
class TransactionLogValue(Message):
    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, Since(1), Tag(0)] = -1
    next_producer_id: Annotated[Int64, Since(1), Tag(1)] = -1
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, Since(1), Tag(3)] = -1
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: Annotated[list[PartitionsSchema] | None, NullableSince()] = []
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, Since(1), Tag(2)] = 0
