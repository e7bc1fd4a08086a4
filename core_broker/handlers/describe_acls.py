"""DescribeAcls, key 29, versions 1-3. There is no authorizer yet: returns SECURITY_DISABLED, as Kafka does."""

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER = "No authorizer is configured on this broker: everything is allowed, and there are no ACLs."


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:  # noqa: ARG001 - every handler has this shape
    """Reject the request."""
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
