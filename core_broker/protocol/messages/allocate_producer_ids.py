"""AllocateProducerIds (key 67)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message, message


@message(67, versions=(0, 0), flexible_since=0)
class AllocateProducerIdsRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@message(67, versions=(0, 0), flexible_since=0)
class AllocateProducerIdsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
