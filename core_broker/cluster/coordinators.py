"""Maps groups and transactional ids to the partition of the internal topic that coordinates them."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


def partition_for(key: str, partition_count: int) -> int:
    """The partition of `key`, by Java's `String.hashCode`, so that Kafka's own tools agree on it."""
    code = 0
    for unit in memoryview(key.encode("utf-16-le")).cast("H"):
        code = (code * 31 + unit) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % partition_count
