"""DescribeAcls, key 29, versions 1-3: the ACLs that a filter accepts, from this node's copy of the metadata.

Supported: every filter, also MATCH, which finds all ACLs that affect a name.
Ignored: nothing. Without an authorizer the response is SECURITY_DISABLED, as in Kafka. A filter with the number 0 is
not a request at all, and closes the connection.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 resources of type USER (KIP-373).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.delete_acls import DeleteAclsFilter
from core_broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from core_broker.protocol.primitives import DecodeError
from core_broker.security.acls import AclEntry, AclFilter

NO_AUTHORIZER: Final = "No authorizer is configured on this broker: everything is allowed, and there are no ACLs."

_Resource = tuple[int, str, int]
"""Type and name of a resource, and how the name is compared."""


def check(request: DescribeAclsRequest) -> None:
    """Raise DecodeError for a filter with the number 0."""
    check_numbers(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)


def check_numbers(*numbers: int) -> None:
    """Raise DecodeError if one of the numbers of an ACL or a filter is 0, which Kafka does not accept."""
    if 0 in numbers:
        raise DecodeError("resource type, pattern type, operation and permission type must not be 0")


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Describe the ACLs by resource."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    by_resource = _by_resource(authorizer.find(filter_of(request)))
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(
                *resource, [AclDescription(e.principal, e.host, e.operation, e.permission) for e in entries]
            )
            for resource, entries in by_resource.items()
        ],
    )


def filter_of(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """The filter in a request."""
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )


def _by_resource(entries: Iterable[AclEntry]) -> Mapping[_Resource, list[AclEntry]]:
    found: dict[_Resource, list[AclEntry]] = {}
    for entry in entries:
        found.setdefault((entry.kind, entry.name, entry.pattern), []).append(entry)
    return found
