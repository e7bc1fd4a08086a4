"""DescribeTransactions (key 65)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message, message


@message(65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = []


class TopicData(Message):
    topic: str = ""
    partitions: list[Int32] = []


class TransactionState(Message):
    error_code: Int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = []


@message(65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
