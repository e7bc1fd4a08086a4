"""The topics of the workloads and how many partitions each has."""

from collections.abc import Mapping
from typing import Final

INPUT: Final = "input"
"""Written by idempotent producers."""
TRANSACTIONS: Final = "transactions"
"""Written by transactions that commit or abort."""
OUTPUT: Final = "output"
"""A copy of the input, made exactly once."""

TOPICS: Final[Mapping[str, int]] = {INPUT: 6, TRANSACTIONS: 4, OUTPUT: 4}
