"""ACLs of a cluster that has an authorizer.

confluent-kafka calls the cluster resource BROKER and does not know delegation tokens; what it cannot express is
rejected before anything is sent.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
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

from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.client.direct import DirectAdmin
from core_broker.client.errors import ClientError, Rejected, map_errors
from core_broker.client.models import Broker

_NAME_BYTES_MAX = 32_767
"""Longest string the protocol can carry."""


class Access:
    """Reads and changes ACLs. Every call may raise a ClientError: Rejected when the cluster has no authorizer."""

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
        """The ACLs that match a filter, sorted."""
        with map_errors():
            future = self._client.describe_acls(to_library_filter(wanted), request_timeout=self._timeout)
        found = self._wait(future)
        if not found:
            self._check_not_refused()
        return _sort(found)

    def create(self, acls: Sequence[Acl]) -> None:
        """Add ACLs; those the cluster accepts stay even if it rejects others."""
        with map_errors():
            bindings = [to_library_binding(acl) for acl in dict.fromkeys(acls)]
            futures = self._client.create_acls(bindings, request_timeout=self._timeout) if bindings else {}
        failures = [failure for future in futures.values() if (failure := self._failure(future))]
        if failures:
            raise failures[0]

    def delete(self, wanted: AclFilter) -> list[Acl]:
        """Remove the ACLs that match a filter; returns the removed ones, sorted."""
        with map_errors():
            futures = self._client.delete_acls([to_library_filter(wanted)], request_timeout=self._timeout)
        (future,) = futures.values()
        return _sort(self._wait(future))

    def _check_not_refused(self) -> None:
        """Raise if an empty result was in fact a refusal: the library drops the error of DescribeAcls.

        If we cannot open our own connection (the mechanism is neither PLAIN nor SCRAM), the result counts as empty.
        """
        cluster = self._wait(self._client.describe_cluster(request_timeout=self._timeout))
        node = cluster.controller or cluster.nodes[0]
        try:
            self._direct.check_acls(Broker(id=node.id, host=node.host, port=node.port))
        except Rejected as error:
            if error.code != KafkaError.UNKNOWN:
                raise

    def _failure(self, future: "Future[Any]") -> ClientError | None:
        try:
            self._wait(future)
        except ClientError as error:
            return error
        return None


# --- conversion to and from the library's classes ---


def to_library_binding(acl: Acl) -> AclBinding:
    """Our ACL as the library's class."""
    _check_names(acl.resource_name, acl.principal, acl.host)
    return AclBinding(
        _library_resource_type(acl.resource_type),
        acl.resource_name,
        ResourcePatternType[acl.pattern_type],
        acl.principal,
        acl.host,
        _library_operation(acl.operation),
        AclPermissionType[acl.permission],
    )


def to_library_filter(wanted: AclFilter) -> AclBindingFilter:
    """Our filter as the library's class."""
    _check_names(wanted.resource_name, wanted.principal, wanted.host)
    return AclBindingFilter(
        _library_resource_type(wanted.resource_type),
        wanted.resource_name,  # type: ignore[arg-type]  # None matches any name; the stubs do not say so
        ResourcePatternType[wanted.pattern_type],
        wanted.principal,  # type: ignore[arg-type]  # the same
        wanted.host,  # type: ignore[arg-type]  # the same
        _library_operation(wanted.operation),
        AclPermissionType[wanted.permission],
    )


def from_library_binding(binding: Any) -> Acl:
    """The library's ACL as ours."""
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
    if resource_type in (ResourceType.DELEGATION_TOKEN, ResourceType.USER):
        raise Rejected("ACLs of delegation tokens are not supported by the Kafka client library")
    return LibraryResourceType[resource_type]


def _library_operation(operation: Operation) -> AclOperation:
    if operation not in AclOperation.__members__:
        raise Rejected(f"ACLs with the operation {operation} are not supported by the Kafka client library")
    return AclOperation[operation]


def _check_names(*names: str | None) -> None:
    """The library cuts names at NUL, which changes their meaning, and encodes overlong ones so that no broker can read
    them."""
    for name in names:
        if name is not None and "\0" in name:
            raise Rejected("A name in an ACL must not contain the character NUL")
        if name is not None and len(name.encode()) > _NAME_BYTES_MAX:
            raise Rejected(f"A name in an ACL must not be longer than {_NAME_BYTES_MAX} bytes")


def _sort(bindings: Iterable[Any]) -> list[Acl]:
    return sorted((from_library_binding(binding) for binding in bindings), key=_sort_key)


def _sort_key(acl: Acl) -> tuple[int, str, int, str, str, int, int]:
    """Enums sort in Kafka's order, names alphabetically."""
    return (
        list(ResourceType).index(acl.resource_type),
        acl.resource_name,
        list(PatternType).index(acl.pattern_type),
        acl.principal,
        acl.host,
        list(Operation).index(acl.operation),
        list(Permission).index(acl.permission),
    )
