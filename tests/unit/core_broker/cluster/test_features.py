import pytest

from core_broker.cluster.features import (
    RELEASES,
    SUPPORTED_FEATURES,
    fetch_version,
    initial_features,
    list_offsets_version,
    record_version,
    unsupported,
)
from core_broker.handlers.table import advertised_versions
from core_broker.protocol.messages.fetch import FetchRequest
from core_broker.protocol.messages.list_offsets import ListOffsetsRequest
from core_broker.protocol.stored.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from core_broker.settings import BrokerSettings

KAFKA = """
 7 13  7 1 0
 8 13  7 2 0
 9 14  8 2 0
10 15  8 2 0
11 15  8 2 0
12 15  8 2 0
13 15  8 2 0
14 15  8 2 0
15 15  8 2 0
16 15  8 2 0
17 15  8 3 1
18 15  8 3 1
19 16  8 3 1
20 16  8 3 1
21 17  9 3 1
22 17  9 3 1
23 17  9 3 2
24 17  9 3 2
25 17 10 3 2
26 17 10 3 2
27 18 10 3 2
28 18 10 3 2
29 18 11 3 2
30 18 11 4 2
"""
"""What Apache Kafka 4.3.1 says: level, Fetch, ListOffsets, RegisterBroker, Partition (its `MetadataVersion`)."""
LEVELS = [tuple(map(int, line.split())) for line in KAFKA.strip().splitlines()]


def test_every_level_means_what_it_means_to_kafka() -> None:
    low, high = SUPPORTED_FEATURES["metadata.version"]
    assert [
        (
            level,
            fetch_version(level),
            list_offsets_version(level),
            record_version(RegisterBrokerRecord, level),
            record_version(PartitionRecord, level),
        )
        for level in range(low, high + 1)
    ] == LEVELS


@pytest.mark.parametrize("level", [level for level, *_ in LEVELS])
def test_both_records_of_a_partition_have_the_same_version(level: int) -> None:
    assert record_version(PartitionChangeRecord, level) == record_version(PartitionRecord, level)


@pytest.mark.parametrize("level,version", [(7, 1), (16, 1), (17, 2), (25, 2), (29, 2), (30, 3)])
def test_changes_of_a_broker_have_directories_and_cordons_only_where_they_are_known(level: int, version: int) -> None:
    assert record_version(BrokerRegistrationChangeRecord, level) == version
    assert record_version(TopicRecord, level) == 0


@pytest.mark.parametrize("level", [level for level, *_ in LEVELS])
def test_what_a_follower_sends_at_a_level_is_served(level: int) -> None:
    served = {key: range(low, high + 1) for key, low, high in advertised_versions()}
    assert FetchRequest.API_KEY is not None
    assert ListOffsetsRequest.API_KEY is not None
    assert fetch_version(level) in served[FetchRequest.API_KEY]
    assert list_offsets_version(level) in served[ListOffsetsRequest.API_KEY]


def test_a_new_cluster_has_the_levels_of_the_release_that_it_is_formed_for() -> None:
    always = {"group.version": 1, "transaction.version": 2}
    elr = {"eligible.leader.replicas.version": 1}
    assert {release: initial_features(release) for release in RELEASES} == {
        "4.0": {"metadata.version": 25, **always},
        "4.1": {"metadata.version": 27, **elr, **always},
        "4.2": {"metadata.version": 29, **elr, **always},
        "4.3": {"metadata.version": 30, **elr, **always},
    }
    for release in RELEASES:
        assert next(iter(initial_features(release))) == "metadata.version"
        assert BrokerSettings.parse({"initial.release.version": release}).initial_release_version == release


def test_a_feature_that_this_broker_lacks_is_named_with_the_highest_level_it_can_have() -> None:
    finalized = {"metadata.version": 31, "share.version": 1, "group.version": 1, "streams.version": 0}
    assert list(unsupported(finalized)) == [("metadata.version", 31, 30), ("share.version", 1, 0)]
