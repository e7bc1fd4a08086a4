"""The topics of the workloads and how many partitions each has."""

from collections.abc import Mapping
from itertools import cycle, islice
from typing import Final

INPUT: Final = "input"
"""Written by idempotent producers."""
TRANSACTIONS: Final = "transactions"
"""Written by transactions that commit or abort."""
OUTPUT: Final = "output"
"""A copy of the input, made exactly once."""

TOPICS: Final[Mapping[str, int]] = {INPUT: 6, TRANSACTIONS: 4, OUTPUT: 4}

INTERNAL: Final = ("__consumer_offsets", "__transaction_state")

_MIXED_REPLICAS: Final = ((1, 4, 2), (4, 2, 3), (2, 5, 3), (5, 1, 4), (3, 5, 1), (4, 1, 5))
"""In a mixed cluster nodes 4 and 5 are of the other kind: whichever leads, the next in line is of the other."""


def mixed_replicas(partitions: int, *, first: int = 0) -> list[list[int]]:
    """Where the partitions of a topic are in a mixed cluster; topics with another `first` begin elsewhere."""
    return [list(nodes) for nodes in islice(cycle(_MIXED_REPLICAS), first, first + partitions)]
