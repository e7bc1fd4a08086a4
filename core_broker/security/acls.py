"""ACLs, and an index that finds those that apply to a request without looking at the others.

The index has a bit set of operations for each pattern, principal and host. So a decision looks up a few keys for each
length that prefixes have, however many ACLs there are.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec
from typing_extensions import override

from core_broker.protocol.principals import Principal
from core_broker.protocol.stored import metadata as stored
from core_broker.security.operations import Operation, ResourceType

WILDCARD: Final = "*"
"""The name of a literal pattern that applies to every resource, and the host of an ACL that applies to every host."""

_EVERYONE: Final = ("User", "*")
"""Kind and name of the principal in ACLs that apply to everyone."""
_ANY: Final = 1
_LITERAL: Final = 3
_PREFIXED: Final = 4

Subject: TypeAlias = tuple[str, str, str]
"""Kind and name of a principal, and a host in the form in which hosts are compared."""
Pattern: TypeAlias = tuple[int, str]
"""Pattern type and name."""


class PatternType(IntEnum):
    """How the name of an ACL is compared; ANY and MATCH only occur in filters."""

    UNKNOWN = 0
    ANY = _ANY
    MATCH = 2
    LITERAL = _LITERAL
    PREFIXED = _PREFIXED


class PermissionType(IntEnum):
    """What an ACL does; ANY only occurs in filters."""

    UNKNOWN = 0
    ANY = _ANY
    DENY = 2
    ALLOW = 3


class AclEntry(msgspec.Struct, frozen=True):
    """One ACL. Numbers are those of the protocol, also such as this version does not know."""

    kind: int
    """Type of the resource."""
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    @override
    def __str__(self) -> str:
        """As the audit log of Kafka writes resources: `ALLOW User:alice from 10.0.0.7: READ TOPIC:LITERAL:orders`."""
        permission, operation = _name_of(PermissionType, self.permission), _name_of(Operation, self.operation)
        resource = f"{_name_of(ResourceType, self.kind)}:{_name_of(PatternType, self.pattern)}:{self.name}"
        return f"{permission} {self.principal} from {self.host}: {operation} {resource}"

    @property
    def is_of_known_pattern(self) -> bool:
        """Whether the ACL can match anything; one of a newer version of Kafka may not."""
        return self.pattern in (_LITERAL, _PREFIXED)

    @property
    def subject(self) -> Subject:
        """Whom the ACL applies to."""
        kind, _, name = self.principal.partition(":")
        return kind, name, canonical_host(self.host)


def _name_of(kind: type[IntEnum], number: int) -> str:
    return next((member.name for member in kind if member == number), str(number))


class AclFilter(msgspec.Struct, frozen=True):
    """Which ACLs to describe or delete; None, and 1 for a number, accept everything."""

    kind: int = _ANY
    name: str | None = None
    pattern: int = _ANY
    principal: str | None = None
    host: str | None = None
    operation: int = _ANY
    permission: int = _ANY

    def matches(self, entry: AclEntry) -> bool:
        """Whether the filter accepts an ACL."""
        return (
            self.kind in (_ANY, entry.kind)
            and self.operation in (_ANY, entry.operation)
            and self.permission in (_ANY, entry.permission)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self._matches_name(entry)
        )

    def _matches_name(self, entry: AclEntry) -> bool:
        if self.pattern == PatternType.MATCH:
            return self.name is None or _affects(entry, self.name)
        return self.pattern in (_ANY, entry.pattern) and self.name in (None, entry.name)


def _affects(entry: AclEntry, name: str) -> bool:
    """Whether the pattern of an ACL matches the name of a resource."""
    if entry.pattern == _PREFIXED:
        return name.startswith(entry.name)
    return entry.pattern == _LITERAL and entry.name in (name, WILDCARD)


def entry_of(record: stored.AccessControlEntryRecord) -> AclEntry:
    """The ACL in a record of the metadata log."""
    return AclEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


@lru_cache(maxsize=4096)
def canonical_host(text: str) -> str:
    """The form in which hosts are compared: one for each address, however it is written; other text as it is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def subjects_of(principal: Principal, host: str) -> tuple[Subject, Subject, Subject, Subject]:
    """The subjects of ACLs that apply to a principal at a host."""
    kind, name, address = principal.kind, principal.name, canonical_host(host)
    return (kind, name, address), (kind, name, WILDCARD), (*_EVERYONE, address), (*_EVERYONE, WILDCARD)


class Grants:
    """What one pattern allows and denies to one subject, as bit sets of operations, and the ACLs behind them."""

    __slots__ = ("_entries", "allowed", "denied")

    def __init__(self) -> None:
        self.allowed = 0
        self.denied = 0
        self._entries: list[AclEntry] = []

    def add(self, entry: AclEntry) -> None:
        """Add an ACL. One with an unknown operation or permission grants nothing."""
        self._entries.append(entry)
        self._sum_up()

    def remove(self, entry: AclEntry) -> bool:
        """Remove an ACL; returns whether it was the last one."""
        self._entries.remove(entry)
        self._sum_up()
        return not self._entries

    def rule(self, permission: PermissionType, operations: int) -> AclEntry:
        """The first ACL with this permission for one of the operations."""
        return next(e for e in self._entries if e.permission == permission and operations & _bit(e.operation))

    def _sum_up(self) -> None:
        self.allowed = self.denied = 0
        for entry in self._entries:
            if entry.permission == PermissionType.ALLOW:
                self.allowed |= _bit(entry.operation)
            elif entry.permission == PermissionType.DENY:
                self.denied |= _bit(entry.operation)


def _bit(operation: int) -> int:
    return 1 << operation if operation > 0 else 0


class ResourceAcls:
    """The ACLs of one type of resource."""

    def __init__(self) -> None:
        self.patterns: dict[Pattern, dict[Subject, Grants]] = {}
        self.by_subject: dict[Subject, dict[Pattern, Grants]] = {}
        """The same grants by subject."""
        self._prefix_lengths: Counter[int] = Counter()
        self._lengths_descending: tuple[int, ...] = ()

    def matching(self, name: str) -> Iterator[dict[Subject, Grants]]:
        """Every pattern that matches the name of a resource: its own first, then prefixes, and at last the wildcard."""
        if (found := self.patterns.get((_LITERAL, name))) is not None:
            yield found
        for pattern in self.prefixes_of(name):
            yield self.patterns[pattern]
        if name != WILDCARD and (found := self.patterns.get((_LITERAL, WILDCARD))) is not None:
            yield found

    def prefixes_of(self, name: str) -> Iterator[Pattern]:
        """The prefixed patterns that match a name, the longest first."""
        size = len(name)
        for length in self._lengths_descending:
            if length <= size:
                pattern: Pattern = (_PREFIXED, name[:length])
                if pattern in self.patterns:
                    yield pattern

    def add(self, entry: AclEntry) -> None:
        """Add an ACL that is not in the index."""
        pattern, subject = (entry.pattern, entry.name), entry.subject
        by_subject = self.patterns.get(pattern)
        if by_subject is None:
            by_subject = self.patterns[pattern] = {}
            self._count_prefix(pattern, 1)
        grants = by_subject.get(subject)
        if grants is None:
            grants = by_subject[subject] = Grants()
            self.by_subject.setdefault(subject, {})[pattern] = grants
        grants.add(entry)

    def remove(self, entry: AclEntry) -> None:
        """Remove an ACL that is in the index."""
        pattern, subject = (entry.pattern, entry.name), entry.subject
        by_subject = self.patterns[pattern]
        if not by_subject[subject].remove(entry):
            return
        del by_subject[subject]
        self._forget_subject(subject, pattern)
        if not by_subject:
            del self.patterns[pattern]
            self._count_prefix(pattern, -1)

    def _forget_subject(self, subject: Subject, pattern: Pattern) -> None:
        patterns = self.by_subject[subject]
        del patterns[pattern]
        if not patterns:
            del self.by_subject[subject]

    def _count_prefix(self, pattern: Pattern, change: int) -> None:
        pattern_type, name = pattern
        if pattern_type != _PREFIXED:
            return
        self._prefix_lengths[len(name)] += change
        if not self._prefix_lengths[len(name)]:
            del self._prefix_lengths[len(name)]
        self._lengths_descending = tuple(sorted(self._prefix_lengths, reverse=True))


class AclIndex:
    """All ACLs of the cluster, by the id of their record and by what they apply to."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, AclEntry] = {}
        self._copies: Counter[AclEntry] = Counter()
        self._resources: dict[int, ResourceAcls] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[AclEntry]:
        return iter(self._copies)

    def find(self, wanted: AclFilter) -> Iterable[AclEntry]:
        """The ACLs that a filter accepts, each once."""
        return (entry for entry in self._copies if wanted.matches(entry))

    def of_type(self, kind: int) -> ResourceAcls | None:
        """The ACLs of a type of resource, None if there are none."""
        return self._resources.get(kind)

    def add(self, acl_id: bytes, entry: AclEntry) -> None:
        """Add an ACL; one with the same id is replaced."""
        if acl_id in self._by_id:
            self.remove(acl_id)
        self._by_id[acl_id] = entry
        self._copies[entry] += 1
        if self._copies[entry] == 1 and entry.is_of_known_pattern:
            self._resources.setdefault(entry.kind, ResourceAcls()).add(entry)

    def remove(self, acl_id: bytes) -> None:
        """Remove an ACL if it exists. It still applies if it was stored twice."""
        entry = self._by_id.pop(acl_id, None)
        if entry is None:
            return
        self._copies[entry] -= 1
        if not self._copies[entry]:
            del self._copies[entry]
            if entry.is_of_known_pattern:
                self._resources[entry.kind].remove(entry)
