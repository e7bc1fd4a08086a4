"""AddOffsetsToTxn (key 25)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message


class AddOffsetsToTxnRequest(Message):
    """Request of AddOffsetsToTxn (key 25)."""

    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 3

    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Message):
    """Response of AddOffsetsToTxn (key 25)."""

    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 3

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
