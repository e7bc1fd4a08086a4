"""ACLs in API v3: `/v3/clusters/{cluster_id}/acls`, and `acls:batch`.

A batch is answered with 204, as by Confluent's server, although its documentation says 201. A cluster without an
authorizer has no ACLs and refuses to create any: 400, error code 40002.
"""

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BeforeValidator

from core_broker.client.acls import AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import acls
from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.acls import (
    AclDataList,
    AnyOperation,
    AnyPatternType,
    AnyPermission,
    AnyResourceType,
    CreateAclBody,
    CreateAclsBody,
    DeletedAcls,
    Name,
)
from rest_proxy.models.v3.resources import CollectionMetadata
from rest_proxy.routes.services import CheckCluster, Cluster, ClusterLinks
from rest_proxy.routes.v3.responses import BODY_ERRORS, json_response, missing_body, reads

_ACLS = "/v3/clusters/{cluster_id}/acls"
_BODY_ERRORS = errors(*BODY_ERRORS)


def _one_of(words: type[StrEnum]) -> BeforeValidator:
    """Answer an unknown value in the query with 404, as Confluent's server does."""

    def check(value: str) -> str:
        if value.upper() not in words.__members__:
            raise ProxyError(404, f"{value[:80]!r} is unknown: expected one of {', '.join(words)}.")
        return value

    return BeforeValidator(check)


WantedResourceType = Annotated[AnyResourceType, _one_of(ResourceType)]
WantedPatternType = Annotated[AnyPatternType, _one_of(PatternType)]
WantedOperation = Annotated[AnyOperation, _one_of(Operation)]
WantedPermission = Annotated[AnyPermission, _one_of(Permission)]
ResourceName = Annotated[Name, Query(description="The name of the resource; empty: any.", examples=["orders"])]
Principal = Annotated[Name, Query(description="The principal of the ACLs; empty: any.", examples=["User:alice"])]
Host = Annotated[Name, Query(description="The host of the ACLs; empty: any.", examples=["*"])]


def _search(
    *,
    resource_type: Annotated[
        WantedResourceType, Query(description="The resource type of the ACLs.")
    ] = ResourceType.ANY,
    resource_name: ResourceName = "",
    pattern_type: Annotated[
        WantedPatternType, Query(description="Their pattern type; MATCH: all ACLs that apply to this name.")
    ] = PatternType.ANY,
    principal: Principal = "",
    host: Host = "",
    operation: Annotated[WantedOperation, Query(description="The operation that they allow or deny.")] = Operation.ANY,
    permission: Annotated[WantedPermission, Query(description="Whether they allow or deny it.")] = Permission.ANY,
) -> AclFilter:
    return AclFilter(
        resource_type=resource_type,
        resource_name=resource_name or None,
        pattern_type=pattern_type,
        principal=principal or None,
        host=host or None,
        operation=operation,
        permission=permission,
    )


def _deletion(
    *,
    resource_type: Annotated[
        WantedResourceType, Query(description="The resource type of the ACLs; must be given.")
    ] = ResourceType.UNKNOWN,
    resource_name: ResourceName = "",
    pattern_type: Annotated[
        WantedPatternType, Query(description="Their pattern type; must be given. MATCH: all ACLs that apply.")
    ] = PatternType.UNKNOWN,
    principal: Principal = "",
    host: Host = "",
    operation: Annotated[
        WantedOperation, Query(description="The operation that they allow or deny; must be given.")
    ] = Operation.UNKNOWN,
    permission: Annotated[
        WantedPermission, Query(description="Whether they allow or deny it; must be given.")
    ] = Permission.UNKNOWN,
) -> AclFilter:
    return _search(
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
    )


routes = APIRouter(tags=["v3 acls"], route_class=BoundedRoute)


@routes.get(_ACLS, **reads(AclDataList, "getKafkaAcls"))
def search_acls(wanted: Annotated[AclFilter, Depends(_search)], cluster: Cluster, links: ClusterLinks) -> Response:
    """The ACLs that match; without parameters, all of them."""
    acls.check_filter(wanted)
    with cluster.admin() as admin:
        found = admin.access.acls(wanted)
    metadata = CollectionMetadata(self=acls.address(wanted, links))
    return json_response(AclDataList(metadata=metadata, data=acls.acl_data(found, links)))


@routes.post(
    _ACLS,
    operation_id="createKafkaAcls",
    status_code=201,
    responses={
        **_BODY_ERRORS,
        201: {
            "description": "The ACL exists now; `Location` is its URL.",
            "headers": {"Location": {"description": "The URL of the ACL.", "schema": {"type": "string"}}},
        },
    },
    response_class=Response,
)
def create_acl(cluster: Cluster, links: ClusterLinks, body: CreateAclBody | None = None) -> Response:
    """Create an ACL; one that exists already stays as it is."""
    if body is None:
        raise missing_body()
    rule = acls.rule(body)
    with cluster.admin() as admin:
        admin.access.create([rule])
    return Response(status_code=201, headers={"Location": acls.address(rule, links)})


@routes.post(
    _ACLS + ":batch",
    operation_id="batchCreateKafkaAcls",
    status_code=204,
    responses={**_BODY_ERRORS, 204: {"description": "The ACLs exist now."}},
    dependencies=[CheckCluster],
    response_class=Response,
)
def create_acls(cluster: Cluster, body: CreateAclsBody | None = None) -> None:
    """Create several ACLs; if the cluster refuses some, the others are created all the same."""
    if body is None:
        raise missing_body()
    rules = [acls.rule(one) for one in body.data]
    with cluster.admin() as admin:
        admin.access.create(rules)


@routes.delete(_ACLS, **reads(DeletedAcls, "deleteKafkaAcls"))
def delete_acls(wanted: Annotated[AclFilter, Depends(_deletion)], cluster: Cluster, links: ClusterLinks) -> Response:
    """Delete the ACLs that match. Types, operation and permission must be given: ANY for all of them."""
    acls.check_filter(wanted, is_deletion=True)
    with cluster.admin() as admin:
        removed = admin.access.delete(wanted)
    return json_response(DeletedAcls(data=acls.acl_data(removed, links)))
