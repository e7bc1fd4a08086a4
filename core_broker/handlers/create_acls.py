"""CreateAcls, key 30, versions 1-3: adds ACLs; an error of one does not stop the others.

Supported: everything Kafka accepts. An ACL that exists already is a success. All new ones become valid at once.
Ignored: nothing. Without an authorizer the response is SECURITY_DISABLED, as in Kafka. An ACL with the number 0 is not
a request at all, and closes the connection.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 resources of type USER (KIP-373).
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.describe_acls import NO_AUTHORIZER, check_numbers
from core_broker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from core_broker.security.acls import AclEntry


def check(request: CreateAclsRequest) -> None:
    """Raise DecodeError for an ACL with the number 0."""
    for acl in request.creations:
        check_numbers(acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type)


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Create each ACL."""
    if context.services.authorizer is None:
        raise BrokerError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    outcomes = await context.services.controller.create_acls([_entry(acl) for acl in request.creations])
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_message=None) if error is None else AclCreationResult(error.code, error.message)
            for error in outcomes
        ]
    )


def _entry(acl: AclCreation) -> AclEntry:
    return AclEntry(
        acl.resource_type,
        acl.resource_name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
