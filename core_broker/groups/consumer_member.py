"""A member of a KIP-848 group, and the reconciliation of its assignment with its target.

A member is a value: every step creates a new one. `reconcile` is the state machine of the KIP:

    STABLE                  owns its target; its epoch is that of the target assignment
    UNREVOKED_PARTITIONS    must revoke partitions first; it stays in its old epoch until it has
    UNRELEASED_PARTITIONS   is in the newest epoch, but other members must still revoke partitions of its target
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

import msgspec

from core_broker.groups.assignors import NOTHING, Assignment

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member that left temporarily and may return within its session."""


class MemberState(IntEnum):
    """The progress of a member towards its target; the numbers are those that Kafka stores."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2

    @classmethod
    def _missing_(cls, _value: object) -> "MemberState":
        # A state stored by a later version: the member is reconciled again.
        return cls.UNRELEASED_PARTITIONS


class ClassicSide(msgspec.Struct, frozen=True):
    """What is kept about a member that still uses the classic protocol while its group migrates."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """The assignors it supports, by preference, with its metadata for each."""


class ConsumerMember(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a member."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicSide | None = None

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NOTHING
    pending_revocation: Assignment = NOTHING

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether nothing is left to do until the next target assignment."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    @property
    def subscription(self) -> tuple[frozenset[str], str]:
        """Its subscribed topics: names and expression."""
        return self.subscribed_topic_names, self.subscribed_topic_regex

    @property
    def description(self) -> tuple[object, ...]:
        """Its properties, which are stored separately from its progress."""
        return (
            *(self.subscribed_topic_names, self.subscribed_topic_regex, self.instance_id, self.rack_id),
            *(self.client_id, self.client_host, self.rebalance_timeout_ms, self.server_assignor, self.classic),
        )

    @property
    def progress(self) -> tuple[object, ...]:
        """Its progress, which changes with every step."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.pending_revocation


IsFree = Callable[[bytes, int], bool]
"""Whether no other member owns a partition, given by topic id and number."""


def reconcile(
    member: ConsumerMember, *, target: Assignment, target_epoch: int, owned: Assignment | None, is_free: IsFree
) -> ConsumerMember:
    """The next step of a member towards its target; the same member if it cannot continue or has reached it.

    `owned` is what the member reported to own; None if it reported nothing: then nothing counts as revoked.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(owned, member.pending_revocation):
        return member
    kept, to_revoke = _split_assignment(member.assigned, target)
    if to_revoke and _still_owns(owned, to_revoke):
        return _move(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending=to_revoke)
    assigned, complete = _with_free_partitions(kept, target, is_free)
    state = MemberState.STABLE if complete else MemberState.UNRELEASED_PARTITIONS
    return _move(member, target_epoch, state, assigned=assigned, pending=NOTHING)


def is_subset(owned: Assignment, of: Assignment) -> bool:
    """Whether every partition of one assignment is in the other."""
    return all(partitions <= of.get(topic, frozenset()) for topic, partitions in owned.items())


def _still_owns(owned: Assignment | None, revoked: Assignment) -> bool:
    if owned is None:
        return True
    return any(not partitions.isdisjoint(owned.get(topic, ())) for topic, partitions in revoked.items())


def _split_assignment(assigned: Assignment, target: Assignment) -> tuple[dict[bytes, frozenset[int]], Assignment]:
    """The partitions to keep and those to revoke."""
    kept, revoked = {}, {}
    for topic, partitions in assigned.items():
        wanted = target.get(topic, frozenset())
        if staying := partitions & wanted:
            kept[topic] = staying
        if going := partitions - wanted:
            revoked[topic] = going
    return kept, revoked


def _with_free_partitions(
    kept: dict[bytes, frozenset[int]], target: Assignment, is_free: IsFree
) -> tuple[Assignment, bool]:
    """Add the free partitions of the target; also returns whether that is all of it."""
    complete = True
    for topic, wanted in target.items():
        missing = wanted - kept.get(topic, frozenset())
        if not missing:
            continue
        free = frozenset(partition for partition in missing if is_free(topic, partition))
        complete = complete and len(free) == len(missing)
        if free:
            kept[topic] = kept.get(topic, frozenset()) | free
    return kept, complete


def _move(
    member: ConsumerMember, epoch: int, state: MemberState, *, assigned: Assignment, pending: Assignment
) -> ConsumerMember:
    if (member.epoch, member.state, member.assigned, member.pending_revocation) == (epoch, state, assigned, pending):
        return member
    return msgspec.structs.replace(
        member,
        epoch=epoch,
        previous_epoch=member.previous_epoch if epoch == member.epoch else member.epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending,
    )


class PartitionOwners:
    """The owners of the partitions of a group, so that none ever has two.

    A member owns a partition from its assignment until it has confirmed the revocation, has left, or was fenced. It
    still owns partitions that it has yet to revoke.
    """

    def __init__(self) -> None:
        self._owners: dict[bytes, dict[int, str]] = {}

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        """The member that owns a partition, if any does."""
        owners = self._owners.get(topic_id)
        return None if owners is None else owners.get(partition)

    def is_free_for(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """Whether no other member owns it."""
        return self.owner_of(topic_id, partition) in (None, member_id)

    def take(self, member_id: str, *assignments: Assignment) -> None:
        """Make a member the owner of partitions."""
        for assignment in assignments:
            for topic_id, partitions in assignment.items():
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def release(self, member_id: str, *assignments: Assignment) -> None:
        """Free partitions that the member owns; those owned by others are not affected."""
        for assignment in assignments:
            for topic_id, partitions in assignment.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)
