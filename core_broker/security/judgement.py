"""What the authorizer of a cluster would decide, from ACLs that a client has read: for tools that explain decisions."""

from collections.abc import Iterable
from enum import IntEnum

import msgspec

from core_broker.client.acls import Acl, Operation, ResourceType, ServiceAcl, ServiceResource
from core_broker.protocol.principals import parse_principal
from core_broker.security import operations
from core_broker.security.acls import AclEntry, PatternType, PermissionType
from core_broker.security.authorizer import Authorizer


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something is allowed, and why."""

    is_allowed: bool
    rule: Acl | ServiceAcl | None
    """The ACL that decides, if one does."""
    reason: str


class Judge:
    """Decides as brokers do that have these ACLs, super users (such as User:admin) and rule for what has no ACL.

    The registry and Connect decide in the same way about their own resources.
    """

    def __init__(
        self, acls: Iterable[Acl | ServiceAcl], *, super_users: Iterable[str] = (), allows_everyone: bool = False
    ) -> None:
        """Raises ValueError for a principal that is none."""
        self._authorizer = Authorizer(map(parse_principal, super_users), allows_everyone=allows_everyone)
        self._authorizer.load(())
        self._acls = {_entry(acl): acl for acl in acls}
        for number, entry in enumerate(self._acls):
            self._authorizer.acls.add(number.to_bytes(16), entry)

    def decide(
        self, principal: str, host: str, operation: Operation, kind: ResourceType | ServiceResource, name: str
    ) -> Judgement:
        """Whether a principal may do something from an address; raises ValueError for a principal that is none."""
        decision = self._authorizer.decide(
            parse_principal(principal), host, operations.Operation[operation], _kind(kind), name
        )
        rule = self._acls[decision.rule] if decision.rule else None
        return Judgement(is_allowed=decision.is_allowed, rule=rule, reason=decision.reason)


class _ServiceKind(IntEnum):
    """Numbers beyond those of Kafka's resources."""

    SUBJECT = 101
    REGISTRY = 102
    CONNECTOR = 111
    CONNECT = 112


def _kind(kind: ResourceType | ServiceResource) -> operations.ResourceType | IntEnum:
    return _ServiceKind[kind] if isinstance(kind, ServiceResource) else operations.ResourceType[kind]


def _entry(acl: Acl | ServiceAcl) -> AclEntry:
    kind = acl.resource_type
    return AclEntry(
        _ServiceKind[kind] if isinstance(kind, ServiceResource) else list(ResourceType).index(kind),
        acl.resource_name,
        PatternType[acl.pattern_type],
        acl.principal,
        acl.host,
        list(Operation).index(acl.operation),
        PermissionType[acl.permission],
    )
