"""The lag of consumer groups: the distance between their commits and the ends of the partitions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from core_broker.client.admin import Admin
from core_broker.client.errors import NotFound
from core_broker.client.models import Group, Member
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.groups import LagData, LagSummaryData
from rest_proxy.models.v3.resources import Links, ResourceMetadata

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The lag of a group in a partition, and the member that reads it."""

    topic: str
    partition: int
    committed: int
    end: int
    reader: Member | None

    @property
    def lag(self) -> int:
        """The number of offsets in between; 0 if a truncated or recreated partition ends before the commit."""
        return max(0, self.end - self.committed)


# --- requests ---


def lags(admin: Admin, group: Group) -> list[PartitionLag]:
    """Every partition in which the group has committed, greatest lag first; 404 if there is none.

    It takes two calls, however many partitions there are.
    """
    committed: Mapping[TopicPartition, int] = {}
    with suppress(NotFound):  # It may have been deleted since it was described.
        committed = admin.group_offsets(group.group_id)
    if not committed:
        raise ProxyError(404, "Consumer group offsets could not be found.")
    measured = measure(group, committed, admin.committed_ends(committed))
    if not measured:
        raise ProxyError(404, "Consumer lags not found.")
    return measured


def measure(
    group: Group, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[PartitionLag]:
    """The lag of each partition that has an end, greatest first."""
    readers = {key: member for member in group.members for key in member.partitions}
    measured = [
        PartitionLag(topic=key[0], partition=key[1], committed=offset, end=ends[key], reader=readers.get(key))
        for key, offset in committed.items()
        if key in ends
    ]
    return sorted(measured, key=lambda one: (-one.lag, one.topic, one.partition))


def of_partition(measured: Sequence[PartitionLag], topic: str, partition: int) -> PartitionLag:
    """The lag in one partition, or 404."""
    for one in measured:
        if (one.topic, one.partition) == (topic, partition):
            return one
    raise ProxyError(404, f"The group has committed nothing in partition {partition} of this topic.")


# --- responses ---


def lag_data(group: Group, one: PartitionLag, links: Links) -> LagData:
    """The lag in a partition, in the form of the response."""
    path = ("consumer-groups", group.group_id, "lags", one.topic, "partitions", one.partition)
    name = ("consumer-group", group.group_id, "lag", one.topic, "partition", one.partition)
    return LagData(
        metadata=links.resource(path, name),
        cluster_id=links.cluster_id,
        consumer_group_id=group.group_id,
        topic_name=one.topic,
        partition_id=one.partition,
        consumer_id=one.reader.member_id if one.reader else "",
        instance_id=(one.reader.instance_id or None) if one.reader else None,
        client_id=one.reader.client_id if one.reader else "",
        current_offset=one.committed,
        log_end_offset=one.end,
        lag=one.lag,
    )


def summary_data(group: Group, measured: Sequence[PartitionLag], links: Links) -> LagSummaryData:
    """The total lag of a group, in the form of the response; the first partition must be the one with the most."""
    path = ("consumer-groups", group.group_id)
    worst = lag_data(group, measured[0], links)
    name = f"{links.name('consumer-group', group.group_id)}/lag-summary"
    return LagSummaryData(
        metadata=ResourceMetadata(self=links.url(*path, "lag-summary"), resource_name=name),
        cluster_id=links.cluster_id,
        consumer_group_id=group.group_id,
        max_lag_consumer_id=worst.consumer_id,
        max_lag_consumer=links.related(*path, "consumers", worst.consumer_id),
        max_lag_instance_id=worst.instance_id,
        max_lag_client_id=worst.client_id,
        max_lag_topic_name=worst.topic_name,
        max_lag_partition_id=worst.partition_id,
        max_lag_partition=links.related("topics", worst.topic_name, "partitions", worst.partition_id),
        max_lag=worst.lag,
        total_lag=sum(one.lag for one in measured),
    )
