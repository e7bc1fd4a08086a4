"""DescribeClientQuotas, key 48, versions 0-1: the quotas of users, client ids and addresses (KIP-546).

Supported: all filters, strict or not.
Ignored: nothing.

Versions: 1 flexible.
"""

from core_broker.cluster.controller.client_quotas import describe_quotas
from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


def handle(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
    """List the quotas that pass the filter."""
    try:
        entries = describe_quotas(request, context.services.metadata.image.carried)
    except BrokerError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    return DescribeClientQuotasResponse(error_message=None, entries=entries)
