"""Configs of topics, of brokers and of the whole cluster in API v3."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import configs
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.admin.configs import Change, named, setting
from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
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
    broker_config,
    cluster_config,
    topic_config,
)
from rest_proxy.models.v3.resources import Links
from rest_proxy.routes.parameters import BrokerConfigName, BrokerId, ConfigName, TopicName
from rest_proxy.routes.v3.answers import InCluster, body_missing, changing, in_cluster, nothing, told, told_in_parts

_WRITE_ERRORS = (404, 413, 415, 422)


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """The routes, answering for one cluster."""
    routes = APIRouter(prefix="/v3/clusters/{cluster_id}", tags=["v3 configs"], route_class=BoundedRoute)
    here = in_cluster(cluster, advertised)
    # A `-` in the place of a name or number means all of them, and so comes before any.
    _add_all_topics(routes, cluster, here)
    _add_topic_reading(routes, cluster, here)
    _add_topic_writing(routes, cluster, here)
    _add_broker_reading(routes, cluster, here)
    _add_broker_writing(routes, cluster, here)
    _add_cluster_reading(routes, cluster, here)
    _add_cluster_writing(routes, cluster, here)
    return routes


# --- topics ---


def _add_all_topics(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/topics/-/configs",
        response_model=TopicConfigDataList,
        responses=errors(404),
        operation_id="listKafkaConfigsOfTopics",
    )
    def list_configs_of_topics(links: Annotated[Links, Depends(here)]) -> Response:
        """The configs of every topic."""
        found = configs.of_all_topics(cluster).items()
        data = (topic_config(topic, config, links) for topic, of_topic in found for config in of_topic)
        return told_in_parts(TopicConfigDataList(metadata=links.collection("topics", "-", "configs"), data=[]), data)

    @routes.post(
        "/topics/-/configs:alter",
        status_code=204,
        response_class=Response,
        responses={
            207: {"model": AlterTopicsConfigsFailures, "description": "Not all were changed."},
            **errors(*_WRITE_ERRORS),
        },
        dependencies=[Depends(here)],
        operation_id="alterKafkaConfigsOfTopics",
    )
    def alter_configs_of_topics(body: AlterTopicsConfigsBody | None = None) -> Response:
        """Change configs of several topics, each by itself."""
        if body is None:
            raise body_missing()
        wanted = {topic.topic_name: _changes(topic.configs) for topic in body.data}
        failed = configs.change_topics(cluster, wanted, validate_only=bool(body.validate_only)) if wanted else {}
        return _failures(failed.items()) if failed else nothing()


def _add_topic_reading(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/topics/{topic_name}/configs",
        response_model=TopicConfigDataList,
        responses=errors(404),
        operation_id="listKafkaTopicConfigs",
    )
    def list_topic_configs(topic_name: TopicName, links: Annotated[Links, Depends(here)]) -> Response:
        """The configs of a topic."""
        data = [topic_config(topic_name, config, links) for config in configs.of_topic(cluster, topic_name)]
        return told(TopicConfigDataList(metadata=links.collection("topics", topic_name, "configs"), data=data))

    @routes.get(
        "/topics/{topic_name}/default-configs",
        response_model=TopicConfigDataList,
        responses=errors(404),
        operation_id="listKafkaDefaultTopicConfigs",
    )
    def list_default_topic_configs(topic_name: TopicName, links: Annotated[Links, Depends(here)]) -> Response:
        """The configs that a topic would have if it were created now."""
        data = [topic_config(topic_name, config, links) for config in configs.of_new_topic(cluster, topic_name)]
        metadata = links.collection("topics", topic_name, "default-configs")
        return told(TopicConfigDataList(metadata=metadata, data=data))

    @routes.get(
        "/topics/{topic_name}/configs/{name}",
        response_model=TopicConfigData,
        responses=errors(404),
        operation_id="getKafkaTopicConfig",
    )
    def get_topic_config(topic_name: TopicName, name: ConfigName, links: Annotated[Links, Depends(here)]) -> Response:
        """One config of a topic."""
        return told(topic_config(topic_name, named(configs.of_topic(cluster, topic_name), name), links))


def _add_topic_writing(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.put(
        "/topics/{topic_name}/configs/{name}",
        operation_id="updateKafkaTopicConfig",
        **changing(here, *_WRITE_ERRORS),
    )
    def update_topic_config(topic_name: TopicName, name: ConfigName, body: UpdateConfigBody | None = None) -> Response:
        """Set one config of a topic."""
        configs.change_topic(cluster, topic_name, [_set(name, body)])
        return nothing()

    @routes.delete(
        "/topics/{topic_name}/configs/{name}",
        operation_id="resetKafkaTopicConfig",
        **changing(here, 404),
    )
    def reset_topic_config(topic_name: TopicName, name: ConfigName) -> Response:
        """Return one config of a topic to its default."""
        configs.change_topic(cluster, topic_name, [Change(name=name, value=None)])
        return nothing()

    @routes.post(
        "/topics/{topic_name}/configs:alter",
        operation_id="alterKafkaTopicConfigs",
        **changing(here, *_WRITE_ERRORS),
    )
    def alter_topic_configs(topic_name: TopicName, body: AlterConfigsBody | None = None) -> Response:
        """Change configs of a topic, all or none."""
        changes, only = _altered(body)
        configs.change_topic(cluster, topic_name, changes, validate_only=only)
        return nothing()


# --- brokers ---


def _add_broker_reading(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/brokers/-/configs",
        response_model=BrokerConfigDataList,
        responses=errors(404),
        operation_id="listKafkaConfigsOfBrokers",
    )
    def list_configs_of_brokers(links: Annotated[Links, Depends(here)]) -> Response:
        """The configs of every broker."""
        found = configs.of_all_brokers(cluster).items()
        data = [broker_config(broker_id, config, links) for broker_id, of_broker in found for config in of_broker]
        return told(BrokerConfigDataList(metadata=links.collection("brokers", "-", "configs"), data=data))

    @routes.get(
        "/brokers/{broker_id}/configs",
        response_model=BrokerConfigDataList,
        responses=errors(404),
        operation_id="listKafkaBrokerConfigs",
    )
    def list_broker_configs(broker_id: BrokerId, links: Annotated[Links, Depends(here)]) -> Response:
        """The configs of a broker."""
        data = [broker_config(broker_id, config, links) for config in configs.of_broker(cluster, broker_id)]
        return told(BrokerConfigDataList(metadata=links.collection("brokers", broker_id, "configs"), data=data))

    @routes.get(
        "/brokers/{broker_id}/configs/{name}",
        response_model=BrokerConfigData,
        responses=errors(404),
        operation_id="getKafkaBrokerConfig",
    )
    def get_broker_config(
        broker_id: BrokerId, name: BrokerConfigName, links: Annotated[Links, Depends(here)]
    ) -> Response:
        """One config of a broker."""
        return told(broker_config(broker_id, named(configs.of_broker(cluster, broker_id), name), links))


def _add_broker_writing(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.put(
        "/brokers/{broker_id}/configs/{name}",
        operation_id="updateKafkaBrokerConfig",
        **changing(here, *_WRITE_ERRORS),
    )
    def update_broker_config(
        broker_id: BrokerId, name: BrokerConfigName, body: UpdateBrokerConfigBody | None = None
    ) -> Response:
        """Set one config of a broker."""
        configs.change_broker(cluster, broker_id, [_set(name, body)])
        return nothing()

    @routes.delete(
        "/brokers/{broker_id}/configs/{name}",
        operation_id="resetKafkaBrokerConfig",
        **changing(here, 404),
    )
    def reset_broker_config(broker_id: BrokerId, name: BrokerConfigName) -> Response:
        """Return one config of a broker to what it was without being set."""
        configs.change_broker(cluster, broker_id, [Change(name=name, value=None)])
        return nothing()

    @routes.post(
        "/brokers/{broker_id}/configs:alter",
        operation_id="alterKafkaBrokerConfigs",
        **changing(here, *_WRITE_ERRORS),
    )
    def alter_broker_configs(broker_id: BrokerId, body: AlterBrokerConfigsBody | None = None) -> Response:
        """Change configs of a broker, all or none."""
        changes, only = _altered(body)
        configs.change_broker(cluster, broker_id, changes, validate_only=only)
        return nothing()


# --- the whole cluster ---


def _add_cluster_reading(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/broker-configs",
        response_model=ClusterConfigDataList,
        responses=errors(404),
        operation_id="listKafkaClusterConfigs",
    )
    def list_cluster_configs(links: Annotated[Links, Depends(here)]) -> Response:
        """The configs that were set for all brokers."""
        data = [cluster_config(config, links) for config in configs.of_cluster(cluster)]
        return told(ClusterConfigDataList(metadata=links.collection("broker-configs"), data=data))

    @routes.get(
        "/broker-configs/{name}",
        response_model=ClusterConfigData,
        responses=errors(404),
        operation_id="getKafkaClusterConfig",
    )
    def get_cluster_config(name: BrokerConfigName, links: Annotated[Links, Depends(here)]) -> Response:
        """One config that was set for all brokers."""
        return told(cluster_config(named(configs.of_cluster(cluster), name), links))


def _add_cluster_writing(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.put(
        "/broker-configs/{name}",
        operation_id="updateKafkaClusterConfig",
        **changing(here, *_WRITE_ERRORS),
    )
    def update_cluster_config(name: BrokerConfigName, body: UpdateBrokerConfigBody | None = None) -> Response:
        """Set one config for all brokers."""
        configs.change_cluster(cluster, [_set(name, body)])
        return nothing()

    @routes.delete(
        "/broker-configs/{name}",
        operation_id="resetKafkaClusterConfig",
        **changing(here, 404),
    )
    def reset_cluster_config(name: BrokerConfigName) -> Response:
        """Forget what was set for all brokers."""
        configs.change_cluster(cluster, [Change(name=name, value=None)])
        return nothing()

    @routes.post(
        "/broker-configs:alter",
        operation_id="alterKafkaClusterConfigs",
        **changing(here, *_WRITE_ERRORS),
    )
    def alter_cluster_configs(body: AlterBrokerConfigsBody | None = None) -> Response:
        """Change configs of all brokers, all or none."""
        changes, only = _altered(body)
        configs.change_cluster(cluster, changes, validate_only=only)
        return nothing()


# --- bodies ---


def _set(name: str, body: UpdateConfigBody | None) -> Change:
    if body is None:
        raise body_missing()
    return setting(name, body.value)


def _altered(body: AlterConfigsBody | None) -> tuple[list[Change], bool]:
    if body is None:
        raise body_missing()
    return _changes(body.data), bool(body.validate_only)


def _changes(entries: Iterable[ConfigChangeBody]) -> list[Change]:
    return [
        Change(name=entry.name, value=None)
        if entry.operation is AlterOperation.DELETE
        else setting(entry.name, entry.value)
        for entry in entries
    ]


def _failures(failed: Iterable[tuple[str, ProxyError]]) -> Response:
    failures = [TopicFailure(topic_name=topic, error_code=error.code, message=error.message) for topic, error in failed]
    return told(AlterTopicsConfigsFailures(failures=failures), status=207)
