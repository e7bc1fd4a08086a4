"""The services that routes use for their callers, as types for their signatures; the composition root puts what they
come from into `app.state`."""

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Request

from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.callers.clients import Clients
from rest_proxy.callers.pool import ClientPool
from rest_proxy.consume.instances.of_caller import CallerInstances
from rest_proxy.models.v3.resources import Links
from rest_proxy.routes.parameters import ClusterId
from rest_proxy.routes.reading import Reading

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(:[0-9]{1,5})?")


def _clients(request: Request) -> Clients:
    """Those of the caller, or else of the proxy itself; raises ProxyError."""
    pool: ClientPool = request.app.state.clients
    return pool.of(request.scope)


async def _cluster(request: Request) -> KafkaCluster:
    return _clients(request).cluster


async def _instances(request: Request) -> CallerInstances:
    return _clients(request).instances


async def _reading(request: Request) -> Reading:
    reading: Reading = request.app.state.reading
    return reading.by(_clients(request))


Cluster = Annotated[KafkaCluster, Depends(_cluster)]
ConsumerInstances = Annotated[CallerInstances, Depends(_instances)]
RecordReading = Annotated[Reading, Depends(_reading)]


def own_url(request: Request) -> str:
    """Where clients reach this proxy, such as `http://localhost:8082`."""
    return base_url(request, request.app.state.advertised)


def base_url(request: Request, advertised: Sequence[str]) -> str:
    """Such as `http://localhost:8082`: the advertised listener for the request's scheme, or else the request's host."""
    scheme = request.scope["scheme"]
    for listener in advertised:
        if listener.startswith(f"{scheme}://"):
            return listener.rstrip("/")
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        address, port = request.scope.get("server") or ("localhost", None)
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return f"{scheme}://{host}"


def _links(request: Request, cluster: Cluster, cluster_id: ClusterId) -> Links:
    """Links of the cluster; raises 404 unless it has this id."""
    cluster.check(cluster_id)
    return Links(base=own_url(request), cluster_id=cluster_id)


CheckCluster = Depends(_links)
"""For routes under `/v3/clusters/{cluster_id}` that need no links."""
ClusterLinks = Annotated[Links, CheckCluster]
