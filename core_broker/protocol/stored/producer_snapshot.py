"""The producer state file of a partition."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message, UInt32


class ProducerEntry(Message):
    """Part of `ProducerSnapshot`."""

    producer_id: Int64 = 0
    epoch: Int16 = 0
    last_sequence: Int32 = 0
    last_offset: Int64 = 0
    offset_delta: Int32 = 0
    timestamp: Int64 = 0
    coordinator_epoch: Int32 = 0
    current_txn_first_offset: Int64 = 0


class ProducerSnapshot(Message):
    """`ProducerSnapshot`, as Kafka stores it."""

    VERSIONS = (1, 1)

    crc: UInt32 = 0
    producer_entries: list[ProducerEntry] = []
