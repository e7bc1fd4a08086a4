"""Configs of topics, of brokers and of the whole cluster in API v3."""

from collections.abc import Iterable

from fastapi import APIRouter, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import configs
from rest_proxy.admin.configs import Change, find, set_value
from rest_proxy.models.v3.configs import (
    AlterBrokerConfigsBody,
    AlterConfigsBody,
    AlterOperation,
    AlterTopicsConfigsBody,
    AlterTopicsConfigsFailures,
    BrokerConfigData,
    BrokerConfigDataList,
    ClusterConfigData,
    ClusterConfigDataList,
    ConfigChangeBody,
    TopicConfigData,
    TopicConfigDataList,
    TopicFailure,
    UpdateBrokerConfigBody,
    UpdateConfigBody,
)
from rest_proxy.routes.parameters import BrokerConfigName, BrokerId, ConfigName, TopicName
from rest_proxy.routes.services import Cluster, ClusterLinks
from rest_proxy.routes.v3.responses import BODY_ERRORS, collection_response, json_response, missing_body, reads, writes

routes = APIRouter(prefix="/v3/clusters/{cluster_id}", tags=["v3 configs"], route_class=BoundedRoute)

# --- topics ---

_FAILURES = {207: {"model": AlterTopicsConfigsFailures, "description": "Some topics could not be changed."}}

# `-` in place of a name or number means all of them, so these routes come before those with a name.


@routes.get("/topics/-/configs", **reads(TopicConfigDataList, "listKafkaConfigsOfTopics"))
def list_configs_of_topics(cluster: Cluster, links: ClusterLinks) -> Response:
    """The configs of every topic."""
    found = configs.of_all_topics(cluster).items()
    data = (TopicConfigData.of(topic, config, links) for topic, of_topic in found for config in of_topic)
    return collection_response(TopicConfigDataList(metadata=links.collection("topics", "-", "configs"), data=[]), data)


@routes.post("/topics/-/configs:alter", **writes("alterKafkaConfigsOfTopics", *BODY_ERRORS, others=_FAILURES))
def alter_configs_of_topics(cluster: Cluster, body: AlterTopicsConfigsBody | None = None) -> Response:
    """Change configs of several topics; a failure of one does not affect the others."""
    if body is None:
        raise missing_body()
    wanted = {topic.topic_name: _changes(topic.configs) for topic in body.data}
    failed = configs.change_topics(cluster, wanted, validate_only=bool(body.validate_only)) if wanted else {}
    if not failed:
        return Response(status_code=204)
    failures = [
        TopicFailure(topic_name=topic, error_code=error.code, message=error.message) for topic, error in failed.items()
    ]
    return json_response(AlterTopicsConfigsFailures(failures=failures), status=207)


@routes.get("/topics/{topic_name}/configs", **reads(TopicConfigDataList, "listKafkaTopicConfigs"))
def list_topic_configs(topic_name: TopicName, cluster: Cluster, links: ClusterLinks) -> Response:
    """The configs of a topic."""
    data = [TopicConfigData.of(topic_name, config, links) for config in configs.of_topic(cluster, topic_name)]
    return json_response(TopicConfigDataList(metadata=links.collection("topics", topic_name, "configs"), data=data))


@routes.get("/topics/{topic_name}/default-configs", **reads(TopicConfigDataList, "listKafkaDefaultTopicConfigs"))
def list_default_topic_configs(topic_name: TopicName, cluster: Cluster, links: ClusterLinks) -> Response:
    """The configs that a topic would have if it were created now."""
    data = [TopicConfigData.of(topic_name, config, links) for config in configs.of_new_topic(cluster, topic_name)]
    metadata = links.collection("topics", topic_name, "default-configs")
    return json_response(TopicConfigDataList(metadata=metadata, data=data))


@routes.get("/topics/{topic_name}/configs/{name}", **reads(TopicConfigData, "getKafkaTopicConfig"))
def get_topic_config(topic_name: TopicName, name: ConfigName, cluster: Cluster, links: ClusterLinks) -> Response:
    """One config of a topic."""
    return json_response(TopicConfigData.of(topic_name, find(configs.of_topic(cluster, topic_name), name), links))


@routes.put("/topics/{topic_name}/configs/{name}", **writes("updateKafkaTopicConfig", *BODY_ERRORS))
def update_topic_config(
    topic_name: TopicName, name: ConfigName, cluster: Cluster, body: UpdateConfigBody | None = None
) -> None:
    """Set one config of a topic."""
    configs.change_topic(cluster, topic_name, [_set_change(name, body)])


@routes.delete("/topics/{topic_name}/configs/{name}", **writes("resetKafkaTopicConfig", 404))
def reset_topic_config(topic_name: TopicName, name: ConfigName, cluster: Cluster) -> None:
    """Reset one config of a topic to its default."""
    configs.change_topic(cluster, topic_name, [Change(name=name, value=None)])


@routes.post("/topics/{topic_name}/configs:alter", **writes("alterKafkaTopicConfigs", *BODY_ERRORS))
def alter_topic_configs(topic_name: TopicName, cluster: Cluster, body: AlterConfigsBody | None = None) -> None:
    """Change configs of a topic, all or none."""
    changes, validate_only = _get_changes(body)
    configs.change_topic(cluster, topic_name, changes, validate_only=validate_only)


# --- brokers ---


@routes.get("/brokers/-/configs", **reads(BrokerConfigDataList, "listKafkaConfigsOfBrokers"))
def list_configs_of_brokers(cluster: Cluster, links: ClusterLinks) -> Response:
    """The configs of every broker."""
    found = configs.of_all_brokers(cluster).items()
    data = [BrokerConfigData.of(broker_id, config, links) for broker_id, of_broker in found for config in of_broker]
    return json_response(BrokerConfigDataList(metadata=links.collection("brokers", "-", "configs"), data=data))


@routes.get("/brokers/{broker_id}/configs", **reads(BrokerConfigDataList, "listKafkaBrokerConfigs"))
def list_broker_configs(broker_id: BrokerId, cluster: Cluster, links: ClusterLinks) -> Response:
    """The configs of a broker."""
    data = [BrokerConfigData.of(broker_id, config, links) for config in configs.of_broker(cluster, broker_id)]
    return json_response(BrokerConfigDataList(metadata=links.collection("brokers", broker_id, "configs"), data=data))


@routes.get("/brokers/{broker_id}/configs/{name}", **reads(BrokerConfigData, "getKafkaBrokerConfig"))
def get_broker_config(broker_id: BrokerId, name: BrokerConfigName, cluster: Cluster, links: ClusterLinks) -> Response:
    """One config of a broker."""
    return json_response(BrokerConfigData.of(broker_id, find(configs.of_broker(cluster, broker_id), name), links))


@routes.put("/brokers/{broker_id}/configs/{name}", **writes("updateKafkaBrokerConfig", *BODY_ERRORS))
def update_broker_config(
    broker_id: BrokerId, name: BrokerConfigName, cluster: Cluster, body: UpdateBrokerConfigBody | None = None
) -> None:
    """Set one config of a broker."""
    configs.change_broker(cluster, broker_id, [_set_change(name, body)])


@routes.delete("/brokers/{broker_id}/configs/{name}", **writes("resetKafkaBrokerConfig", 404))
def reset_broker_config(broker_id: BrokerId, name: BrokerConfigName, cluster: Cluster) -> None:
    """Reset one config of a broker to its default."""
    configs.change_broker(cluster, broker_id, [Change(name=name, value=None)])


@routes.post("/brokers/{broker_id}/configs:alter", **writes("alterKafkaBrokerConfigs", *BODY_ERRORS))
def alter_broker_configs(broker_id: BrokerId, cluster: Cluster, body: AlterBrokerConfigsBody | None = None) -> None:
    """Change configs of a broker, all or none."""
    changes, validate_only = _get_changes(body)
    configs.change_broker(cluster, broker_id, changes, validate_only=validate_only)


# --- the whole cluster ---


@routes.get("/broker-configs", **reads(ClusterConfigDataList, "listKafkaClusterConfigs"))
def list_cluster_configs(cluster: Cluster, links: ClusterLinks) -> Response:
    """The configs that are set for all brokers."""
    data = [ClusterConfigData.of(config, links) for config in configs.of_cluster(cluster)]
    return json_response(ClusterConfigDataList(metadata=links.collection("broker-configs"), data=data))


@routes.get("/broker-configs/{name}", **reads(ClusterConfigData, "getKafkaClusterConfig"))
def get_cluster_config(name: BrokerConfigName, cluster: Cluster, links: ClusterLinks) -> Response:
    """One config that is set for all brokers."""
    return json_response(ClusterConfigData.of(find(configs.of_cluster(cluster), name), links))


@routes.put("/broker-configs/{name}", **writes("updateKafkaClusterConfig", *BODY_ERRORS))
def update_cluster_config(name: BrokerConfigName, cluster: Cluster, body: UpdateBrokerConfigBody | None = None) -> None:
    """Set one config for all brokers."""
    configs.change_cluster(cluster, [_set_change(name, body)])


@routes.delete("/broker-configs/{name}", **writes("resetKafkaClusterConfig", 404))
def reset_cluster_config(name: BrokerConfigName, cluster: Cluster) -> None:
    """Reset one config that is set for all brokers."""
    configs.change_cluster(cluster, [Change(name=name, value=None)])


@routes.post("/broker-configs:alter", **writes("alterKafkaClusterConfigs", *BODY_ERRORS))
def alter_cluster_configs(cluster: Cluster, body: AlterBrokerConfigsBody | None = None) -> None:
    """Change configs of all brokers, all or none."""
    changes, validate_only = _get_changes(body)
    configs.change_cluster(cluster, changes, validate_only=validate_only)


# --- bodies ---


def _set_change(name: str, body: UpdateConfigBody | None) -> Change:
    if body is None:
        raise missing_body()
    return set_value(name, body.value)


def _get_changes(body: AlterConfigsBody | None) -> tuple[list[Change], bool]:
    """The changes, and whether to validate them only."""
    if body is None:
        raise missing_body()
    return _changes(body.data), bool(body.validate_only)


def _changes(entries: Iterable[ConfigChangeBody]) -> list[Change]:
    return [
        Change(name=entry.name, value=None)
        if entry.operation is AlterOperation.DELETE
        else set_value(entry.name, entry.value)
        for entry in entries
    ]
