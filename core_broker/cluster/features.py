"""Feature levels (KIP-584): those this broker supports, and those a new cluster starts with."""

from typing import Final

SUPPORTED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
    "transaction.version": (0, 2),
}
"""Lowest and highest level of each feature."""

INITIAL_FEATURES: Final[dict[str, int]] = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "transaction.version": 2,
}
"""The features of a new cluster: 4.3, KIP-966 elections, KIP-848 groups, KIP-890 transactions. The quorum's voters
are fixed, so kraft.version stays 0, which means not finalised."""
