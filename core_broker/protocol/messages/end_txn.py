"""EndTxn (key 26)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since


class EndTxnRequest(Message):
    """Request of EndTxn (key 26)."""

    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3

    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: bool = False


class EndTxnResponse(Message):
    """Response of EndTxn (key 26)."""

    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, Since(5)] = -1
    producer_epoch: Annotated[Int16, Since(5)] = -1
