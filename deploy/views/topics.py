"""Topics: how many records they hold, and all about one of them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from core_broker.client.admin import Admin
from deploy.views.text import plural

DEFAULT_REPLICAS: Final = "default.replication.factor"
MIN_IN_SYNC: Final = "min.insync.replicas"
_OWN: Final = "DYNAMIC_TOPIC_CONFIG"
"""The source of a config that was set for the topic itself."""


class TopicSummary(msgspec.Struct, frozen=True):
    """A topic in a list."""

    topic: str
    partitions: int
    records: int


class PartitionView(msgspec.Struct, frozen=True, kw_only=True):
    """One partition: where it is, and which offsets it holds."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    earliest: int
    latest: int


class TopicView(msgspec.Struct, frozen=True, kw_only=True):
    """A topic with its partitions and configs."""

    topic: str
    id: str
    internal: bool
    partitions: list[PartitionView]
    configs: dict[str, str | None]


def list_topics(admin: Admin, *, internal: bool) -> list[TopicSummary]:
    """All topics by name; the cluster's own ones (`__...`) only if `internal`."""
    partitions = {name: count for name, count in sorted(admin.topic_names().items()) if internal or name[:2] != "__"}
    records = record_counts(admin, partitions)
    return [TopicSummary(name, count, records[name]) for name, count in partitions.items()]


def describe_topic(admin: Admin, name: str, *, all_configs: bool) -> TopicView:
    """One topic, with the configs that were set for it or with all of them."""
    (topic,) = admin.topics([name])
    configs = {item.key: item.value for item in admin.configs(name) if all_configs or item.source == _OWN}
    wanted = [(name, partition.index) for partition in topic.partitions]
    earliest, latest = admin.offsets(wanted, "earliest"), admin.offsets(wanted, "latest")
    partitions = [
        PartitionView(
            partition=item.index,
            leader=item.leader,
            replicas=item.replicas,
            isr=item.in_sync,
            earliest=earliest[name, item.index],
            latest=latest[name, item.index],
        )
        for item in topic.partitions
    ]
    return TopicView(topic=name, id=topic.topic_id, internal=topic.is_internal, partitions=partitions, configs=configs)


def explain_replicas(topic: str, replicas: int, *, minimum: int) -> str:
    """What a number of replicas on a cluster means for reads and writes; `minimum` of them must be in sync."""
    if replicas == 1:
        return (
            "one copy of each partition: none can be read or written while its broker is down; "
            f"more:  caudal cluster grow --topic {topic}"
        )
    needed = min(minimum, replicas)  # as brokers count it
    survived = plural(replicas - needed, "broker") if replicas > needed else "no broker"
    return (
        f"{replicas} copies of each partition; a write with acks=all is on at least {needed} of them, "
        f"and {survived} may fail without stopping it"
    )


def record_counts(admin: Admin, partitions: Mapping[str, int]) -> dict[str, int]:
    """How many records topics hold, given their numbers of partitions."""
    wanted = [(name, index) for name, count in partitions.items() for index in range(count)]
    first, end = admin.offsets(wanted, "earliest"), admin.offsets(wanted, "latest")
    counts = dict.fromkeys(partitions, 0)
    for item in wanted:
        counts[item[0]] += end[item] - first[item]
    return counts
