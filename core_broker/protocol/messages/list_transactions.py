"""ListTransactions (key 66)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since


class ListTransactionsRequest(Message):
    """Request of ListTransactions (key 66)."""

    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    state_filters: list[str] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Annotated[Int64, Since(1)] = -1
    transactional_id_pattern: Annotated[str | None, Since(2), NullableSince()] = None


class TransactionState(Message):
    """Part of `ListTransactionsResponse`."""

    transactional_id: str = ""
    producer_id: Int64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Message):
    """Response of ListTransactions (key 66)."""

    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
