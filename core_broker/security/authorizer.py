"""Decides who may do what, by the rules of Kafka's StandardAuthorizer.

1. Super users may do everything.
2. A DENY that matches is final, however general its pattern is: a literal name, a prefix or the wildcard.
3. Otherwise one ALLOW that matches is enough.
4. If none matches, a resource that has an ACL for anyone is denied, and one without any ACL is as
   `allow.everyone.if.no.acl.found` says.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.principals import Principal, parse_principal
from core_broker.protocol.stored import metadata as stored
from core_broker.security.acls import (
    WILDCARD,
    AclEntry,
    AclFilter,
    AclIndex,
    Pattern,
    PatternType,
    PermissionType,
    ResourceAcls,
    Subject,
    entry_of,
    subjects_of,
)
from core_broker.security.operations import Operation
from core_broker.settings.authorization import AuthorizationSettings

_DECISIONS_MAX: Final = 8192
_REMEMBERED_NAME_CHARACTERS_MAX: Final = 256
_UNNAMED: Final = "hardcode"
"""The name that Kafka uses to ask for any resource of a type."""

_IMPLYING: Final[dict[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""The operations whose ALLOW also allows another one; a DENY never implies anything."""


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_DENYING_BITS: Final = {operation: _bits(*{operation, Operation.ALL}) for operation in Operation}
_ALLOWING_BITS: Final = {
    operation: _DENYING_BITS[operation] | _bits(*_IMPLYING.get(operation, ())) for operation in Operation
}

_Question: TypeAlias = tuple[str, str, str, Operation, IntEnum, str]
"""Kind and name of the principal, host, operation, type and name of the resource."""


class Decision(msgspec.Struct, frozen=True):
    """Whether a request is allowed, and why."""

    is_allowed: bool
    rule: AclEntry | None
    """The ACL that decides, if one does."""
    reason: str


_SUPER_USER: Final = Decision(is_allowed=True, rule=None, reason="it is a super user")
_NO_RULE: Final = Decision(is_allowed=False, rule=None, reason="the resource has ACLs, and none of them matches")
_NOT_ON_ANY: Final = Decision(is_allowed=False, rule=None, reason="no rule allows it on any resource of the type")
_EVERY_NAME: Final[Pattern] = (PatternType.LITERAL, WILDCARD)


class Denial(msgspec.Struct, frozen=True):
    """What was denied, for the audit log. Without a name, it is the right on any resource of the type."""

    principal: Principal
    host: str
    operation: Operation
    kind: IntEnum
    """A ResourceType, or that of another service."""
    name: str | None
    api: str
    decision: Decision


class Authorizer:
    """The ACLs of the cluster and the decisions that follow from them. Follows the metadata log."""

    def __init__(
        self,
        super_users: Iterable[Principal] = (),
        *,
        allows_everyone: bool = False,
        on_denial: Callable[[Denial], None] | None = None,
    ) -> None:
        """`allows_everyone` is for resources without any ACL; `on_denial` is called for each denial to be logged."""
        self.acls = AclIndex()
        self.is_loaded = False
        """Whether the ACLs are known; until then only super users are."""
        self._super_users = frozenset((user.kind, user.name) for user in super_users)
        self._allows_everyone = allows_everyone
        self._on_denial = on_denial
        self._decisions: dict[_Question, Decision] = {}

    # -- the metadata --

    def load(self, records: Iterable[Message]) -> None:
        """Replace all ACLs by those among the records."""
        self.acls = AclIndex()
        self._decisions.clear()
        self.apply(tuple(records))
        self.is_loaded = True

    def apply(self, records: Sequence[Message]) -> None:
        """Follow records of the metadata log, one by one in their order."""
        for record in records:
            match record:
                case stored.AccessControlEntryRecord():
                    self.acls.add(record.id, entry_of(record))
                case stored.RemoveAccessControlEntryRecord():
                    self.acls.remove(record.id)
                case _:
                    continue
            self._decisions.clear()

    def find(self, wanted: AclFilter) -> Iterable[AclEntry]:
        """The ACLs that a filter accepts. Raises BrokerError until they are known."""
        self._check_loaded()
        return self.acls.find(wanted)

    # -- decisions --

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        kind: IntEnum,
        name: str,
        *,
        api: str = "",
        is_logged: bool = True,
    ) -> bool:
        """Whether a principal at a host may do something to a resource. Raises BrokerError until ACLs are known.

        `is_logged` is False for questions whose denial does not refuse anything by itself.
        """
        decision = self.decide(principal, host, operation, kind, name)
        if not decision.is_allowed and is_logged and self._on_denial is not None:
            self._on_denial(Denial(principal, host, operation, kind, name, api, decision))
        return decision.is_allowed

    def allows_on_any(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        kind: IntEnum,
        *,
        api: str = "",
        is_logged: bool = True,
    ) -> bool:
        """Whether a principal may do something to at least one resource that may exist (KIP-679)."""
        if self.decide(principal, host, operation, kind, _UNNAMED).is_allowed:
            return True
        acls = self.acls.of_type(kind)
        is_allowed = acls is not None and _allows_some(acls, subjects_of(principal, host), _DENYING_BITS[operation])
        if not is_allowed and is_logged and self._on_denial is not None:
            self._on_denial(Denial(principal, host, operation, kind, None, api, _NOT_ON_ANY))
        return is_allowed

    def decide(self, principal: Principal, host: str, operation: Operation, kind: IntEnum, name: str) -> Decision:
        """As `allows`, with the rule that decides. Raises BrokerError until ACLs are known."""
        if (principal.kind, principal.name) in self._super_users:
            return _SUPER_USER
        question = (principal.kind, principal.name, host, operation, kind, name)
        decision = self._decisions.get(question)
        if decision is None:
            self._check_loaded()
            decision = self._decide(subjects_of(principal, host), operation, self.acls.of_type(kind), name)
            if len(name) <= _REMEMBERED_NAME_CHARACTERS_MAX:
                if len(self._decisions) >= _DECISIONS_MAX:
                    self._decisions.clear()
                self._decisions[question] = decision
        return decision

    def _decide(
        self, subjects: Sequence[Subject], operation: Operation, acls: ResourceAcls | None, name: str
    ) -> Decision:
        denying, allowing = _DENYING_BITS[operation], _ALLOWING_BITS[operation]
        decision: Decision | None = None
        for by_subject in () if acls is None else acls.matching(name):
            decision = decision or _NO_RULE
            for subject in subjects:
                grants = by_subject.get(subject)
                if grants is None:
                    continue
                if grants.denied & denying:
                    return Decision(False, grants.rule(PermissionType.DENY, denying), "a rule denies it")
                if decision is _NO_RULE and grants.allowed & allowing:
                    decision = Decision(True, grants.rule(PermissionType.ALLOW, allowing), "a rule allows it")
        return decision or Decision(self._allows_everyone, None, "the resource has no ACL")

    def _check_loaded(self) -> None:
        if not self.is_loaded:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "The ACLs are not loaded yet; try again soon.")


def authorizer_of(
    settings: AuthorizationSettings, on_denial: Callable[[Denial], None] | None = None
) -> Authorizer | None:
    """The authorizer that the settings ask for; None if they ask for none."""
    if settings.authorizer_class_name is None:
        return None
    super_users = map(parse_principal, settings.super_users)
    return Authorizer(super_users, allows_everyone=settings.allow_everyone_if_no_acl_found, on_denial=on_denial)


def _allows_some(acls: ResourceAcls, subjects: Iterable[Subject], operations: int) -> bool:
    """Whether an ACL allows one of the operations for at least one name that no other ACL denies."""
    allowed: list[Pattern] = []
    denied: set[Pattern] = set()
    for subject in subjects:
        for pattern, grants in acls.by_subject.get(subject, {}).items():
            if grants.denied & operations:
                denied.add(pattern)
            if grants.allowed & operations:
                allowed.append(pattern)
    if _EVERY_NAME in denied:
        return False
    return any(
        pattern == _EVERY_NAME
        or not (pattern in denied or any(prefix in denied for prefix in acls.prefixes_of(pattern[1])))
        for pattern in allowed
    )
