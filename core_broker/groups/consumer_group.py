"""A group of the KIP-848 protocol: members, epochs, target assignment. A state machine without I/O.

Three numbers show the progress of a change. The *group epoch* is bumped when members, subscriptions or topics change.
The *target assignment* is computed for a group epoch and has its number. Each *member epoch* follows once the member
has revoked what the target takes from it; a partition goes to its new owner only after the old one has confirmed that.

Every method takes the time and the topics as values, changes the state, and records in `changes` what has to be stored.
A method that raises has changed nothing.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.assignors import ASSIGNORS, NOTHING, Assignment
from core_broker.groups.consumer_member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ClassicSide,
    ConsumerMember,
    MemberState,
    PartitionOwners,
    is_subset,
    reconcile,
)
from core_broker.groups.consumer_records import Changes, tombstones_of
from core_broker.groups.group import GroupKind, StoredRecord
from core_broker.groups.subscriptions import (
    Subscriptions,
    TopicFilter,
    Topics,
    compile_expression,
    every_topic,
    metadata_hash,
)

_ASSIGNED_AT_ONCE_MEMBERS_MAX: Final = 100
"""Groups up to this size get a new assignment with every change, larger ones once per assignment interval."""


class ConsumerGroupLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first one is used unless members request another."""
    assignment_interval_ms: int = 1_000


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A member's heartbeat; None (or -1) means unchanged."""

    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Assignment | None = None
    classic: ClassicSide | None = None
    """Set if it came as a JoinGroup, from a member that still uses the classic protocol."""
    may_describe: TopicFilter = every_topic
    """The topics that its sender may know of: regular expressions match no others."""

    @property
    def is_full(self) -> bool:
        """Whether it has all fields: the member (re)joins, or is not sure that its last heartbeat arrived."""
        return self.member_epoch == JOIN_EPOCH or (
            self.rebalance_timeout_ms != -1
            and (self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None)
            and self.owned is not None
        )


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """The response to a heartbeat; no assignment means that it has not changed."""

    member_id: str
    member_epoch: int
    assignment: Assignment | None = None


class ConsumerGroup:
    """One group; implements `shape.Group`."""

    kind: GroupKind = "consumer"
    protocol_type: Final = "consumer"

    def __init__(self, group_id: str, limits: ConsumerGroupLimits) -> None:
        self.group_id: Final = group_id
        self.limits = limits
        self.epoch = 0
        self.target_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.subscriptions = Subscriptions()
        self.owners = PartitionOwners()
        self.changes = Changes()
        """What differs from the log; a write takes and resets it."""
        self._static_members: dict[str, str] = {}
        self._topics: Topics | None = None
        self._assigned_at = float("-inf")
        self._sessions: dict[str, float] = {}
        self._revocations: dict[str, float] = {}
        self._earliest_deadline = float("inf")

    # --- members -----------------------------------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat, topics: Topics, now: float) -> HeartbeatAnswer:
        """A member joins, changes its subscription, confirms revocations, or is just alive."""
        if beat.subscribed_topic_regex:
            compile_expression(beat.subscribed_topic_regex)
        replaced, member = self._admit(beat)
        is_new = member.member_id not in self.members and replaced is None
        if replaced is not None:
            # The same instance under another member id takes over target and partitions.
            target = self.targets.get(replaced.member_id)
            self.drop_member(replaced.member_id)
            self.put_member(member)
            if target is not None:
                self.put_target(member.member_id, target)
        updated = _apply_heartbeat(member, beat)
        self.put_member(updated)
        is_changed = is_new or updated.subscription != member.subscription
        if self._refresh_topics(topics, beat.may_describe, subscription_changed=is_changed):
            self._bump_epoch()
        if self.epoch > self.target_epoch and (
            len(self.members) <= _ASSIGNED_AT_ONCE_MEMBERS_MAX
            or now >= self._assigned_at + self.limits.assignment_interval_ms / 1000
        ):
            self._assign(topics, now)
        reconciled = self._reconcile(updated, beat.owned, now)
        self.renew_session(reconciled, now)
        assignment = reconciled.assigned if beat.is_full or reconciled.assigned != member.assigned else None
        return HeartbeatAnswer(beat.member_id, reconciled.epoch, assignment)

    def leave(self, member_id: str, instance_id: str | None, member_epoch: int) -> HeartbeatAnswer:
        """A member leaves: for good, or (static, -2) for the rest of its session."""
        member = self.known_member(member_id, instance_id)
        if instance_id is not None and member_epoch == STATIC_LEAVE_EPOCH:
            self.put_member(msgspec.structs.replace(member, epoch=STATIC_LEAVE_EPOCH, pending_revocation=NOTHING))
            self._revocations.pop(member_id, None)
        else:
            self.remove_members([member_id])
        return HeartbeatAnswer(member_id, member_epoch)

    def expire_members(self, now: float) -> list[str]:
        """Remove members whose session expired or that did not revoke in time; returns their ids."""
        overdue = self.overdue_members(now)
        self.remove_members(overdue)
        self._earliest_deadline = min((*self._sessions.values(), *self._revocations.values()), default=float("inf"))
        return overdue

    def overdue_members(self, now: float) -> list[str]:
        """The members that `expire_members` would remove."""
        overdue = {member_id for member_id, deadline in self._sessions.items() if deadline <= now}
        overdue.update(member_id for member_id, deadline in self._revocations.items() if deadline <= now)
        return sorted(overdue)

    def restart_timers(self, now: float) -> None:
        """After loading: every session starts anew."""
        self._earliest_deadline = float("inf")
        for member in self.members.values():
            self.renew_session(member, now)
            self._time_revocation(member, now)

    # --- queries (shape.Group) ---------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def assignor(self) -> str:
        """The assignor that most members request, else the first of the configured ones."""
        votes = Counter(member.server_assignor for member in self.members.values())
        return max(self.limits.assignors, key=lambda name: votes[name])

    def check_commit(
        self, member_id: str, generation_or_epoch: int, instance_id: str | None, *, is_transactional: bool
    ) -> None:
        """Reject an offset commit of an unknown member or an old epoch; admin clients may commit to an empty group."""
        if generation_or_epoch < 0 and not self.members:
            return
        if is_transactional and generation_or_epoch < 0 and not member_id and instance_id is None:
            return
        member = self.known_member(member_id)
        has_generations = is_transactional or member.classic is not None
        stale = ErrorCode.ILLEGAL_GENERATION if has_generations else ErrorCode.STALE_MEMBER_EPOCH
        _check_same_epoch(member, generation_or_epoch, stale)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Reject an offset fetch of an unknown member or an old epoch; a fetch without a member is always allowed."""
        if not member_id and member_epoch < 0:
            return
        _check_same_epoch(self.known_member(member_id or ""), member_epoch, ErrorCode.STALE_MEMBER_EPOCH)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic."""
        return self.subscriptions.includes(topic)

    def offsets_expire_from_ms(self, committed_at_ms: int) -> int | None:
        """Offsets of topics without subscribers expire relative to their commit."""
        return committed_at_ms

    def tombstones(self) -> list[StoredRecord]:
        """The records that remove the group from the log."""
        return tombstones_of(self, self.changes)

    def next_deadline(self) -> float | None:
        """When a session or a revocation may expire; rather too early than too late, since heartbeats defer it."""
        has_deadline = bool(self.members or self.changes) and self._earliest_deadline != float("inf")
        return self._earliest_deadline if has_deadline else None

    # --- replay ------------------------------------------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        """Set the new state of a member."""
        before = self.members.get(member.member_id)
        has_new_description = before is None or before.description != member.description
        has_progressed = before is None or before.progress != member.progress
        if not has_new_description and not has_progressed:
            return
        if before is not None:
            self._forget(before)
        if has_new_description:
            self.changes.members.add(member.member_id)
        if has_progressed:
            self.changes.currents.add(member.member_id)
        self.members[member.member_id] = member
        self.subscriptions.add(*member.subscription)
        self.owners.take(member.member_id, member.assigned, member.pending_revocation)
        if member.instance_id is not None:
            self._static_members[member.instance_id] = member.member_id

    def put_target(self, member_id: str, target: Assignment) -> None:
        """Set the target assignment of a member."""
        self.targets[member_id] = target
        self.changes.targets.add(member_id)

    def drop_target(self, member_id: str) -> None:
        """Remove the target assignment of a member."""
        if self.targets.pop(member_id, None) is not None:
            self.changes.targets.add(member_id)

    def drop_member(self, member_id: str) -> None:
        """Remove a member and free its partitions."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._forget(member)
        if member.instance_id is not None and self._static_members.get(member.instance_id) == member_id:
            del self._static_members[member.instance_id]
        self._sessions.pop(member_id, None)
        self._revocations.pop(member_id, None)
        self.drop_target(member_id)
        self.changes.members.add(member_id)
        self.changes.currents.add(member_id)

    def _forget(self, member: ConsumerMember) -> None:
        self.subscriptions.remove(*member.subscription)
        self.owners.release(member.member_id, member.assigned, member.pending_revocation)

    # --- admission ---------------------------------------------------------------------------------------------------

    def _admit(self, beat: Heartbeat) -> tuple[ConsumerMember | None, ConsumerMember]:
        """The static member that is replaced, if any, and the member of a heartbeat in its previous state."""
        if beat.instance_id is not None:
            return self._admit_static(beat, beat.instance_id)
        if beat.member_epoch == JOIN_EPOCH and beat.member_id not in self.members:
            return None, self._new_member(beat)
        member = self.known_member(beat.member_id)
        self._check_epoch(member, beat)
        return None, member

    def _admit_static(self, beat: Heartbeat, instance_id: str) -> tuple[ConsumerMember | None, ConsumerMember]:
        if beat.member_epoch != JOIN_EPOCH:
            member = self.known_member(beat.member_id, instance_id)
            self._check_epoch(member, beat)
            return None, member
        holder = self.members.get(self._static_members.get(instance_id, ""))
        if holder is None:
            return None, self.members.get(beat.member_id) or self._new_member(beat)
        if holder.member_id == beat.member_id:
            return None, holder
        # Between two members of the new protocol the former one must leave first; the classic protocol just takes over.
        is_classic = holder.classic is not None or beat.classic is not None
        is_released = holder.epoch == STATIC_LEAVE_EPOCH or is_classic
        if not is_released or beat.member_id in self.members:
            raise BrokerError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by member {holder.member_id}.",
            )
        fresh = msgspec.structs.replace(
            holder, member_id=beat.member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH, pending_revocation=NOTHING
        )
        return holder, fresh

    def _new_member(self, beat: Heartbeat) -> ConsumerMember:
        if len(self.members) >= self.limits.max_size:
            raise BrokerError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self.limits.max_size} members.",
            )
        return ConsumerMember(member_id=beat.member_id)

    def known_member(self, member_id: str, instance_id: str | None = None) -> ConsumerMember:
        """A member by its id, which must match the instance id if there is one; raises BrokerError."""
        if instance_id is not None:
            holder = self.members.get(self._static_members.get(instance_id, ""))
            if holder is None:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
            if holder.member_id != member_id:
                raise BrokerError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} was fenced by member"
                    f" {holder.member_id}.",
                )
            return holder
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def _check_epoch(self, member: ConsumerMember, beat: Heartbeat) -> None:
        if beat.member_epoch in (JOIN_EPOCH, member.epoch):
            return
        # The response with the newer epoch may have been lost; harmless if the member owns nothing it should not.
        is_late = beat.member_epoch == member.previous_epoch and beat.member_epoch < member.epoch
        if is_late and beat.owned is not None and is_subset(beat.owned, member.assigned):
            return
        relation = "greater" if beat.member_epoch > member.epoch else "smaller"
        raise BrokerError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {relation} member epoch ({beat.member_epoch}) than the one known by the "
            f"group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )

    # --- transitions -------------------------------------------------------------------------------------------------

    def remove_members(self, member_ids: Iterable[str]) -> None:
        """Remove members for good, and bump the epoch to distribute their partitions."""
        removed = list(member_ids)
        for member_id in removed:
            self.drop_member(member_id)
        if removed:
            if self._topics is not None:
                # Nothing is matched anew: all expressions that are left have been.
                self._refresh_topics(self._topics, lambda _: False, subscription_changed=True)
            self._bump_epoch()

    def _refresh_topics(self, topics: Topics, may_describe: TopicFilter, *, subscription_changed: bool) -> bool:
        """Update the subscribed topics if something changed; True if that requires a new assignment."""
        if topics is self._topics and not subscription_changed:
            return False
        self.changes.expressions |= self.subscriptions.resolve(topics, may_describe, again=topics is not self._topics)
        self._topics = topics
        before, self.metadata_hash = self.metadata_hash, metadata_hash(self.subscriptions.topic_names(), topics)
        return subscription_changed or self.metadata_hash != before

    def _bump_epoch(self) -> None:
        self.epoch += 1
        self.changes.epoch = True

    def _assign(self, topics: Topics, now: float) -> None:
        """Compute the target assignment of the group epoch."""
        ids_of: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
        subscriptions = {}
        for member in self.members.values():
            subscription = member.subscription
            if subscription not in ids_of:
                ids_of[subscription] = self.subscriptions.topic_ids(*subscription, topics)
            subscriptions[member.member_id] = ids_of[subscription]
        counts = {
            topics[name].topic_id: len(topics[name].partitions)
            for name in self.subscriptions.topic_names()
            if name in topics
        }
        targets = ASSIGNORS[self.assignor](subscriptions, counts, self.targets)
        for member_id, target in targets.items():
            if self.targets.get(member_id) != target:
                self.put_target(member_id, target)
        self.target_epoch = self.epoch
        self.changes.target_epoch = True
        self._assigned_at = now

    def _reconcile(self, member: ConsumerMember, owned: Assignment | None, now: float) -> ConsumerMember:
        reconciled = reconcile(
            member,
            target=self.targets.get(member.member_id, NOTHING),
            target_epoch=self.target_epoch,
            owned=owned,
            is_free=partial(self.owners.is_free_for, member.member_id),
        )
        if reconciled is not member:
            self.put_member(reconciled)
            self._time_revocation(reconciled, now)
        elif member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._revocations.pop(member.member_id, None)
        return reconciled

    # --- time --------------------------------------------------------------------------------------------------------

    def renew_session(self, member: ConsumerMember, now: float) -> None:
        """Extend a member's session; a member of the classic protocol has its own session time-out."""
        timeout_ms = self.limits.session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
        self._sessions[member.member_id] = deadline = now + timeout_ms / 1000
        self._earliest_deadline = min(self._earliest_deadline, deadline)

    def expect_rejoin(self, member: ConsumerMember, now: float) -> None:
        """A classic member must rejoin within its rebalance time-out."""
        deadline = self._revocations.setdefault(member.member_id, now + member.rebalance_timeout_ms / 1000)
        self._earliest_deadline = min(self._earliest_deadline, deadline)

    def _time_revocation(self, member: ConsumerMember, now: float) -> None:
        """A member must revoke within its rebalance time-out, which starts with the response that requires it."""
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch != STATIC_LEAVE_EPOCH:
            self._revocations[member.member_id] = deadline = now + member.rebalance_timeout_ms / 1000
            self._earliest_deadline = min(self._earliest_deadline, deadline)
        else:
            self._revocations.pop(member.member_id, None)


def _apply_heartbeat(member: ConsumerMember, beat: Heartbeat) -> ConsumerMember:
    """The member with the fields of the heartbeat."""
    names, expression = beat.subscribed_topic_names, beat.subscribed_topic_regex
    return msgspec.structs.replace(
        member,
        instance_id=beat.instance_id or member.instance_id,
        rack_id=beat.rack_id or member.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if beat.rebalance_timeout_ms == -1
        else beat.rebalance_timeout_ms,
        subscribed_topic_names=member.subscribed_topic_names if names is None else names,
        subscribed_topic_regex=member.subscribed_topic_regex if expression is None else expression,
        server_assignor=beat.server_assignor or member.server_assignor,
        classic=beat.classic,
    )


def _check_same_epoch(member: ConsumerMember, epoch: int, code: ErrorCode) -> None:
    if epoch != member.epoch:
        raise BrokerError(code, f"Member {member.member_id} is in epoch {member.epoch}, the request in {epoch}.")
