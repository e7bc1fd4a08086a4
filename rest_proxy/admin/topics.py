"""Topics: what there is, and what an operator changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core_broker.client.models import Topic
from rest_proxy.admin.cluster import KafkaCluster, check_text, unknown_topic_or_partition
from rest_proxy.errors import ProxyError

_UNKNOWN_TOPIC = 40403


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be created; -1 leaves a number to the cluster, an assignment takes the place of both."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


def listed(cluster: KafkaCluster) -> list[Topic]:
    """Every topic but those that Kafka keeps for itself, by name, in one request."""
    with cluster.asked() as admin:
        return [topic for topic in admin.all_topics() if not topic.is_internal]


def found(cluster: KafkaCluster, name: str, *, authorized_operations: bool = False) -> Topic:
    """A topic, or 40403."""
    with cluster.asked() as admin:
        topics = admin.topics([name], authorized_operations=authorized_operations)
    if not topics or topics[0].name != name:
        raise unknown_topic_or_partition()
    return topics[0]


def created(cluster: KafkaCluster, new: NewTopic, *, validate_only: bool = False) -> tuple[int, int]:
    """Create a topic, or see whether it could be; gives its numbers of partitions and of replicas."""
    with cluster.asked() as admin:
        admin.create_topic(
            _checked(new.name),
            partitions=new.partitions,
            replication_factor=new.replication_factor,
            assignment=_in_order(new.assignment),
            configs=_checked_configs(new.configs),
            validate_only=validate_only,
        )
    if not validate_only and (numbers := _numbers(cluster, new.name)):
        return numbers
    return _expected(cluster, new)


def grown(cluster: KafkaCluster, name: str, partitions: int) -> Topic:
    """Give a topic more partitions; gives the topic as it is then."""
    found(cluster, name)
    with cluster.asked() as admin:
        admin.grow_topic(name, partitions)
    return found(cluster, name)


def delete(cluster: KafkaCluster, name: str) -> None:
    """Delete a topic, or 40403."""
    with cluster.asked() as admin:
        (error,) = admin.delete_topics([name]).values()
        if error is not None:
            raise error


def _checked(name: str) -> str:
    if not name:
        raise ProxyError(40002, f"Topic name {name!r} is invalid.")
    check_text("Topic name", name)
    return name


def _checked_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in configs.items():
        if value is None:
            raise ProxyError(40002, f"Null value not supported for topic configs: {key}")
        check_text("Config", key)
        check_text(f"The value of config {key}", value)
        values[key] = value
    return values


def _in_order(assignment: Mapping[int, Sequence[int]]) -> list[Sequence[int]]:
    if sorted(assignment) != list(range(len(assignment))):
        raise ProxyError(40002, "partitions should be a consecutive 0-based integer sequence")
    return [assignment[partition] for partition in range(len(assignment))]


def _numbers(cluster: KafkaCluster, name: str) -> tuple[int, int] | None:
    """The numbers that a topic got; None while the news of it has not reached every broker."""
    try:
        partitions = found(cluster, name).partitions
    except ProxyError as error:
        if error.code != _UNKNOWN_TOPIC:
            raise
        return None
    return (len(partitions), len(partitions[0].replicas)) if partitions else None


def _expected(cluster: KafkaCluster, new: NewTopic) -> tuple[int, int]:
    """The numbers that a topic would get: those of the request, or what the controller has for such requests."""
    if new.assignment:
        return len(new.assignment), len(new.assignment[0])
    partitions, replication_factor = new.partitions, new.replication_factor
    if partitions == -1 or replication_factor == -1:
        defaults = _defaults(cluster)
        partitions = defaults.get("num.partitions", 1) if partitions == -1 else partitions
        if replication_factor == -1:
            replication_factor = defaults.get("default.replication.factor", 1)
    return partitions, replication_factor


def _defaults(cluster: KafkaCluster) -> dict[str, int]:
    described = cluster.described()
    asked = described.controller_id if described.controller_id >= 0 else described.brokers[0].id
    with cluster.asked() as admin:
        configs = admin.configs_of_brokers([asked])[asked]
    wanted = ("num.partitions", "default.replication.factor")
    return {config.key: int(config.value) for config in configs if config.key in wanted and config.value}
