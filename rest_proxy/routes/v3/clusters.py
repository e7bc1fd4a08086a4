"""`/v3/clusters`: the cluster behind this proxy."""

from fastapi import APIRouter, Request, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.clusters import ClusterData, ClusterDataList
from rest_proxy.models.v3.resources import CollectionMetadata, Links
from rest_proxy.routes.services import Cluster, ClusterLinks, own_url
from rest_proxy.routes.v3.responses import json_response, reads

routes = APIRouter(prefix="/v3/clusters", tags=["v3 clusters"], route_class=BoundedRoute)


@routes.get("", response_model=ClusterDataList, responses=errors(), operation_id="listKafkaClusters")
def list_clusters(request: Request, cluster: Cluster) -> Response:
    """The clusters behind this proxy: there is exactly one."""
    found = cluster.describe()
    base = own_url(request)
    links = Links(base=base, cluster_id=found.cluster_id)
    metadata = CollectionMetadata(self=f"{base}/v3/clusters")
    return json_response(ClusterDataList(metadata=metadata, data=[ClusterData.of(found.controller_id, links)]))


@routes.get("/{cluster_id}", **reads(ClusterData, "getKafkaCluster"))
def get_cluster(cluster: Cluster, links: ClusterLinks) -> Response:
    """The cluster with this id."""
    return json_response(ClusterData.of(cluster.describe().controller_id, links))
