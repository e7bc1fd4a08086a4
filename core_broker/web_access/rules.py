"""Access rules of an HTTP service: Kafka's ACLs, about resources of the service.

A DENY wins over every ALLOW; names are literal, a prefix or `*`; DESCRIBE comes with READ, WRITE, DELETE and ALTER, and
DESCRIBE_CONFIGS with ALTER_CONFIGS. What has no rule is allowed to super users alone, or to everyone with
`allow.everyone.if.no.acl.found`.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from enum import IntEnum, StrEnum
from threading import Lock
from typing import Final, Protocol

import msgspec
from typing_extensions import override

from core_broker.protocol.principals import parse_principal
from core_broker.security.acls import AclEntry
from core_broker.security.acls import PatternType as AclPatternType
from core_broker.security.acls import PermissionType as AclPermissionType
from core_broker.security.authorizer import Authorizer, Decision, Denial
from core_broker.security.operations import Operation as AclOperation
from core_broker.service.lifecycle import beside
from core_broker.web_access.callers import Caller
from core_broker.web_access.errors import Forbidden
from core_broker.web_access.settings import RuleSettings

log = logging.getLogger(__name__)


class ResourceType(StrEnum):
    """What a rule is about."""

    SUBJECT = "SUBJECT"
    """A subject of the schema registry; its name includes the context."""
    REGISTRY = "REGISTRY"
    """The registry as a whole."""
    CONNECTOR = "CONNECTOR"
    """A connector."""
    CONNECT = "CONNECT"
    """The Connect cluster as a whole."""


WHOLE: Final = {ResourceType.REGISTRY: "registry", ResourceType.CONNECT: "connect"}
"""The names of the resources of which there is only one."""


class Operation(StrEnum):
    """What a rule allows or denies."""

    ALL = "ALL"
    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"


class PatternType(StrEnum):
    """How the name in a rule is compared."""

    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class Permission(StrEnum):
    """What a rule does."""

    ALLOW = "ALLOW"
    DENY = "DENY"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One access rule."""

    principal: str
    """`User:alice`, or `User:*` for everyone."""
    resource: str
    """The name of the resource, the beginning of names, or `*`."""
    resource_type: ResourceType
    pattern_type: PatternType = PatternType.LITERAL
    host: str = "*"
    """An address, or `*` for every address."""
    operation: Operation
    permission: Permission

    @override
    def __str__(self) -> str:
        """As the audit log writes rules: `ALLOW User:alice from *: READ SUBJECT:LITERAL:orders`."""
        resource = f"{self.resource_type}:{self.pattern_type}:{self.resource}"
        return f"{self.permission} {self.principal} from {self.host}: {self.operation} {resource}"

    @property
    def digest(self) -> str:
        """The same for equal rules alone: a key for stores."""
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.astuple(self))).hexdigest()


class RuleFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects rules; None matches everything."""

    principal: str | None = None
    resource: str | None = None
    resource_type: ResourceType | None = None
    pattern_type: PatternType | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def matches(self, rule: Rule) -> bool:
        """Whether the filter selects a rule."""
        return all(
            wanted is None or wanted == getattr(rule, name)
            for name in self.__struct_fields__
            if (wanted := getattr(self, name)) is not None
        )


class RuleStore(Protocol):
    """Where a service keeps its rules. Its functions may block, and are called on threads."""

    def version(self) -> object:
        """Something that changes whenever the rules do; cheap, since it is asked again and again."""
        ...

    def read(self) -> Sequence[Rule]:
        """All rules, each once."""
        ...

    def add(self, rules: Sequence[Rule]) -> None:
        """Add rules; those that exist stay as they are."""
        ...

    def remove(self, rules: Sequence[Rule]) -> None:
        """Remove rules; those that do not exist are ignored."""
        ...


class Rules:
    """The rules of a service, and the decisions that follow from them. Decisions may be asked for on any thread."""

    def __init__(self, settings: RuleSettings, *, on_denial: Callable[[Denial], None] | None = None) -> None:
        """Rules are enforced only if callers have to log in."""
        self.is_enforced = bool(settings.methods) and settings.authorization_enable
        self.is_known = False
        """Whether the rules were read from their store; a service that answers earlier must refuse until then."""
        self._super_users = [parse_principal(user) for user in settings.super_users]
        self._allows_everyone = settings.allow_everyone_if_no_acl_found
        self._on_denial = on_denial
        self._authorizer = self._loaded(())
        self._reloading = Lock()

    def replace(self, rules: Iterable[Rule]) -> None:
        """From now on these are the rules; for stores that learn of changes themselves."""
        self._authorizer = self._loaded(rules)
        self.is_known = True

    def reload(self, store: RuleStore) -> None:
        """From now on the rules are those of the store. Blocks."""
        with self._reloading:  # who reads first must not be the last to replace
            self.replace(store.read())

    def decide(self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str) -> Decision:
        """Whether a caller may do something, and which rule says so."""
        if not self.is_enforced:
            return _NOT_ENFORCED
        return self._authorizer.decide(
            caller.principal, caller.host, AclOperation[operation], _KINDS[resource_type], name
        )

    def allows(self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether a caller may do something; for lists, which leave out what is not allowed. Nothing is logged."""
        return self.decide(caller, operation, resource_type, name).is_allowed

    def allows_on_any(self, caller: Caller, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether a caller may do something to at least one resource that may exist."""
        return not self.is_enforced or self._authorizer.allows_on_any(
            caller.principal, caller.host, AclOperation[operation], _KINDS[resource_type], is_logged=False
        )

    def require(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str, *, api: str = ""
    ) -> None:
        """Raise Forbidden unless the caller may do it. `api` is the request's name in the audit log."""
        decision = self.decide(caller, operation, resource_type, name)
        if decision.is_allowed:
            return
        if self._on_denial is not None:
            denied = AclOperation[operation]
            self._on_denial(Denial(caller.principal, caller.host, denied, _KINDS[resource_type], name, api, decision))
        raise Forbidden(f"{caller.principal} may not {operation} {resource_type} {name}")

    @asynccontextmanager
    async def following(self, store: RuleStore, *, seconds: float = 1.0) -> AsyncIterator[None]:
        """Read the rules of a store now, and again whenever they have changed, while the block runs."""
        version = await asyncio.to_thread(store.version)
        await asyncio.to_thread(self.reload, store)
        async with beside(self._follow(store, version, seconds)):
            yield

    async def _follow(self, store: RuleStore, version: object, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                newest = await asyncio.to_thread(store.version)
                if newest != version:
                    await asyncio.to_thread(self.reload, store)
                    version = newest
            except Exception as error:  # noqa: BLE001  # a store raises what it likes; the rules known so far stay
                log.warning("access rules cannot be read; the former ones stay", extra={"reason": str(error)})

    def _loaded(self, rules: Iterable[Rule]) -> Authorizer:
        authorizer = Authorizer(self._super_users, allows_everyone=self._allows_everyone)
        authorizer.load(())
        for number, rule in enumerate(dict.fromkeys(rules)):
            authorizer.acls.add(number.to_bytes(16), _entry(rule))
        return authorizer


_NOT_ENFORCED: Final = Decision(is_allowed=True, rule=None, reason="access rules are not enforced")


class _Kind(IntEnum):
    """Numbers of the types of resources in the index, beyond those of Kafka's."""

    SUBJECT = 101
    REGISTRY = 102
    CONNECTOR = 111
    CONNECT = 112


_KINDS: Final = {kind: _Kind[kind] for kind in ResourceType}


class _Entry(AclEntry, frozen=True):
    @override
    def __str__(self) -> str:
        rule = Rule(
            principal=self.principal,
            resource=self.name,
            resource_type=ResourceType[_Kind(self.kind).name],
            pattern_type=PatternType[AclPatternType(self.pattern).name],
            host=self.host,
            operation=Operation[AclOperation(self.operation).name],
            permission=Permission[AclPermissionType(self.permission).name],
        )
        return str(rule)


def _entry(rule: Rule) -> AclEntry:
    return _Entry(
        _KINDS[rule.resource_type],
        rule.resource,
        AclPatternType[rule.pattern_type],
        rule.principal,
        rule.host,
        AclOperation[rule.operation],
        AclPermissionType[rule.permission],
    )
