"""Reads and writes Kafka's records of a KIP-848 group in `__consumer_offsets`.

Records are created from the current state of the group: `Changes` only says which keys differ from the log, and a key
without a value becomes a tombstone. So a failed write is repeated by recording its changes again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from core_broker.groups.assignors import NOTHING, Assignment
from core_broker.groups.consumer_member import ClassicSide, ConsumerMember, MemberState
from core_broker.groups.group import StoredRecord
from core_broker.groups.records import encode_key, encode_value, group_key
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import groups as stored

_VALUE_VERSION = 0
_NEW_MEMBER_EPOCH = 0
_EXPRESSION_TOPICS_BYTES_MAX = 256 * 1024


class Changes(msgspec.Struct):
    """The parts of a group that differ from the log."""

    epoch: bool = False
    target_epoch: bool = False
    members: set[str] = msgspec.field(default_factory=set)
    targets: set[str] = msgspec.field(default_factory=set)
    currents: set[str] = msgspec.field(default_factory=set)
    expressions: set[str] = msgspec.field(default_factory=set)
    classic: bool = False
    """The log may still have a classic group of the same name, which this one has replaced."""

    def __bool__(self) -> bool:
        has_flag = self.epoch or self.target_epoch or self.classic
        return bool(has_flag or self.members or self.targets or self.currents or self.expressions)

    @property
    def member_count(self) -> int:
        """The number of members with changes."""
        return len(self.members | self.targets | self.currents)

    def in_batches(self, members_max: int) -> Iterator["Changes"]:
        """The same changes in parts of at most `members_max` members; the target epoch comes last, after all targets.

        A coordinator that loads only the first parts computes the target assignment again.
        """
        member_ids = sorted(self.members | self.targets | self.currents)
        if len(member_ids) <= members_max:
            yield self
            return
        yield Changes(epoch=self.epoch, expressions=self.expressions, classic=self.classic)
        for start in range(0, len(member_ids), members_max):
            part = set(member_ids[start : start + members_max])
            yield Changes(members=self.members & part, targets=self.targets & part, currents=self.currents & part)
        yield Changes(target_epoch=self.target_epoch)

    def add(self, other: "Changes") -> None:
        """Add other changes."""
        self.epoch |= other.epoch
        self.target_epoch |= other.target_epoch
        self.members |= other.members
        self.targets |= other.targets
        self.currents |= other.currents
        self.expressions |= other.expressions
        self.classic |= other.classic


class Subscribed(Protocol):
    """The expressions of a group and what they match."""

    resolved: dict[str, frozenset[str]]


class StoredGroup(Protocol):
    """The stored state of a group; `ConsumerGroup`, which imports this module."""

    @property
    def group_id(self) -> str:
        """The name of the group."""

    @property
    def subscriptions(self) -> Subscribed:
        """Its expressions."""

    epoch: int
    target_epoch: int
    metadata_hash: int
    members: dict[str, ConsumerMember]
    targets: dict[str, Assignment]

    def put_member(self, member: ConsumerMember) -> None:
        """Set the new state of a member."""

    def put_target(self, member_id: str, target: Assignment) -> None:
        """Set the target assignment of a member."""

    def drop_target(self, member_id: str) -> None:
        """Remove the target assignment of a member."""

    def drop_member(self, member_id: str) -> None:
        """Remove a member and free its partitions."""


# --- writing ---------------------------------------------------------------------------------------------------------


def records_of(group: StoredGroup, changes: Changes, now_ms: int) -> list[StoredRecord]:
    """The records that bring the log up to the state of the group, in an order that Kafka can replay."""
    removed = {
        *(member_id for member_id in changes.members | changes.currents if member_id not in group.members),
        *(member_id for member_id in changes.targets if member_id not in group.targets),
    }
    records: list[StoredRecord] = [(group_key(group.group_id), None)] if changes.classic else []
    records += _removals(group, changes, removed)
    records += [_encode(*_member(group, member_id)) for member_id in sorted(changes.members - removed)]
    records += [_encode(*_expression(group, text, now_ms)) for text in sorted(changes.expressions)]
    if changes.epoch:
        value = stored.ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
        records.append(_encode(stored.ConsumerGroupMetadataKey(group.group_id), value))
    records += [_encode(*_target(group, member_id)) for member_id in sorted(changes.targets - removed)]
    if changes.target_epoch:
        target_epoch = stored.ConsumerGroupTargetAssignmentMetadataValue(
            group.target_epoch, assignment_timestamp=now_ms
        )
        records.append(_encode(stored.ConsumerGroupTargetAssignmentMetadataKey(group.group_id), target_epoch))
    records += [_encode(*_current(group, member_id)) for member_id in sorted(changes.currents - removed)]
    return records


def everything_of(group: StoredGroup) -> Changes:
    """The complete state of a group, as if nothing of it were in the log."""
    return Changes(
        epoch=True,
        target_epoch=True,
        members=set(group.members),
        targets=set(group.targets),
        currents=set(group.members),
        expressions=set(group.subscriptions.resolved),
    )


def tombstones_of(group: StoredGroup, unstored: Changes) -> list[StoredRecord]:
    """The records that remove a group from the log, members first, including removals that were not stored yet."""
    every = everything_of(group)
    every.add(unstored)
    group_id = group.group_id
    return [
        *_removals(group, every, every.members | every.targets | every.currents),
        *(
            _encode(stored.ConsumerGroupRegularExpressionKey(group_id, expression), None)
            for expression in sorted(every.expressions)
        ),
        _encode(stored.ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        _encode(stored.ConsumerGroupMetadataKey(group_id), None),
    ]


def _removals(group: StoredGroup, changes: Changes, removed: set[str]) -> Iterator[StoredRecord]:
    """Kafka requires that a member's assignments are removed before the member itself."""
    for member_id in sorted(removed):
        if member_id in changes.currents:
            yield _encode(stored.ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id), None)
        if member_id in changes.targets:
            yield _encode(stored.ConsumerGroupTargetAssignmentMemberKey(group.group_id, member_id), None)
        if member_id in changes.members:
            yield _encode(stored.ConsumerGroupMemberMetadataKey(group.group_id, member_id), None)


def _encode(key: Message, value: Message | None) -> StoredRecord:
    return encode_key(key), None if value is None else encode_value(value, _VALUE_VERSION)


def _member(group: StoredGroup, member_id: str) -> tuple[Message, Message]:
    member = group.members[member_id]
    value = stored.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None if member.classic is None else _classic_metadata(member.classic),
    )
    return stored.ConsumerGroupMemberMetadataKey(group.group_id, member_id), value


def _classic_metadata(classic: ClassicSide) -> stored.ClassicMemberMetadata:
    protocols = [stored.ClassicProtocol(name, metadata) for name, metadata in classic.protocols]
    return stored.ClassicMemberMetadata(classic.session_timeout_ms, protocols)


def _expression(group: StoredGroup, expression: str, now_ms: int) -> tuple[Message, Message | None]:
    topics = group.subscriptions.resolved.get(expression)
    # The matching topics can be computed again, so a list that is too long for a record is not stored.
    is_stored = topics is not None and sum(map(len, topics)) <= _EXPRESSION_TOPICS_BYTES_MAX
    value = stored.ConsumerGroupRegularExpressionValue(sorted(topics or ()), timestamp=now_ms) if is_stored else None
    return stored.ConsumerGroupRegularExpressionKey(group.group_id, expression), value


def _target(group: StoredGroup, member_id: str) -> tuple[Message, Message]:
    topics = [stored.TopicPartition(topic, sorted(numbers)) for topic, numbers in group.targets[member_id].items()]
    key = stored.ConsumerGroupTargetAssignmentMemberKey(group.group_id, member_id)
    return key, stored.ConsumerGroupTargetAssignmentMemberValue(topics)


def _current(group: StoredGroup, member_id: str) -> tuple[Message, Message]:
    member = group.members[member_id]
    value = stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.pending_revocation),
    )
    return stored.ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id), value


def _topic_partitions(assignment: Assignment) -> list[stored.TopicPartitions]:
    return [stored.TopicPartitions(topic, sorted(numbers), None) for topic, numbers in assignment.items()]


# --- reading ---------------------------------------------------------------------------------------------------------


def replay_into(group: StoredGroup, key: Message, value: Message | None) -> None:
    """Apply one record of a group, except the one that deletes the group itself (a deleted group epoch)."""
    if value is None:
        _delete(group, key)
    else:
        _apply(group, key, value)


def _apply(group: StoredGroup, key: Message, value: Message) -> None:
    match key, value:
        case stored.ConsumerGroupMetadataKey(), stored.ConsumerGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case _, stored.ConsumerGroupTargetAssignmentMetadataValue():
            group.target_epoch = value.assignment_epoch
        case stored.ConsumerGroupRegularExpressionKey(), stored.ConsumerGroupRegularExpressionValue():
            group.subscriptions.resolved[key.regular_expression] = frozenset(value.topics)
        case stored.ConsumerGroupMemberMetadataKey(), stored.ConsumerGroupMemberMetadataValue():
            group.put_member(_with_metadata(_member_or_new(group, key.member_id), value))
        case stored.ConsumerGroupTargetAssignmentMemberKey(), stored.ConsumerGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, _assignment((t.topic_id, t.partitions) for t in value.topic_partitions))
        case stored.ConsumerGroupCurrentMemberAssignmentKey(), stored.ConsumerGroupCurrentMemberAssignmentValue():
            group.put_member(
                msgspec.structs.replace(
                    _member_or_new(group, key.member_id),
                    epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=MemberState(value.state),
                    assigned=_assignment((t.topic_id, t.partitions) for t in value.assigned_partitions),
                    pending_revocation=_assignment(
                        (t.topic_id, t.partitions) for t in value.partitions_pending_revocation
                    ),
                )
            )
        case _:
            pass  # ConsumerGroupPartitionMetadata of Kafka before 4.1, replaced by the hash in the group's record


def _delete(group: StoredGroup, key: Message) -> None:
    match key:
        case stored.ConsumerGroupTargetAssignmentMetadataKey():
            group.target_epoch = 0
        case stored.ConsumerGroupRegularExpressionKey():
            group.subscriptions.resolved.pop(key.regular_expression, None)
        case stored.ConsumerGroupMemberMetadataKey():
            group.drop_member(key.member_id)
        case stored.ConsumerGroupTargetAssignmentMemberKey():
            group.drop_target(key.member_id)
        case stored.ConsumerGroupCurrentMemberAssignmentKey() if key.member_id in group.members:
            group.put_member(
                msgspec.structs.replace(
                    group.members[key.member_id],
                    epoch=_NEW_MEMBER_EPOCH,
                    previous_epoch=_NEW_MEMBER_EPOCH,
                    state=MemberState.STABLE,
                    assigned=NOTHING,
                    pending_revocation=NOTHING,
                )
            )
        case _:
            pass


def _member_or_new(group: StoredGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id=member_id)


def _with_metadata(member: ConsumerMember, value: stored.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    return msgspec.structs.replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=_classic_side(value.classic_member_metadata),
    )


def _classic_side(metadata: stored.ClassicMemberMetadata | None) -> ClassicSide | None:
    if metadata is None or not metadata.supported_protocols:
        return None
    protocols = tuple((protocol.name, protocol.metadata) for protocol in metadata.supported_protocols)
    return ClassicSide(metadata.session_timeout_ms, protocols)


def _assignment(topics: Iterable[tuple[bytes, list[int]]]) -> Mapping[bytes, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in topics if partitions}
