"""AddOffsetsToTxn (key 25)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message, message


@message(25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: str = ""


@message(25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
