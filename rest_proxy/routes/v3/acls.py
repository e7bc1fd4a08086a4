"""ACLs in API v3: `/v3/clusters/{cluster_id}/acls`, and `acls:batch`.

A batch is answered with 204, as Confluent's server does, though its documents say 201. A cluster without an authorizer
has no ACLs and takes none: 400, error code 40002.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BeforeValidator

from core_broker.client.access import AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import acls
from rest_proxy.admin.cluster import KafkaCluster
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
from rest_proxy.models.v3.resources import Links
from rest_proxy.routes.v3.answers import InCluster, body_missing, in_cluster, nothing, told

_ACLS = "/v3/clusters/{cluster_id}/acls"
_ERRORS = errors(404)
_BODY_ERRORS = errors(404, 413, 415, 422)


def _known(words: type[StrEnum]) -> BeforeValidator:
    """A word in the query that is none of these is answered with 404, as Confluent's server does."""

    def check(value: str) -> str:
        if value.upper() not in words.__members__:
            raise ProxyError(404, f"{value[:80]!r} is unknown: expected one of {', '.join(words)}.")
        return value

    return BeforeValidator(check)


WantedResourceType = Annotated[AnyResourceType, _known(ResourceType)]
WantedPatternType = Annotated[AnyPatternType, _known(PatternType)]
WantedOperation = Annotated[AnyOperation, _known(Operation)]
WantedPermission = Annotated[AnyPermission, _known(Permission)]
ResourceName = Annotated[Name, Query(description="The name of the resource; empty: any.", examples=["orders"])]
Principal = Annotated[Name, Query(description="Whom the rules are about; empty: anyone.", examples=["User:alice"])]
Host = Annotated[Name, Query(description="From where; empty: any rule, whatever it says.", examples=["*"])]


def _search(
    *,
    resource_type: Annotated[WantedResourceType, Query(description="What the rules are about.")] = ResourceType.ANY,
    resource_name: ResourceName = "",
    pattern_type: Annotated[
        WantedPatternType, Query(description="How their names are meant; MATCH: all that apply to this name.")
    ] = PatternType.ANY,
    principal: Principal = "",
    host: Host = "",
    operation: Annotated[WantedOperation, Query(description="What they allow or deny.")] = Operation.ANY,
    permission: Annotated[WantedPermission, Query(description="Whether they allow or deny.")] = Permission.ANY,
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
        WantedResourceType, Query(description="What the rules are about; must be given.")
    ] = ResourceType.UNKNOWN,
    resource_name: ResourceName = "",
    pattern_type: Annotated[
        WantedPatternType, Query(description="How their names are meant; must be given. MATCH: all that apply.")
    ] = PatternType.UNKNOWN,
    principal: Principal = "",
    host: Host = "",
    operation: Annotated[
        WantedOperation, Query(description="What they allow or deny; must be given.")
    ] = Operation.UNKNOWN,
    permission: Annotated[
        WantedPermission, Query(description="Whether they allow or deny; must be given.")
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


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """ACLs over HTTP."""
    routes = APIRouter(tags=["v3 acls"], route_class=BoundedRoute)
    within = in_cluster(cluster, advertised)
    _add_reads(routes, cluster, within)
    _add_creations(routes, cluster, within)
    _add_deletions(routes, cluster, within)
    return routes


def _add_reads(routes: APIRouter, cluster: KafkaCluster, within: InCluster) -> None:
    @routes.get(_ACLS, operation_id="getKafkaAcls", response_model=AclDataList, responses=_ERRORS)
    def search_acls(
        wanted: Annotated[AclFilter, Depends(_search)], links: Annotated[Links, Depends(within)]
    ) -> Response:
        """The ACLs that a search finds; without parameters, all of them."""
        acls.check_search(wanted)
        with cluster.asked() as admin:
            found = admin.access.acls(wanted)
        return told(AclDataList(metadata=acls.metadata(wanted, links), data=acls.acl_data(found, links)))


def _add_creations(routes: APIRouter, cluster: KafkaCluster, within: InCluster) -> None:
    @routes.post(
        _ACLS,
        operation_id="createKafkaAcls",
        status_code=201,
        responses={
            **_BODY_ERRORS,
            201: {
                "description": "It is there now; `Location` says where.",
                "headers": {"Location": {"description": "Where it is found.", "schema": {"type": "string"}}},
            },
        },
        response_class=Response,
    )
    def create_acl(links: Annotated[Links, Depends(within)], body: CreateAclBody | None = None) -> Response:
        """Add an ACL; one that is there already stays."""
        if body is None:
            raise body_missing()
        rule = acls.rule(body)
        with cluster.asked() as admin:
            admin.access.create([rule])
        return Response(status_code=201, headers={"Location": acls.address(rule, links)})

    @routes.post(
        _ACLS + ":batch",
        operation_id="batchCreateKafkaAcls",
        status_code=204,
        responses={**_BODY_ERRORS, 204: {"description": "They are there now."}},
        dependencies=[Depends(within)],
    )
    def create_acls(body: CreateAclsBody | None = None) -> Response:
        """Add several ACLs; when the cluster refuses some, the others are there."""
        if body is None:
            raise body_missing()
        rules = [acls.rule(one) for one in body.data]
        with cluster.asked() as admin:
            admin.access.create(rules)
        return nothing()


def _add_deletions(routes: APIRouter, cluster: KafkaCluster, within: InCluster) -> None:
    @routes.delete(_ACLS, operation_id="deleteKafkaAcls", response_model=DeletedAcls, responses=_ERRORS)
    def delete_acls(
        wanted: Annotated[AclFilter, Depends(_deletion)], links: Annotated[Links, Depends(within)]
    ) -> Response:
        """Remove the ACLs that a search finds. What they are about must be said: ANY if all are meant."""
        acls.check_deletion(wanted)
        with cluster.asked() as admin:
            removed = admin.access.delete(wanted)
        return told(DeletedAcls(data=acls.acl_data(removed, links)))
