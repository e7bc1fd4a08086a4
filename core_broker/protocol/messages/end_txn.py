"""EndTxn (key 26)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since, message


@message(26, versions=(0, 5), flexible_since=3)
class EndTxnRequest(Message):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: bool = False


@message(26, versions=(0, 5), flexible_since=3)
class EndTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, Since(5)] = -1
    producer_epoch: Annotated[Int16, Since(5)] = -1
