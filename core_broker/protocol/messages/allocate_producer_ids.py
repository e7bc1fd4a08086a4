"""AllocateProducerIds (key 67)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message


class AllocateProducerIdsRequest(Message):
    """Request of AllocateProducerIds (key 67)."""

    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Message):
    """Response of AllocateProducerIds (key 67)."""

    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
