"""What the routes of API v3 share: the check of the cluster's id, and responses."""

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

GetLinks = Callable[[Request, str], Links]
"""The dependency of routes under `/v3/clusters/{cluster_id}`; raises 404 unless it is the id of the cluster."""


def links_dependency(cluster: KafkaCluster, advertised: Sequence[str]) -> GetLinks:
    """A dependency that checks the cluster's id and returns its links: `links: Links = Depends(...)`."""

    def links(request: Request, cluster_id: ClusterId) -> Links:
        cluster.check(cluster_id)
        return Links(base=base_url(request, advertised), cluster_id=cluster_id)

    return links


def write_options(get_links: GetLinks, *statuses: int) -> dict[str, Any]:
    """Options for routes that change something and return no body; `statuses` are their errors."""
    return {
        "status_code": 204,
        "response_class": Response,
        "responses": errors(*statuses),
        "dependencies": [Depends(get_links)],
    }


def json_response(model: BaseModel, *, status: int = 200) -> Response:
    """A JSON response, encoded on the calling thread: long ones would block the event loop."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")


def collection_response(collection: ResourceCollection, data: Iterable[BaseModel]) -> Response:
    """A collection that may be very long, encoded item by item, so that other threads get their turn."""
    before, after = collection.model_dump_json().split('"data":[]', 1)
    items = ",".join(item.model_dump_json() for item in data)
    return Response(f'{before}"data":[{items}]{after}', media_type="application/json")


def no_content() -> Response:
    """A response without a body."""
    return Response(status_code=204)


def missing_body() -> ProxyError:
    """The error for a request that needs a body and has none."""
    return ProxyError(42206, "Payload error. Null input provided. Data is required.")
