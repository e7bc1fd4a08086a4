"""Which software a broker runs, as far as the features that it supports tell.

Ours names itself and its version. Apache Kafka is known by its `metadata.version`, whose highest level differs from
release to release; servers that are derived from it have features of their own, and others have no features.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core_broker.service.version import VERSION_FEATURE, version_at

_METADATA_VERSION: Final = "metadata.version"
_FEATURES_OF_KAFKA: Final = {
    _METADATA_VERSION,
    "eligible.leader.replicas.version",
    "group.version",
    "kraft.version",
    "share.version",
    "streams.version",
    "transaction.version",
}
_RELEASES: Final = {
    7: "3.3",
    8: "3.4",
    11: "3.5",
    14: "3.6",
    19: "3.7",
    20: "3.8",
    21: "3.9",
    25: "4.0",
    27: "4.1",
    29: "4.2",
    30: "4.3",
}
"""The release of Apache Kafka by the highest `metadata.version` that it supports."""
_NEXT_RELEASE: Final = "4.4"


@dataclass(frozen=True, slots=True)
class Software:
    """What a broker runs."""

    name: str = "unknown"
    version: str | None = None


def software_of(features: Mapping[str, tuple[int, int]]) -> Software:
    """The software with these features: lowest and highest level by name."""
    if VERSION_FEATURE in features:
        return Software("Caudal", version_at(features[VERSION_FEATURE][1]))
    if _METADATA_VERSION not in features or not features.keys() <= _FEATURES_OF_KAFKA:
        return Software()
    level = features[_METADATA_VERSION][1]
    newer = f"{_NEXT_RELEASE} or later" if level > max(_RELEASES) else None
    return Software("Apache Kafka", _RELEASES.get(level, newer))
