"""CreateAcls, key 30, versions 1-3. There is no authorizer yet: returns SECURITY_DISABLED, as Kafka does."""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.describe_acls import NO_AUTHORIZER
from core_broker.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:  # noqa: ARG001 - every handler has this shape
    """Reject each ACL."""
    return CreateAclsResponse(
        results=[AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.creations]
    )
