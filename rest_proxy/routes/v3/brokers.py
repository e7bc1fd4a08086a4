"""`/v3/clusters/{cluster_id}/brokers`: brokers and their replicas."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import brokers
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.brokers import BrokerData, BrokerDataList
from rest_proxy.models.v3.partitions import ReplicaData, ReplicaDataList
from rest_proxy.models.v3.resources import Links
from rest_proxy.routes.parameters import BrokerId
from rest_proxy.routes.v3.responses import collection_response, json_response, links_dependency


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """The routes, answering for one cluster."""
    routes = APIRouter(prefix="/v3/clusters/{cluster_id}/brokers", tags=["v3 brokers"], route_class=BoundedRoute)
    get_links = links_dependency(cluster, advertised)

    @routes.get("", response_model=BrokerDataList, responses=errors(404), operation_id="listKafkaBrokers")
    def list_brokers(links: Annotated[Links, Depends(get_links)]) -> Response:
        """The brokers of the cluster."""
        data = [BrokerData.of(broker, links) for broker in brokers.list_all(cluster)]
        return json_response(BrokerDataList(metadata=links.collection("brokers"), data=data))

    @routes.get("/{broker_id}", response_model=BrokerData, responses=errors(404), operation_id="getKafkaBroker")
    def get_broker(broker_id: BrokerId, links: Annotated[Links, Depends(get_links)]) -> Response:
        """A broker and its address."""
        return json_response(BrokerData.of(brokers.get(cluster, broker_id), links))

    @routes.get(
        "/{broker_id}/partition-replicas",
        response_model=ReplicaDataList,
        responses=errors(404),
        operation_id="listKafkaReplicasOfBroker",
    )
    def list_replicas_of_broker(broker_id: BrokerId, links: Annotated[Links, Depends(get_links)]) -> Response:
        """The replicas on a broker, by topic and partition."""
        held = brokers.replicas_on(cluster, broker_id)
        data = (ReplicaData.of(topic, partition, broker_id, links) for topic, partition in held)
        metadata = links.collection("brokers", broker_id, "partition-replicas")
        return collection_response(ReplicaDataList(metadata=metadata, data=[]), data)

    return routes
