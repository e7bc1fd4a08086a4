"""DeleteAcls, key 31, versions 1-3: removes the ACLs that filters accept; an error of one does not stop the others.

Supported: every filter. An ACL that two filters accept is in the results of both.
Ignored: nothing. Without an authorizer the response is SECURITY_DISABLED, as in Kafka. A filter with the number 0 is
not a request at all, and closes the connection.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 resources of type USER (KIP-373).
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.describe_acls import NO_AUTHORIZER, check_numbers, filter_of
from core_broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from core_broker.security.acls import AclEntry


def check(request: DeleteAclsRequest) -> None:
    """Raise DecodeError for a filter with the number 0."""
    for each in request.filters:
        check_numbers(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Delete what each filter accepts."""
    if context.services.authorizer is None:
        raise BrokerError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    outcomes = await context.services.controller.delete_acls([filter_of(each) for each in request.filters])
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(outcome.code, outcome.message)
            if isinstance(outcome, BrokerError)
            else DeleteAclsFilterResult(error_message=None, matching_acls=[_deleted(entry) for entry in outcome])
            for outcome in outcomes
        ]
    )


def _deleted(entry: AclEntry) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=entry.kind,
        resource_name=entry.name,
        pattern_type=entry.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
