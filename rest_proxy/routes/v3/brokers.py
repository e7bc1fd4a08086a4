"""`/v3/clusters/{cluster_id}/brokers`: brokers and their replicas."""

from fastapi import APIRouter, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import partitions
from rest_proxy.models.v3.clusters import BrokerData, BrokerDataList
from rest_proxy.models.v3.partitions import ReplicaData, ReplicaDataList
from rest_proxy.routes.parameters import BrokerId
from rest_proxy.routes.services import Cluster, ClusterLinks
from rest_proxy.routes.v3.responses import collection_response, json_response, reads

routes = APIRouter(prefix="/v3/clusters/{cluster_id}/brokers", tags=["v3 brokers"], route_class=BoundedRoute)


@routes.get("", **reads(BrokerDataList, "listKafkaBrokers"))
def list_brokers(cluster: Cluster, links: ClusterLinks) -> Response:
    """The brokers of the cluster."""
    data = [BrokerData.of(broker, links) for broker in cluster.brokers()]
    return json_response(BrokerDataList(metadata=links.collection("brokers"), data=data))


@routes.get("/{broker_id}", **reads(BrokerData, "getKafkaBroker"))
def get_broker(broker_id: BrokerId, cluster: Cluster, links: ClusterLinks) -> Response:
    """A broker and its address."""
    return json_response(BrokerData.of(cluster.broker(broker_id), links))


@routes.get("/{broker_id}/partition-replicas", **reads(ReplicaDataList, "listKafkaReplicasOfBroker"))
def list_replicas_of_broker(broker_id: BrokerId, cluster: Cluster, links: ClusterLinks) -> Response:
    """The replicas on a broker, by topic and partition."""
    held = partitions.on_broker(cluster, broker_id)
    data = (ReplicaData.of(topic, partition, broker_id, links) for topic, partition in held)
    metadata = links.collection("brokers", broker_id, "partition-replicas")
    return collection_response(ReplicaDataList(metadata=metadata, data=[]), data)
