"""Feature levels (KIP-584): those this broker supports, and those a new cluster starts with."""

from typing import Final

KRAFT_VERSION: Final = "kraft.version"
"""Whether voters can change while the quorum runs (KIP-853): 1 if they are records of the metadata log, 0 if they are
those of `controller.quorum.voters`. No feature record says so; the quorum knows."""

SUPPORTED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    KRAFT_VERSION: (0, 1),
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
"""The features of a new cluster: 4.3, KIP-966 elections, KIP-848 groups, KIP-890 transactions."""
