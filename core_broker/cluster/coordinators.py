"""Maps groups and transactional ids to the partition of the internal topic that coordinates them."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
_NUMBERS: Final = 1 << 32
_LOWEST: Final = 1 << 31
"""The lowest number of 32 bits, as an unsigned one."""


def partition_for(key: str, partition_count: int) -> int:
    """The partition of `key`, by Java's `String.hashCode`: Kafka's brokers and tools have to find the same one."""
    code = 0
    for unit in memoryview(key.encode("utf-16-le")).cast("H"):
        code = (code * 31 + unit) & 0xFFFFFFFF
    if code == _LOWEST:  # has no positive counterpart in 32 bits; Kafka takes 0
        return 0
    return min(code, _NUMBERS - code) % partition_count  # the absolute value of the signed number
