"""DeleteAcls, key 31, versions 1-3. There is no authorizer yet: returns SECURITY_DISABLED, as Kafka does."""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.describe_acls import NO_AUTHORIZER
from core_broker.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:  # noqa: ARG001 - every handler has this shape
    """Reject each filter."""
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.filters]
    )
