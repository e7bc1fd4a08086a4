"""Plans changes of ACLs: checks each of a request and returns the records that carry out the valid ones."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import ZERO_UUID
from core_broker.protocol.stored.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from core_broker.security.acls import AclEntry, AclFilter, PatternType, PermissionType, entry_of
from core_broker.security.operations import CLUSTER_NAME, Operation, ResourceType

ACLS_PER_CHANGE_MAX: Final = 10_000
_ANY: Final = 1
_KINDS: Final = tuple(ResourceType)
_OPERATIONS: Final = tuple(Operation)
_PERMISSIONS: Final = (PermissionType.DENY, PermissionType.ALLOW)
_PATTERNS: Final = (PatternType.LITERAL, PatternType.PREFIXED)
_FILTERED_PATTERNS: Final = (PatternType.MATCH, *_PATTERNS)


class AclCreationPlan:
    """What becomes of the ACLs of a CreateAcls request: a result for each, and the records of those that are new."""

    def __init__(self, entries: Sequence[AclEntry], image: MetadataImage) -> None:
        """Raise POLICY_VIOLATION if there are too many new ones for one batch."""
        self.results: list[BrokerError | None] = []
        self.records: list[Message] = []
        known = {entry for _, entry in _stored(image)}
        for entry in entries:
            reason = _why_invalid(entry)
            self.results.append(None if reason is None else BrokerError(ErrorCode.INVALID_REQUEST, reason))
            if reason is None and entry not in known:
                known.add(entry)
                self.records.append(_record(entry))
        if len(self.records) > ACLS_PER_CHANGE_MAX:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, _too_many("create", len(self.records)))


class AclDeletionPlan:
    """What becomes of the filters of a DeleteAcls request: what each has found, and the records that remove it."""

    def __init__(self, filters: Sequence[AclFilter], image: MetadataImage) -> None:
        """Raise INVALID_REQUEST if the filters find too many ACLs for one batch."""
        self.results: list[list[AclEntry] | BrokerError] = []
        stored = list(_stored(image))
        by_name: dict[str, list[tuple[bytes, AclEntry]]] = {}
        for acl_id, entry in stored:
            by_name.setdefault(entry.name, []).append((acl_id, entry))
        removed: dict[bytes, None] = {}
        for wanted in filters:
            reason = _why_invalid_filter(wanted)
            if reason is not None:
                self.results.append(BrokerError(ErrorCode.INVALID_REQUEST, reason))
                continue
            is_one_name = wanted.name is not None and wanted.pattern != PatternType.MATCH
            candidates = by_name.get(wanted.name or "", ()) if is_one_name else stored
            found = [(acl_id, entry) for acl_id, entry in candidates if wanted.matches(entry)]
            removed.update(dict.fromkeys(acl_id for acl_id, _ in found))
            self.results.append(list(dict.fromkeys(entry for _, entry in found)))
            if sum(len(each) for each in self.results if isinstance(each, list)) > ACLS_PER_CHANGE_MAX:
                raise BrokerError(ErrorCode.INVALID_REQUEST, _too_many("delete", len(removed)))
        self.records: list[Message] = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]


def _stored(image: MetadataImage) -> Iterator[tuple[bytes, AclEntry]]:
    for record in image.carried.values():
        if isinstance(record, AccessControlEntryRecord):
            yield record.id, entry_of(record)


def _record(entry: AclEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=_new_id(),
        resource_type=entry.kind,
        resource_name=entry.name,
        pattern_type=entry.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _new_id() -> bytes:
    while (acl_id := os.urandom(16)) == ZERO_UUID:
        pass
    return acl_id


def _why_invalid(entry: AclEntry) -> str | None:
    """The reason why an ACL cannot be created, None if it can. As in Kafka, operations need not make sense."""
    if entry.kind == ResourceType.CLUSTER and entry.name != CLUSTER_NAME:
        return f"The only valid name of the cluster resource is {CLUSTER_NAME}, not {entry.name!r}."
    if not entry.name:
        return "The name of the resource must not be empty; * stands for every name."
    for number, allowed, what in (
        (entry.kind, _KINDS, "Resource type"),
        (entry.pattern, _PATTERNS, "Pattern type"),
        (entry.operation, _OPERATIONS, "Operation"),
        (entry.permission, _PERMISSIONS, "Permission type"),
    ):
        if number not in allowed:
            return f"{what} {number} cannot be used in an ACL; use {_listed(allowed)}."
    if ":" not in entry.principal:
        return f"The principal must be written as User:name, not {entry.principal!r}."
    return None


def _why_invalid_filter(wanted: AclFilter) -> str | None:
    for number, allowed, what in (
        (wanted.kind, _KINDS, "Resource type"),
        (wanted.pattern, _FILTERED_PATTERNS, "Pattern type"),
        (wanted.operation, _OPERATIONS, "Operation"),
        (wanted.permission, _PERMISSIONS, "Permission type"),
    ):
        if number != _ANY and number not in allowed:
            return f"{what} {number} cannot be used in a filter; use {_listed(allowed)}, or 1 for any."
    return None


def _listed(allowed: Sequence[int]) -> str:
    return f"{int(allowed[0])} to {int(allowed[-1])}"


def _too_many(verb: str, count: int) -> str:
    return f"The request would {verb} {count} ACLs or more; at most {ACLS_PER_CHANGE_MAX} are allowed at once."
