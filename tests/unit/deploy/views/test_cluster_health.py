from collections.abc import Sequence

from deploy.views.cluster import BrokerView, ClusterView, DiskView, PartitionView, QuorumMember, QuorumView
from deploy.views.cluster_health import missing_brokers, troubles

DISK = DiskView(path="/d", online=True, size_bytes=1, total_bytes=9, free_bytes=8)


def cluster(*partitions: Sequence[int], down: Sequence[int] = (), min_isr: int = 2, voters: int = 3) -> ClusterView:
    """A cluster of three brokers with a topic whose partitions have these replicas in sync; the first leads."""
    brokers = [
        BrokerView(
            id=number,
            host="h",
            port=number,
            rack=None,
            software="Caudal",
            version="1.0.0",
            fenced=number in down,
            controller=number == 1,
            leaders=0,
            replicas=0,
            disks=None if number in down else [DISK],
        )
        for number in (1, 2, 3)
    ]
    members = [
        QuorumMember(id=number, directory_id="d", leader=number == 1, lag_records=0, lag_ms=0)
        for number in range(1, voters + 1)
    ]
    listed = [
        PartitionView(
            topic="t",
            partition=number,
            leader=in_sync[0] if in_sync else -1,
            replicas=(1, 2, 3),
            isr=tuple(in_sync),
            min_isr=min_isr,
        )
        for number, in_sync in enumerate(partitions)
    ]
    return ClusterView(
        cluster_id="c",
        controller=1,
        topics=1,
        partitions=len(listed),
        brokers=brokers,
        quorum=QuorumView(leader=1, epoch=1, high_watermark=1, voters=members, observers=[]),
        under_replicated=[item for item in listed if len(item.isr) < 3],
        under_min_isr=[item for item in listed if len(item.isr) < min_isr],
        offline=[item for item in listed if item.leader < 0],
        reassignments=[],
    )


def test_a_whole_cluster_is_in_no_trouble() -> None:
    assert troubles(cluster((1, 2, 3), (2, 3, 1))) == []
    assert missing_brokers(cluster((1, 2, 3))) == []


def test_each_partition_is_counted_once_and_the_worst_comes_first() -> None:
    found = cluster((1, 2, 3), (1, 3), (1,), (), (3, 1), down=[2])
    assert [broker.id for broker in missing_brokers(found)] == [2]
    assert [(item.text.partition(" partitions")[0], item.is_outage) for item in troubles(found)] == [
        ("1 of 5", True),
        ("1 of 5", True),
        ("2 of 5", False),
        ("2 of 3 controllers are up: if another one stops, no leader can be elected", False),
    ]
    assert "cannot be read or written" in troubles(found)[0].text
    assert "writes with acks=all wait" in troubles(found)[1].text


def test_replicas_that_catch_up_after_their_brokers_are_back_are_still_told() -> None:
    (trouble,) = troubles(cluster((1, 3)))
    assert not trouble.is_outage


def test_two_controllers_are_not_complained_about_as_long_as_both_are_up() -> None:
    assert troubles(cluster((1, 2, 3), voters=2)) == []
    assert [item.is_outage for item in troubles(cluster((1, 2, 3), down=[2], voters=2))] == [False]
