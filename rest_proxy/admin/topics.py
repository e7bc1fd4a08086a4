"""Topics: listed, created, extended and deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core_broker.client.models import Topic
from rest_proxy.admin.cluster import KafkaCluster, check_text, unknown_topic_or_partition
from rest_proxy.errors import ProxyError

_UNKNOWN_TOPIC = 40403


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; -1 leaves a number to the cluster, an assignment replaces both."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


def list_all(cluster: KafkaCluster) -> list[Topic]:
    """Every topic except internal ones, by name, in one request."""
    with cluster.admin() as admin:
        return [topic for topic in admin.all_topics() if not topic.is_internal]


def get(cluster: KafkaCluster, name: str, *, authorized_operations: bool = False) -> Topic:
    """A topic, or 40403."""
    with cluster.admin() as admin:
        topics = admin.topics([name], authorized_operations=authorized_operations)
    if not topics or topics[0].name != name:
        raise unknown_topic_or_partition()
    return topics[0]


def create(cluster: KafkaCluster, new: NewTopic, *, validate_only: bool = False) -> tuple[int, int]:
    """Create a topic, or check whether it could be; returns its numbers of partitions and of replicas."""
    with cluster.admin() as admin:
        if not new.name:
            raise ProxyError(40002, f"Topic name {new.name!r} is invalid.")
        check_text("Topic name", new.name)
        if sorted(new.assignment) != list(range(len(new.assignment))):
            raise ProxyError(40002, "partitions should be a consecutive 0-based integer sequence")
        admin.create_topic(
            new.name,
            partitions=new.partitions,
            replication_factor=new.replication_factor,
            assignment=[new.assignment[partition] for partition in range(len(new.assignment))],
            configs=_check_configs(new.configs),
            validate_only=validate_only,
        )
    if not validate_only and (counts := _actual_counts(cluster, new.name)):
        return counts
    return _expected_counts(cluster, new)


def grow(cluster: KafkaCluster, name: str, partitions: int) -> Topic:
    """Give a topic more partitions; returns the topic as it is then."""
    get(cluster, name)
    with cluster.admin() as admin:
        admin.grow_topic(name, partitions)
    return get(cluster, name)


def delete(cluster: KafkaCluster, name: str) -> None:
    """Delete a topic, or 40403."""
    with cluster.admin() as admin:
        (error,) = admin.delete_topics([name]).values()
        if error is not None:
            raise error


def _check_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in configs.items():
        if value is None:
            raise ProxyError(40002, f"Null value not supported for topic configs: {key}")
        check_text("Config", key)
        check_text(f"The value of config {key}", value)
        values[key] = value
    return values


def _actual_counts(cluster: KafkaCluster, name: str) -> tuple[int, int] | None:
    """The numbers of partitions and replicas of a new topic; None while the broker that answers does not know it."""
    try:
        partitions = get(cluster, name).partitions
    except ProxyError as error:
        if error.code != _UNKNOWN_TOPIC:
            raise
        return None
    return (len(partitions), len(partitions[0].replicas)) if partitions else None


def _expected_counts(cluster: KafkaCluster, new: NewTopic) -> tuple[int, int]:
    """The numbers of partitions and replicas that a topic would get: from the request, or the controller's defaults."""
    if new.assignment:
        return len(new.assignment), len(new.assignment[0])
    partitions, replication_factor = new.partitions, new.replication_factor
    if partitions == -1 or replication_factor == -1:
        described = cluster.describe()
        broker_id = described.controller_id if described.controller_id >= 0 else described.brokers[0].id
        with cluster.admin() as admin:
            configs = {config.key: config.value for config in admin.configs_of_brokers([broker_id])[broker_id]}
        if partitions == -1:
            partitions = int(configs.get("num.partitions") or 1)
        if replication_factor == -1:
            replication_factor = int(configs.get("default.replication.factor") or 1)
    return partitions, replication_factor
