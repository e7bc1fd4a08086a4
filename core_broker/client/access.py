"""Who may do what: the ACLs of a cluster that has an authorizer.

The enums have Kafka's own words and numbers. confluent-kafka calls the cluster a broker and knows no delegation tokens;
what it has no word for is refused before anything is sent.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)
from confluent_kafka.admin import ResourceType as LibraryResourceType

from core_broker.client.direct import DirectAdmin
from core_broker.client.errors import ClientError, Rejected, mapped
from core_broker.client.models import Broker

_NAME_BYTES_MAX = 32_767
"""Longest text that the protocol can carry."""


class ResourceType(StrEnum):
    """What an ACL is about."""

    UNKNOWN = "UNKNOWN"
    ANY = "ANY"
    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"


class PatternType(StrEnum):
    """How the name of an ACL's resource is meant."""

    UNKNOWN = "UNKNOWN"
    ANY = "ANY"
    MATCH = "MATCH"
    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class Operation(StrEnum):
    """What an ACL allows or denies."""

    UNKNOWN = "UNKNOWN"
    ANY = "ANY"
    ALL = "ALL"
    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"


class Permission(StrEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = "UNKNOWN"
    ANY = "ANY"
    DENY = "DENY"
    ALLOW = "ALLOW"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """One rule."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Which rules are meant; ANY and None mean all of them."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY


class Access:
    """Asks and changes the ACLs of a cluster; every call may raise a ClientError, Rejected without an authorizer."""

    def __init__(
        self,
        client: AdminClient,
        direct: DirectAdmin,
        *,
        wait: Callable[["Future[Any]"], Any],
        timeout_seconds: float,
    ) -> None:
        self._client = client
        self._direct = direct
        self._wait = wait
        self._timeout = timeout_seconds

    def acls(self, wanted: AclFilter) -> list[Acl]:
        """The rules that a filter finds, sorted."""
        with mapped():
            future = self._client.describe_acls(filter_of(wanted), request_timeout=self._timeout)
        found = self._wait(future)
        if not found:
            self._check_answer()
        return _sorted(found)

    def create(self, acls: Sequence[Acl]) -> None:
        """Add rules; those that the cluster takes stay when it refuses others."""
        with mapped():
            bindings = [binding_of(acl) for acl in dict.fromkeys(acls)]
            futures = self._client.create_acls(bindings, request_timeout=self._timeout) if bindings else {}
        failures = [failure for future in futures.values() if (failure := self._failure(future))]
        if failures:
            raise failures[0]

    def delete(self, wanted: AclFilter) -> list[Acl]:
        """Remove the rules that a filter finds; gives those that were removed, sorted."""
        with mapped():
            futures = self._client.delete_acls([filter_of(wanted)], request_timeout=self._timeout)
        (future,) = futures.values()
        return _sorted(self._wait(future))

    def _check_answer(self) -> None:
        """Tell a cluster without rules from one that refused to answer: the library drops the error of DescribeAcls.

        Where a connection of our own cannot be made (the mechanism is neither PLAIN nor SCRAM), there are no rules.
        """
        cluster = self._wait(self._client.describe_cluster(request_timeout=self._timeout))
        asked = cluster.controller or cluster.nodes[0]
        try:
            self._direct.check_acls(Broker(id=asked.id, host=asked.host, port=asked.port))
        except Rejected as error:
            if error.code != KafkaError.UNKNOWN:
                raise

    def _failure(self, future: "Future[Any]") -> ClientError | None:
        try:
            self._wait(future)
        except ClientError as error:
            return error
        return None


# --- in the library's words ---


def binding_of(acl: Acl) -> AclBinding:
    """A rule as the library takes it."""
    _check_names(acl.resource_name, acl.principal, acl.host)
    return AclBinding(
        _library_resource_type(acl.resource_type),
        acl.resource_name,
        ResourcePatternType[acl.pattern_type],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )


def filter_of(wanted: AclFilter) -> AclBindingFilter:
    """A filter as the library takes it."""
    _check_names(wanted.resource_name, wanted.principal, wanted.host)
    return AclBindingFilter(
        _library_resource_type(wanted.resource_type),
        wanted.resource_name,  # type: ignore[arg-type]  # None is any name; its signature forgets this
        ResourcePatternType[wanted.pattern_type],
        wanted.principal,  # type: ignore[arg-type]  # the same
        wanted.host,  # type: ignore[arg-type]  # the same
        AclOperation[wanted.operation],
        AclPermissionType[wanted.permission],
    )


def acl_of(binding: Any) -> Acl:
    """What the library found, as a rule."""
    is_cluster = binding.restype is LibraryResourceType.BROKER
    return Acl(
        resource_type=ResourceType.CLUSTER if is_cluster else ResourceType(binding.restype.name),
        resource_name=binding.name,
        pattern_type=PatternType(binding.resource_pattern_type.name),
        principal=binding.principal,
        host=binding.host,
        operation=Operation(binding.operation.name),
        permission=Permission(binding.permission_type.name),
    )


def _library_resource_type(resource_type: ResourceType) -> LibraryResourceType:
    if resource_type is ResourceType.CLUSTER:
        return LibraryResourceType.BROKER
    if resource_type is ResourceType.DELEGATION_TOKEN:
        raise Rejected("ACLs of delegation tokens cannot be seen or changed: the Kafka client has no word for them")
    return LibraryResourceType[resource_type]


def _check_names(*names: str | None) -> None:
    """The library cuts names at NUL, so that others are meant, and writes long ones in a way that none can read."""
    for name in names:
        if name is not None and "\0" in name:
            raise Rejected("A name has the character NUL in it, which names in ACLs cannot have")
        if name is not None and len(name.encode()) > _NAME_BYTES_MAX:
            raise Rejected(f"A name in an ACL has at most {_NAME_BYTES_MAX} bytes, and one here has more")


def _sorted(bindings: Iterable[Any]) -> list[Acl]:
    return sorted((acl_of(binding) for binding in bindings), key=_rank)


def _rank(acl: Acl) -> tuple[int, str, int, str, str, int, int]:
    """Enums sort by their place in Kafka's lists, names by their letters."""
    return (
        list(ResourceType).index(acl.resource_type),
        acl.resource_name,
        list(PatternType).index(acl.pattern_type),
        acl.principal,
        acl.host,
        list(Operation).index(acl.operation),
        list(Permission).index(acl.permission),
    )
