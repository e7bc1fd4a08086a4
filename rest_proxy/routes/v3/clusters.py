"""`/v3/clusters`: the cluster behind this proxy."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.clusters import ClusterData, ClusterDataList
from rest_proxy.models.v3.resources import CollectionMetadata, Links
from rest_proxy.routes.addresses import base_url
from rest_proxy.routes.v3.responses import json_response, links_dependency


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """The routes, answering for one cluster."""
    routes = APIRouter(prefix="/v3/clusters", tags=["v3 clusters"], route_class=BoundedRoute)
    get_links = links_dependency(cluster, advertised)

    @routes.get("", response_model=ClusterDataList, responses=errors(), operation_id="listKafkaClusters")
    def list_clusters(request: Request) -> Response:
        """The clusters behind this proxy: there is exactly one."""
        found = cluster.describe()
        base = base_url(request, advertised)
        links = Links(base=base, cluster_id=found.cluster_id)
        metadata = CollectionMetadata(self=f"{base}/v3/clusters")
        return json_response(ClusterDataList(metadata=metadata, data=[ClusterData.of(found.controller_id, links)]))

    @routes.get("/{cluster_id}", response_model=ClusterData, responses=errors(404), operation_id="getKafkaCluster")
    def get_cluster(links: Annotated[Links, Depends(get_links)]) -> Response:
        """The cluster with this id."""
        return json_response(ClusterData.of(cluster.describe().controller_id, links))

    return routes
