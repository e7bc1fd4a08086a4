"""Feature levels (KIP-584): those this broker supports, and what each level means.

The finalised levels are part of the metadata. They say what every member of the cluster understands: which versions of
the metadata records may be written, and which requests a follower may send without asking. So nodes of several releases
can share a cluster, Apache Kafka's among them, as long as the levels are those of the oldest.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored
from core_broker.service.version import VERSION_FEATURE, version_level

METADATA_VERSION: Final = "metadata.version"
GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
ELR_FEATURE: Final = "eligible.leader.replicas.version"
KRAFT_VERSION: Final = "kraft.version"
"""Whether voters can change while the quorum runs (KIP-853): 1 if they are records of the metadata log, 0 if they are
those of `controller.quorum.voters`. No feature record says so; the quorum knows."""

SUPPORTED_FEATURES: Final[dict[str, tuple[int, int]]] = {
    ELR_FEATURE: (0, 1),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    TRANSACTION_VERSION: (0, 2),
}
"""Lowest and highest level of each feature. Those that are missing here, as share.version, must be 0."""

RELEASES: Final[dict[str, int]] = {"4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30}
"""The metadata.version of each release of Apache Kafka that a new cluster can start with."""

NEWEST: Final = SUPPORTED_FEATURES[METADATA_VERSION][1]

NEW_RECORDS_SINCE: Final = (7, 8, 11, 13, 14, 15, 17, 23, 30)
"""Levels of metadata.version that brought records or fields which lower levels cannot read."""
NEEDED_METADATA_VERSION: Final = {ELR_FEATURE: 23, GROUP_VERSION: 22, TRANSACTION_VERSION: 24}
"""The metadata.version from which a feature may be used."""
SCRAM_SINCE: Final = 11
"""The metadata.version from which users have SCRAM credentials (3.5-IV2)."""
DELEGATION_TOKENS_SINCE: Final = 14
"""The metadata.version from which there are delegation tokens (3.6-IV2)."""

_ELR_BY_DEFAULT_SINCE: Final = 26

_Steps = tuple[tuple[int, int], ...]

_FETCH: Final[_Steps] = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14), (0, 13))
_LIST_OFFSETS: Final[_Steps] = ((29, 11), (25, 10), (21, 9), (9, 8), (0, 7))
_PARTITION: Final[_Steps] = ((23, 2), (17, 1), (0, 0))
_RECORDS: Final[dict[type[Message], _Steps]] = {
    stored.RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (0, 1)),
    stored.BrokerRegistrationChangeRecord: ((30, 3), (17, 2), (0, 1)),
    stored.PartitionRecord: _PARTITION,
    stored.PartitionChangeRecord: _PARTITION,
}
"""The highest version of each record, from a metadata.version on; the others have had one version only."""


def initial_features(release: str) -> dict[str, int]:
    """The features of a new cluster: the defaults of a release, as far as we have them.

    metadata.version comes first, since readers learn from it what else to expect.
    """
    level = RELEASES[release]
    elr = {ELR_FEATURE: 1} if level >= _ELR_BY_DEFAULT_SINCE else {}
    return {METADATA_VERSION: level, **elr, GROUP_VERSION: 1, TRANSACTION_VERSION: 2}


def offered_features() -> dict[str, tuple[int, int]]:
    """What a broker offers: the features that it supports, and its version, which cannot be finalised."""
    return {**SUPPORTED_FEATURES, VERSION_FEATURE: (0, version_level())}


def metadata_version(features: Mapping[str, int]) -> int:
    """The finalised metadata.version; the newest as long as no record has set one."""
    return features.get(METADATA_VERSION, NEWEST)


def record_version(kind: type[Message], level: int) -> int:
    """The highest version of a metadata record that every member can read at a metadata.version."""
    return _at(level, _RECORDS.get(kind, ((0, 0),)))


def fetch_version(level: int) -> int:
    """The version of a follower's Fetch. Followers do not ask which versions a leader knows: the level implies it."""
    return _at(level, _FETCH)


def list_offsets_version(level: int) -> int:
    """The version of a follower's ListOffsets."""
    return _at(level, _LIST_OFFSETS)


def unsupported(features: Mapping[str, int]) -> Iterable[tuple[str, int, int]]:
    """The finalised features that this broker lacks: name, finalised level, and the highest level it supports."""
    for name, level in sorted(features.items()):
        low, high = SUPPORTED_FEATURES.get(name, (0, 0))
        if not low <= level <= high:
            yield name, level, high


def _at(level: int, steps: _Steps) -> int:
    return next(version for since, version in steps if level >= since)
