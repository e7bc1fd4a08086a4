"""DescribeTransactions (key 65)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message


class DescribeTransactionsRequest(Message):
    """Request of DescribeTransactions (key 65)."""

    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    transactional_ids: list[str] = []


class TopicData(Message):
    """Part of `DescribeTransactionsResponse`."""

    topic: str = ""
    partitions: list[Int32] = []


class TransactionState(Message):
    """Part of `DescribeTransactionsResponse`."""

    error_code: Int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Message):
    """Response of DescribeTransactions (key 65)."""

    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
