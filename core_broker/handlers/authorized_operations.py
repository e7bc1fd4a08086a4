"""Authorized operations as bit sets (KIP-430): what the client may do with a topic, a group or the cluster."""

from typing import Final

from core_broker.handlers.context import RequestContext
from core_broker.security.operations import CLUSTER_NAME, Operation, ResourceType

NOT_ASKED: Final = -(2**31)
"""The value in a response if the client did not request the operations."""


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
GROUP_OPERATIONS: Final = _bits(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS: Final = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)


def topic_operations(context: RequestContext, name: str) -> int:
    """What the client may do with a topic."""
    return _allowed(context, ResourceType.TOPIC, name, TOPIC_OPERATIONS)


def group_operations(context: RequestContext, name: str) -> int:
    """What the client may do with a group."""
    return _allowed(context, ResourceType.GROUP, name, GROUP_OPERATIONS)


def cluster_operations(context: RequestContext) -> int:
    """What the client may do with the cluster; nothing unless it may describe it."""
    allowed = _allowed(context, ResourceType.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS)
    return allowed if allowed & _bits(Operation.DESCRIBE) else 0


def _allowed(context: RequestContext, kind: ResourceType, name: str, operations: int) -> int:
    authorizer, session = context.authorizer, context.session
    if authorizer is None:
        return operations
    return _bits(
        *(
            operation
            for operation in Operation
            if operations & _bits(operation)
            and authorizer.allows(session.principal, session.host, operation, kind, name, is_logged=False)
        )
    )
