"""How routes of API v3 know where they are, and how they answer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fastapi import Depends, Request, Response
from pydantic import BaseModel

from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.resources import Links, ResourceCollection
from rest_proxy.routes.addresses import base_url
from rest_proxy.routes.parameters import ClusterId

InCluster = Callable[[Request, str], Links]
"""The dependency of routes under `/v3/clusters/{cluster_id}`; raises 404 for any cluster but the one that is there."""


def in_cluster(cluster: KafkaCluster, advertised: Sequence[str]) -> InCluster:
    """The addresses of a cluster's resources, once the cluster is found: `links: Links = Depends(...)`."""

    def links(request: Request, cluster_id: ClusterId) -> Links:
        cluster.check(cluster_id)
        return Links(base=base_url(request, advertised), cluster_id=cluster_id)

    return links


def changing(here: InCluster, *statuses: int) -> dict[str, Any]:
    """What routes have in common that change something in a cluster and tell nothing; `statuses` are their errors."""
    return {
        "status_code": 204,
        "response_class": Response,
        "responses": errors(*statuses),
        "dependencies": [Depends(here)],
    }


def told(model: BaseModel, *, status: int = 200) -> Response:
    """A body, written on the thread that made it: the event loop has no time for long ones."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")


def told_in_parts(collection: ResourceCollection, data: Iterable[BaseModel]) -> Response:
    """A collection that may be very long: item by item, so that other threads get their turn."""
    before, after = collection.model_dump_json().split('"data":[]', 1)
    items = ",".join(item.model_dump_json() for item in data)
    return Response(f'{before}"data":[{items}]{after}', media_type="application/json")


def nothing() -> Response:
    """Done, and there is nothing to tell."""
    return Response(status_code=204)


def body_missing() -> ProxyError:
    """The request needs a body and has none."""
    return ProxyError(42206, "Payload error. Null input provided. Data is required.")
