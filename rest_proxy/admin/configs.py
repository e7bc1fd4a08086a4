"""Configs of topics, of brokers and of the whole cluster."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core_broker.client.errors import NotFound
from core_broker.client.models import Config
from rest_proxy.admin import topics
from rest_proxy.admin.cluster import KafkaCluster, check_text, not_found, unknown_topic_or_partition
from rest_proxy.errors import ProxyError, from_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A config to set or, without a value, to reset to its default."""

    name: str
    value: str | None


def set_value(name: str, value: str | None) -> Change:
    """The change that sets a config; null is not a value."""
    if value is None:
        raise ProxyError(40002, f"Null value not supported for : {name}")
    return Change(name=name, value=value)


def find(configs: Iterable[Config], name: str) -> Config:
    """The config of that name, or 404."""
    for config in configs:
        if config.key == name:
            return config
    raise not_found()


# --- topics ---


def of_topic(cluster: KafkaCluster, topic: str) -> list[Config]:
    """The configs of a topic, by name."""
    with cluster.admin() as admin:
        return admin.configs(topic)


def of_all_topics(cluster: KafkaCluster) -> dict[str, list[Config]]:
    """The configs of every topic, by topic and name, in two requests."""
    names = [topic.name for topic in topics.list_all(cluster)]
    with cluster.admin() as admin:
        return admin.configs_of_topics(names)


def of_new_topic(cluster: KafkaCluster, topic: str) -> list[Config]:
    """The configs that a topic would have if it were created now."""
    with cluster.admin() as admin:
        return admin.new_topic_configs(topic)


def change_topic(cluster: KafkaCluster, topic: str, changes: Sequence[Change], *, validate_only: bool = False) -> None:
    """Change configs of a topic, all or none; 404 for a config that topics do not have."""
    _check_names(changes, of_topic(cluster, topic), f"TOPIC {topic} in cluster {cluster.id}")
    with cluster.admin() as admin:
        admin.alter_configs(topic, put=_to_set(changes), remove=_to_reset(changes), validate_only=validate_only)


def change_topics(
    cluster: KafkaCluster, changes: Mapping[str, Sequence[Change]], *, validate_only: bool = False
) -> dict[str, ProxyError]:
    """Change configs of several topics, all or none of each; returns the errors by topic."""
    for topic in changes:
        check_text("Topic", topic)
    with cluster.admin() as admin:
        known = admin.configs_of_topics(changes)
        for topic, configs in known.items():
            _check_names(changes[topic], configs, f"TOPIC {topic} in cluster {cluster.id}")
        wanted = {topic: (_to_set(of_one), _to_reset(of_one)) for topic, of_one in changes.items()}
        outcome = admin.alter_configs_of_topics(wanted, validate_only=validate_only)
    return {
        topic: unknown_topic_or_partition() if isinstance(error, NotFound) else from_cluster(error)
        for topic, error in outcome.items()
        if error is not None
    }


# --- brokers ---


def of_broker(cluster: KafkaCluster, broker_id: int) -> list[Config]:
    """The configs of a broker, by name; 404 for an unknown broker."""
    cluster.broker(broker_id)
    with cluster.admin() as admin:
        return admin.configs_of_brokers([broker_id])[broker_id]


def of_all_brokers(cluster: KafkaCluster) -> dict[int, list[Config]]:
    """The configs of every broker, by broker and name."""
    ids = [broker.id for broker in cluster.brokers()]
    with cluster.admin() as admin:
        return admin.configs_of_brokers(ids)


def change_broker(
    cluster: KafkaCluster, broker_id: int, changes: Sequence[Change], *, validate_only: bool = False
) -> None:
    """Change configs of a broker, all or none; 404 for a config that brokers do not have."""
    _check_names(changes, of_broker(cluster, broker_id), f"BROKER {broker_id} in cluster {cluster.id}")
    with cluster.admin() as admin:
        admin.alter_broker_configs(
            broker_id, put=_to_set(changes), remove=_to_reset(changes), validate_only=validate_only
        )


# --- the whole cluster ---


def of_cluster(cluster: KafkaCluster) -> list[Config]:
    """The configs that are set for all brokers, by name."""
    with cluster.admin() as admin:
        return admin.cluster_configs()


def change_cluster(cluster: KafkaCluster, changes: Sequence[Change], *, validate_only: bool = False) -> None:
    """Change configs of all brokers, all or none."""
    _check_changes(changes)
    with cluster.admin() as admin:
        admin.alter_cluster_configs(put=_to_set(changes), remove=_to_reset(changes), validate_only=validate_only)


# --- changes ---


def _to_set(changes: Iterable[Change]) -> dict[str, str]:
    return {change.name: change.value for change in changes if change.value is not None}


def _to_reset(changes: Iterable[Change]) -> list[str]:
    return [change.name for change in changes if change.value is None]


def _check_names(changes: Sequence[Change], configs: Iterable[Config], owner: str) -> None:
    known = {config.key for config in configs}
    for change in changes:
        if change.name not in known:
            raise ProxyError(404, f"Config {change.name[:200]} cannot be found for {owner}.")
    _check_changes(changes)


def _check_changes(changes: Sequence[Change]) -> None:
    for change in changes:
        check_text("Config", change.name)
        check_text(f"The value of config {change.name}", change.value or "")
    counts = Counter(change.name for change in changes)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ProxyError(40002, f"Error due to duplicate config keys : {', '.join(twice)}")
