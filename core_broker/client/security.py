"""Users, ACLs and quotas of a cluster, over the protocol itself: the library knows no quotas, and not every ACL."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.client.errors import from_code
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    alter_client_quotas,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_user_scram_credentials,
)

R = TypeVar("R", bound=Message)
S = TypeVar("S", ResourceType, PatternType, Operation, Permission)

MECHANISMS: Final[Mapping[str, int]] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""SCRAM mechanisms, by their numbers in the protocol."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""As many as brokers accept."""
_HASHES: Final = {1: "sha256", 2: "sha512"}
_NAMES: Final = {number: name for name, number in MECHANISMS.items()}
_SALT_BYTES: Final = 20
_ACL_VERSIONS: Final = (3, 1)
"""The first with users as resources, and the first of all."""

Entity = tuple[tuple[str, str | None], ...]
"""What a quota is for: pairs of a type (user, client-id, ip) and a name; None is the default of the type."""


class Send(Protocol):
    """Sends a request to any broker of the cluster, in the first of these versions that it knows."""

    def __call__(self, request: Message, versions: Sequence[int], response: type[R]) -> R: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramUser:
    """A user, and the iterations of each mechanism that the user can log in with."""

    name: str
    iterations: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The limits of one entity, by their keys."""

    entity: Entity
    limits: Mapping[str, float]


class Security:
    """Reads and changes users, ACLs and quotas; every call may raise a ClientError."""

    def __init__(self, send: Send) -> None:
        self._send = send

    # --- ACLs ---

    def acls(self, wanted: AclFilter) -> list[Acl]:
        """The ACLs that match a filter, by resource."""
        request = describe_acls.DescribeAclsRequest(
            resource_type_filter=_number(wanted.resource_type),
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=_number(wanted.pattern_type),
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=_number(wanted.operation),
            permission_type=_number(wanted.permission),
        )
        response = self._send(request, _ACL_VERSIONS, describe_acls.DescribeAclsResponse)
        _raise_error(response.error_code, response.error_message)
        found = [
            Acl(
                resource_type=_named(ResourceType, resource.resource_type),
                resource_name=resource.resource_name,
                pattern_type=_named(PatternType, resource.pattern_type),
                principal=acl.principal,
                host=acl.host,
                operation=_named(Operation, acl.operation),
                permission=_named(Permission, acl.permission_type),
            )
            for resource in response.resources
            for acl in resource.acls
        ]
        return sorted(found, key=_order)

    def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; those that the cluster accepts stay even if it rejects others."""
        creations = [create_acls.AclCreation(*_fields(acl)) for acl in dict.fromkeys(acls)]
        request = create_acls.CreateAclsRequest(creations)
        response = self._send(request, _ACL_VERSIONS, create_acls.CreateAclsResponse)
        for result in response.results:
            _raise_error(result.error_code, result.error_message)

    def delete_acls(self, acls: Iterable[Acl]) -> None:
        """Remove ACLs; one that is not there any more is no error."""
        filters = [delete_acls.DeleteAclsFilter(*_fields(acl)) for acl in acls]
        response = self._send(delete_acls.DeleteAclsRequest(filters), _ACL_VERSIONS, delete_acls.DeleteAclsResponse)
        for result in response.filter_results:
            _raise_error(result.error_code, result.error_message)

    # --- users ---

    def users(self) -> list[ScramUser]:
        """Every user with SCRAM credentials, by name."""
        # Null means all users, too, but Kafka does not answer it when it has to refuse.
        request = describe_user_scram_credentials.DescribeUserScramCredentialsRequest([])
        response = self._send(request, (0,), describe_user_scram_credentials.DescribeUserScramCredentialsResponse)
        _raise_error(response.error_code, response.error_message)
        found = []
        for result in response.results:
            _raise_error(result.error_code, result.error_message)
            known = {_NAMES.get(item.mechanism, "unknown"): item.iterations for item in result.credential_infos}
            found.append(ScramUser(name=result.user, iterations=dict(sorted(known.items()))))
        return sorted(found, key=lambda user: user.name)

    def set_password(self, user: str, password: str, *, mechanism: str, iterations: int = ITERATIONS_MIN) -> None:
        """Let a user log in with a password, which does not leave this process: the cluster gets it salted."""
        number = MECHANISMS[mechanism]
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(_HASHES[number], password.encode(), salt, iterations)
        change = alter_user_scram_credentials.ScramCredentialUpsertion(user, number, iterations, salt, salted)
        self._alter_users(alter_user_scram_credentials.AlterUserScramCredentialsRequest(upsertions=[change]))

    def delete_password(self, user: str, *, mechanism: str) -> None:
        """No longer let a user log in with a mechanism; NotFound if that was not possible anyway."""
        change = alter_user_scram_credentials.ScramCredentialDeletion(user, MECHANISMS[mechanism])
        self._alter_users(alter_user_scram_credentials.AlterUserScramCredentialsRequest(deletions=[change]))

    def _alter_users(self, request: alter_user_scram_credentials.AlterUserScramCredentialsRequest) -> None:
        response = self._send(request, (0,), alter_user_scram_credentials.AlterUserScramCredentialsResponse)
        for result in response.results:
            _raise_error(result.error_code, result.error_message)

    # --- quotas ---

    def quotas(self) -> list[Quota]:
        """The quotas of every entity."""
        request = describe_client_quotas.DescribeClientQuotasRequest()
        response = self._send(request, (1, 0), describe_client_quotas.DescribeClientQuotasResponse)
        _raise_error(response.error_code, response.error_message)
        found = [
            Quota(
                entity=tuple(sorted(((item.entity_type, item.entity_name) for item in entry.entity), reverse=True)),
                limits={item.key: item.value for item in sorted(entry.values, key=lambda item: item.key)},
            )
            for entry in response.entries or ()
        ]
        return sorted(found, key=lambda quota: [(kind, name or "") for kind, name in quota.entity])

    def alter_quota(
        self, entity: Entity, *, put: Mapping[str, float], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some limits of an entity and remove others; the rest is unchanged."""
        changes = [alter_client_quotas.OpData(key, value) for key, value in put.items()]
        changes += [alter_client_quotas.OpData(key, remove=True) for key in remove]
        about = [alter_client_quotas.EntityData(kind, name) for kind, name in entity]
        request = alter_client_quotas.AlterClientQuotasRequest(
            [alter_client_quotas.EntryData(about, changes)], validate_only
        )
        response = self._send(request, (1, 0), alter_client_quotas.AlterClientQuotasResponse)
        for entry in response.entries:
            _raise_error(entry.error_code, entry.error_message)


def _number(word: ResourceType | PatternType | Operation | Permission) -> int:
    """The number of a word in the protocol: words are in its order."""
    return list(type(word)).index(word)


def _named(words: type[S], number: int) -> S:
    listed = list(words)
    return listed[number] if 0 <= number < len(listed) else listed[0]


def _fields(acl: Acl) -> tuple[int, str, int, str, str, int, int]:
    """An ACL in the order of the protocol, which is the same in each of its messages."""
    return (
        _number(acl.resource_type),
        acl.resource_name,
        _number(acl.pattern_type),
        acl.principal,
        acl.host,
        _number(acl.operation),
        _number(acl.permission),
    )


def _order(acl: Acl) -> tuple[object, ...]:
    return (
        _number(acl.resource_type),
        acl.resource_name,
        _number(acl.pattern_type),
        acl.principal,
        -_number(acl.permission),
        acl.host,
        _number(acl.operation),
    )


def _raise_error(code: int, message: str | None) -> None:
    if code:
        raise from_code(code, message)
