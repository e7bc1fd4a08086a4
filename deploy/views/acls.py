"""ACLs in pleasant words: what a person types becomes rules, and rules become lines that a person reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec

from core_broker.client.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ServiceAcl,
    ServiceResource,
)

Kind = ResourceType | ServiceResource
AnyAcl = Acl | ServiceAcl
"""A rule of the cluster, or of the registry or Connect."""

CLUSTER_NAME: Final = "kafka-cluster"
EVERYONE: Final = "User:*"
ANYWHERE: Final = "*"
EVERY_NAME: Final = "*"
_OF_ONE: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
WHOLE: Final = {ServiceResource.REGISTRY: "registry", ServiceResource.CONNECT: "connect"}
"""The names of the resources of which a service has only one."""
OPERATIONS: Final[Mapping[Kind, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
    **dict.fromkeys(ServiceResource, _OF_ONE),
}
"""The operations that brokers look up for each kind of resource, as Kafka's own tool has them, and the services."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule is about: one resource, or all whose names begin with a prefix."""

    kind: Kind
    name: str
    is_prefixed: bool = False

    @property
    def pattern(self) -> PatternType:
        """How the name is compared."""
        return PatternType.PREFIXED if self.is_prefixed else PatternType.LITERAL


def parse_principal(text: str) -> str:
    """`User:alice`, also from plain `alice`; raises ValueError."""
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = "User", text
    if not kind or not name:
        raise ValueError(f"{text!r} must look like User:alice")
    return f"{kind}:{name}"


def parse_operations(text: str) -> tuple[Operation, ...]:
    """`read,write`; raises ValueError."""
    words = dict.fromkeys(word.strip().upper().replace("-", "_") for word in text.split(","))
    known = [operation for operation in Operation if operation not in (Operation.UNKNOWN, Operation.ANY)]
    for word in words:
        if word not in known:
            raise ValueError(f"{word.lower()!r} is not an operation; there are {', '.join(map(spoken, known))}")
    return tuple(Operation(word) for word in words)


def spoken(word: Operation | Kind) -> str:
    """`describe-configs`."""
    return word.lower().replace("_", "-")


def rules(
    principal: str, operations: Iterable[Operation], resources: Iterable[Resource], *, host: str, permission: Permission
) -> list[AnyAcl]:
    """A rule for each operation on each resource; raises ValueError for one that is never looked up."""
    wanted = tuple(operations)
    return [
        _rule(resource, principal, _checked(operation, resource.kind), host=host, permission=permission)
        for resource in resources
        for operation in wanted
    ]


def _rule(resource: Resource, principal: str, operation: Operation, *, host: str, permission: Permission) -> AnyAcl:
    if isinstance(resource.kind, ServiceResource):
        return ServiceAcl(
            resource_type=resource.kind,
            resource_name=resource.name,
            pattern_type=resource.pattern,
            principal=principal,
            host=host,
            operation=operation,
            permission=permission,
        )
    return Acl(
        resource_type=resource.kind,
        resource_name=resource.name,
        pattern_type=resource.pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
    )


def _checked(operation: Operation, kind: Kind) -> Operation:
    there = (Operation.ALL, *OPERATIONS[kind])
    if operation not in there:
        listed = ", ".join(map(spoken, there))
        raise ValueError(f"a {spoken(kind)} has no operation {spoken(operation)}; it has {listed}")
    return operation


def producer_rules(principal: str, resources: Sequence[Resource], *, host: str, permission: Permission) -> list[AnyAcl]:
    """What a producer needs: its topics, and transactional ids if it has any; raises ValueError without topics."""
    topics, transactions = _of(resources, ResourceType.TOPIC), _of(resources, ResourceType.TRANSACTIONAL_ID)
    if not topics:
        raise ValueError("--producer needs --topic")
    about_topics = (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
    about_transactions = (Operation.WRITE, Operation.DESCRIBE)
    return [
        *rules(principal, about_topics, topics, host=host, permission=permission),
        *rules(principal, about_transactions, transactions, host=host, permission=permission),
    ]


def consumer_rules(principal: str, resources: Sequence[Resource], *, host: str, permission: Permission) -> list[AnyAcl]:
    """What a consumer needs: its topics and its group; raises ValueError without them."""
    topics, groups = _of(resources, ResourceType.TOPIC), _of(resources, ResourceType.GROUP)
    if not topics or not groups:
        raise ValueError("--consumer needs --topic and --group")
    return [
        *rules(principal, (Operation.READ, Operation.DESCRIBE), topics, host=host, permission=permission),
        *rules(principal, (Operation.READ,), groups, host=host, permission=permission),
    ]


def _of(resources: Iterable[Resource], kind: ResourceType) -> list[Resource]:
    return [resource for resource in resources if resource.kind is kind]


def affecting(resource: Resource) -> AclFilter:
    """Every rule of a cluster that applies to a resource: its own, those of prefixes, and those for all names."""
    assert isinstance(resource.kind, ResourceType), "a cluster knows nothing of services"
    pattern = PatternType.PREFIXED if resource.is_prefixed else PatternType.MATCH
    return AclFilter(resource_type=resource.kind, resource_name=resource.name, pattern_type=pattern)


def affects(acl: ServiceAcl, resource: Resource) -> bool:
    """The same for a rule of a service."""
    if acl.resource_type is not resource.kind:
        return False
    if acl.pattern_type is PatternType.PREFIXED:
        name = acl.resource_name
        return name == resource.name if resource.is_prefixed else resource.name.startswith(name)
    return not resource.is_prefixed and acl.resource_name in (resource.name, EVERY_NAME)


def selects(
    acl: AnyAcl,
    *,
    principal: str | None,
    operations: Sequence[Operation],
    resources: Sequence[Resource],
    host: str | None,
    permission: Permission | None,
) -> bool:
    """Whether a rule is among those that a person names; what is left out accepts everything."""
    return (
        principal in (None, acl.principal)
        and (not operations or acl.operation in operations)
        and (not resources or resource_of(acl) in resources)
        and host in (None, acl.host)
        and permission in (None, acl.permission)
    )


def newly_guarded(new: Iterable[AnyAcl], existing: Sequence[AnyAcl]) -> list[str]:
    """The resources that no rule applies to yet, and the new rules would: others may lose what they can do now."""
    alone = (acl for acl in new if not any(_overlap(acl, other) for other in existing))
    return list(dict.fromkeys(describe_resource(resource_of(acl)) for acl in alone))


def _overlap(acl: AnyAcl, other: AnyAcl) -> bool:
    """Whether every resource that a rule is about has another rule already."""
    if acl.resource_type is not other.resource_type:
        return False
    if other.pattern_type is PatternType.PREFIXED:
        return acl.resource_name.startswith(other.resource_name)
    return other.resource_name == EVERY_NAME or (
        acl.pattern_type is PatternType.LITERAL and acl.resource_name == other.resource_name
    )


def resource_of(acl: AnyAcl) -> Resource:
    """What a rule is about."""
    return Resource(
        kind=acl.resource_type, name=acl.resource_name, is_prefixed=acl.pattern_type is PatternType.PREFIXED
    )


def describe_resource(resource: Resource) -> str:
    """`topic orders`, `topics orders-*`, `every topic`, `the cluster`."""
    kind = spoken(resource.kind).replace("-", " ")
    if resource.kind is ResourceType.CLUSTER:
        return "the cluster"
    if resource.kind in WHOLE:
        return "the whole registry" if resource.kind is ServiceResource.REGISTRY else "the Connect cluster"
    if resource.is_prefixed:
        return f"{kind}s {resource.name}*"
    return f"every {kind}" if resource.name == EVERY_NAME else f"{kind} {resource.name}"


def sentence(acl: AnyAcl) -> str:
    """`User:alice may read topic orders`, with the host if there is one."""
    may = "may" if acl.permission is Permission.ALLOW else "may not"
    everything = "do everything with" if acl.operation is Operation.ALL else spoken(acl.operation)
    place = "" if acl.host == ANYWHERE else f" from {acl.host}"
    principal = "everyone" if acl.principal == EVERYONE else acl.principal
    return f"{principal} {may} {everything} {describe_resource(resource_of(acl))}{place}"


def lines(acls: Iterable[AnyAcl]) -> Iterator[tuple[str, str, str, str, str]]:
    """Rules as rows: resource, principal, permission, operations and host; operations of a kind are in one row."""

    def about(acl: AnyAcl) -> tuple[str, str, str, str]:
        return describe_resource(resource_of(acl)), acl.principal, acl.permission.lower(), acl.host

    for (resource, principal, permission, host), found in groupby(acls, key=about):
        yield resource, principal, permission, ", ".join(spoken(acl.operation) for acl in found), host
