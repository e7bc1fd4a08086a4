"""Configs of topics, of brokers and of the whole cluster in API v3."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import configs
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.admin.configs import Change, find, set_value
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
from rest_proxy.routes.v3.responses import (
    GetLinks,
    collection_response,
    json_response,
    links_dependency,
    missing_body,
    no_content,
    write_options,
)

_WRITE_ERRORS = (404, 413, 415, 422)


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """The routes, answering for one cluster."""
    routes = APIRouter(prefix="/v3/clusters/{cluster_id}", tags=["v3 configs"], route_class=BoundedRoute)
    get_links = links_dependency(cluster, advertised)
    # `-` in place of a name or number means all of them, so these routes come before those with a name.
    _add_all_topics(routes, cluster, get_links)
    _add_topic_reading(routes, cluster, get_links)
    _add_topic_writing(routes, cluster, get_links)
    _add_broker_reading(routes, cluster, get_links)
    _add_broker_writing(routes, cluster, get_links)
    _add_cluster_reading(routes, cluster, get_links)
    _add_cluster_writing(routes, cluster, get_links)
    return routes


# --- topics ---


def _add_all_topics(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.get(
        "/topics/-/configs",
        response_model=TopicConfigDataList,
        responses=errors(404),
        operation_id="listKafkaConfigsOfTopics",
    )
    def list_configs_of_topics(links: Annotated[Links, Depends(get_links)]) -> Response:
        """The configs of every topic."""
        found = configs.of_all_topics(cluster).items()
        data = (topic_config(topic, config, links) for topic, of_topic in found for config in of_topic)
        return collection_response(
            TopicConfigDataList(metadata=links.collection("topics", "-", "configs"), data=[]), data
        )

    @routes.post(
        "/topics/-/configs:alter",
        status_code=204,
        response_class=Response,
        responses={
            207: {"model": AlterTopicsConfigsFailures, "description": "Some topics could not be changed."},
            **errors(*_WRITE_ERRORS),
        },
        dependencies=[Depends(get_links)],
        operation_id="alterKafkaConfigsOfTopics",
    )
    def alter_configs_of_topics(body: AlterTopicsConfigsBody | None = None) -> Response:
        """Change configs of several topics; a failure of one does not affect the others."""
        if body is None:
            raise missing_body()
        wanted = {topic.topic_name: _changes(topic.configs) for topic in body.data}
        failed = configs.change_topics(cluster, wanted, validate_only=bool(body.validate_only)) if wanted else {}
        if not failed:
            return no_content()
        failures = [
            TopicFailure(topic_name=topic, error_code=error.code, message=error.message)
            for topic, error in failed.items()
        ]
        return json_response(AlterTopicsConfigsFailures(failures=failures), status=207)


def _add_topic_reading(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.get(
        "/topics/{topic_name}/configs",
        response_model=TopicConfigDataList,
        responses=errors(404),
        operation_id="listKafkaTopicConfigs",
    )
    def list_topic_configs(topic_name: TopicName, links: Annotated[Links, Depends(get_links)]) -> Response:
        """The configs of a topic."""
        data = [topic_config(topic_name, config, links) for config in configs.of_topic(cluster, topic_name)]
        return json_response(TopicConfigDataList(metadata=links.collection("topics", topic_name, "configs"), data=data))

    @routes.get(
        "/topics/{topic_name}/default-configs",
        response_model=TopicConfigDataList,
        responses=errors(404),
        operation_id="listKafkaDefaultTopicConfigs",
    )
    def list_default_topic_configs(topic_name: TopicName, links: Annotated[Links, Depends(get_links)]) -> Response:
        """The configs that a topic would have if it were created now."""
        data = [topic_config(topic_name, config, links) for config in configs.of_new_topic(cluster, topic_name)]
        metadata = links.collection("topics", topic_name, "default-configs")
        return json_response(TopicConfigDataList(metadata=metadata, data=data))

    @routes.get(
        "/topics/{topic_name}/configs/{name}",
        response_model=TopicConfigData,
        responses=errors(404),
        operation_id="getKafkaTopicConfig",
    )
    def get_topic_config(
        topic_name: TopicName, name: ConfigName, links: Annotated[Links, Depends(get_links)]
    ) -> Response:
        """One config of a topic."""
        return json_response(topic_config(topic_name, find(configs.of_topic(cluster, topic_name), name), links))


def _add_topic_writing(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.put(
        "/topics/{topic_name}/configs/{name}",
        operation_id="updateKafkaTopicConfig",
        **write_options(get_links, *_WRITE_ERRORS),
    )
    def update_topic_config(topic_name: TopicName, name: ConfigName, body: UpdateConfigBody | None = None) -> Response:
        """Set one config of a topic."""
        configs.change_topic(cluster, topic_name, [_set_change(name, body)])
        return no_content()

    @routes.delete(
        "/topics/{topic_name}/configs/{name}",
        operation_id="resetKafkaTopicConfig",
        **write_options(get_links, 404),
    )
    def reset_topic_config(topic_name: TopicName, name: ConfigName) -> Response:
        """Reset one config of a topic to its default."""
        configs.change_topic(cluster, topic_name, [Change(name=name, value=None)])
        return no_content()

    @routes.post(
        "/topics/{topic_name}/configs:alter",
        operation_id="alterKafkaTopicConfigs",
        **write_options(get_links, *_WRITE_ERRORS),
    )
    def alter_topic_configs(topic_name: TopicName, body: AlterConfigsBody | None = None) -> Response:
        """Change configs of a topic, all or none."""
        changes, validate_only = _get_changes(body)
        configs.change_topic(cluster, topic_name, changes, validate_only=validate_only)
        return no_content()


# --- brokers ---


def _add_broker_reading(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.get(
        "/brokers/-/configs",
        response_model=BrokerConfigDataList,
        responses=errors(404),
        operation_id="listKafkaConfigsOfBrokers",
    )
    def list_configs_of_brokers(links: Annotated[Links, Depends(get_links)]) -> Response:
        """The configs of every broker."""
        found = configs.of_all_brokers(cluster).items()
        data = [broker_config(broker_id, config, links) for broker_id, of_broker in found for config in of_broker]
        return json_response(BrokerConfigDataList(metadata=links.collection("brokers", "-", "configs"), data=data))

    @routes.get(
        "/brokers/{broker_id}/configs",
        response_model=BrokerConfigDataList,
        responses=errors(404),
        operation_id="listKafkaBrokerConfigs",
    )
    def list_broker_configs(broker_id: BrokerId, links: Annotated[Links, Depends(get_links)]) -> Response:
        """The configs of a broker."""
        data = [broker_config(broker_id, config, links) for config in configs.of_broker(cluster, broker_id)]
        return json_response(
            BrokerConfigDataList(metadata=links.collection("brokers", broker_id, "configs"), data=data)
        )

    @routes.get(
        "/brokers/{broker_id}/configs/{name}",
        response_model=BrokerConfigData,
        responses=errors(404),
        operation_id="getKafkaBrokerConfig",
    )
    def get_broker_config(
        broker_id: BrokerId, name: BrokerConfigName, links: Annotated[Links, Depends(get_links)]
    ) -> Response:
        """One config of a broker."""
        return json_response(broker_config(broker_id, find(configs.of_broker(cluster, broker_id), name), links))


def _add_broker_writing(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.put(
        "/brokers/{broker_id}/configs/{name}",
        operation_id="updateKafkaBrokerConfig",
        **write_options(get_links, *_WRITE_ERRORS),
    )
    def update_broker_config(
        broker_id: BrokerId, name: BrokerConfigName, body: UpdateBrokerConfigBody | None = None
    ) -> Response:
        """Set one config of a broker."""
        configs.change_broker(cluster, broker_id, [_set_change(name, body)])
        return no_content()

    @routes.delete(
        "/brokers/{broker_id}/configs/{name}",
        operation_id="resetKafkaBrokerConfig",
        **write_options(get_links, 404),
    )
    def reset_broker_config(broker_id: BrokerId, name: BrokerConfigName) -> Response:
        """Reset one config of a broker to its default."""
        configs.change_broker(cluster, broker_id, [Change(name=name, value=None)])
        return no_content()

    @routes.post(
        "/brokers/{broker_id}/configs:alter",
        operation_id="alterKafkaBrokerConfigs",
        **write_options(get_links, *_WRITE_ERRORS),
    )
    def alter_broker_configs(broker_id: BrokerId, body: AlterBrokerConfigsBody | None = None) -> Response:
        """Change configs of a broker, all or none."""
        changes, validate_only = _get_changes(body)
        configs.change_broker(cluster, broker_id, changes, validate_only=validate_only)
        return no_content()


# --- the whole cluster ---


def _add_cluster_reading(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.get(
        "/broker-configs",
        response_model=ClusterConfigDataList,
        responses=errors(404),
        operation_id="listKafkaClusterConfigs",
    )
    def list_cluster_configs(links: Annotated[Links, Depends(get_links)]) -> Response:
        """The configs that are set for all brokers."""
        data = [cluster_config(config, links) for config in configs.of_cluster(cluster)]
        return json_response(ClusterConfigDataList(metadata=links.collection("broker-configs"), data=data))

    @routes.get(
        "/broker-configs/{name}",
        response_model=ClusterConfigData,
        responses=errors(404),
        operation_id="getKafkaClusterConfig",
    )
    def get_cluster_config(name: BrokerConfigName, links: Annotated[Links, Depends(get_links)]) -> Response:
        """One config that is set for all brokers."""
        return json_response(cluster_config(find(configs.of_cluster(cluster), name), links))


def _add_cluster_writing(routes: APIRouter, cluster: KafkaCluster, get_links: GetLinks) -> None:
    @routes.put(
        "/broker-configs/{name}",
        operation_id="updateKafkaClusterConfig",
        **write_options(get_links, *_WRITE_ERRORS),
    )
    def update_cluster_config(name: BrokerConfigName, body: UpdateBrokerConfigBody | None = None) -> Response:
        """Set one config for all brokers."""
        configs.change_cluster(cluster, [_set_change(name, body)])
        return no_content()

    @routes.delete(
        "/broker-configs/{name}",
        operation_id="resetKafkaClusterConfig",
        **write_options(get_links, 404),
    )
    def reset_cluster_config(name: BrokerConfigName) -> Response:
        """Reset one config that is set for all brokers."""
        configs.change_cluster(cluster, [Change(name=name, value=None)])
        return no_content()

    @routes.post(
        "/broker-configs:alter",
        operation_id="alterKafkaClusterConfigs",
        **write_options(get_links, *_WRITE_ERRORS),
    )
    def alter_cluster_configs(body: AlterBrokerConfigsBody | None = None) -> Response:
        """Change configs of all brokers, all or none."""
        changes, validate_only = _get_changes(body)
        configs.change_cluster(cluster, changes, validate_only=validate_only)
        return no_content()


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
