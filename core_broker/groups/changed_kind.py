"""Converts a classic group to a KIP-848 group, and back, without I/O.

An upgrade turns all members into guests (see `classic_guests.py`). A downgrade requires that only guests are left. Both
ways they keep their ids, their partitions, and their generation.
"""

from collections.abc import Collection

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.assignors import Assignment
from core_broker.groups.classic_group import CONSUMER_PROTOCOL, ClassicGroup
from core_broker.groups.classic_member import Member
from core_broker.groups.classic_roster import Roster
from core_broker.groups.classic_subscription import by_topic_id, read_assignment, read_subscription, write_assignment
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_member import ClassicSide, ConsumerMember, MemberState, PartitionOwners
from core_broker.groups.group import StoredRecord
from core_broker.groups.records import group_record
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.groups import GroupMetadataValue

# --- from classic group to consumer group ----------------------------------------------------------------------------


def upgrade_group(group: ClassicGroup, limits: ConsumerGroupLimits, topics: Topics, now: float) -> ConsumerGroup:
    """A KIP-848 group with the same members as guests; raises GROUP_ID_NOT_FOUND if they are not consumers."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        raise cannot_upgrade(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > limits.max_size:
        raise cannot_upgrade(group, "the group size exceeds the consumer group maximum size.")
    result = ConsumerGroup(group.group_id, limits)
    result.epoch = result.target_epoch = group.generation
    result.changes.epoch = result.changes.target_epoch = True
    try:
        for member in group.members.values():
            guest = _guest(member, group, topics, result.owners)
            result.put_member(guest)
            result.put_target(guest.member_id, guest.assigned)
    except DecodeError:
        raise cannot_upgrade(group, "the embedded consumer protocol is malformed.") from None
    result.restart_timers(now)
    return result


def cannot_upgrade(group: ClassicGroup, reason: str) -> BrokerError:
    """The error for the first member of the new protocol if the group cannot be upgraded."""
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}",
    )


def _guest(member: Member, group: ClassicGroup, topics: Topics, owners: PartitionOwners) -> ConsumerMember:
    subscription = read_subscription(member.metadata(group.protocol_name) or member.protocols[0][1])
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        state=MemberState.STABLE,
        assigned=_only_free(_read_assigned(member, group, topics), owners),
    )


def _read_assigned(member: Member, group: ClassicGroup, topics: Topics) -> Assignment:
    content = read_assignment(member.assignment)
    if content.user_data:
        # The assignor sends its members more than partitions, which the broker could not continue.
        raise cannot_upgrade(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        )
    return by_topic_id(((topic.topic, topic.partitions) for topic in content.assigned_partitions), topics)


def _only_free(assignment: Assignment, owners: PartitionOwners) -> Assignment:
    """Assignments computed by clients need not be disjoint, but here a partition has only one owner."""
    free = {
        topic_id: frozenset(number for number in numbers if owners.owner_of(topic_id, number) is None)
        for topic_id, numbers in assignment.items()
    }
    return {topic_id: numbers for topic_id, numbers in free.items() if numbers}


# --- from consumer group to classic group ----------------------------------------------------------------------------


class Downgrade(msgspec.Struct, frozen=True):
    """A group that was converted to a classic one, and the batch that stores the change."""

    group: ClassicGroup
    records: list[StoredRecord]


def has_only_guests(group: ConsumerGroup, leaving: Collection[str] = ()) -> bool:
    """Whether all remaining members, and at least one, use the classic protocol."""
    staying = [member for member in group.members.values() if member.member_id not in leaving]
    return bool(staying) and all(member.classic is not None for member in staying)


def downgrade_group(
    group: ConsumerGroup, leaving: Collection[str], into: ClassicGroup, topics: Topics, *, rebalances: bool, now_ms: int
) -> Downgrade:
    """Move the remaining guests into a new classic group, `into`.

    If it `rebalances`, it is stored without a leader: so a coordinator that loads it knows that the freed partitions
    are not assigned yet. Until the members have rejoined they keep their partitions.
    """
    roster = Roster()
    assignments = {}
    for member in group.members.values():
        if member.classic is not None and member.member_id not in leaving:
            roster.add(
                Member(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    session_timeout_ms=member.classic.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    protocols=member.classic.protocols,
                )
            )
            assignments[member.member_id] = write_assignment(
                _owned_partitions(member), topics, member.classic.protocols[0][1]
            )
    protocol_name = roster.select_protocol()
    value = GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL,
        generation=group.epoch,
        protocol=protocol_name,
        leader=None if rebalances else roster.leader_id,
        current_state_timestamp=now_ms,
        members=roster.for_log(protocol_name, assignments),
    )
    into.restore(value)
    for member_id, classic_member in into.members.items():
        classic_member.protocols = roster.members[member_id].protocols  # the log has only the selected one
    return Downgrade(into, [*group.tombstones(), group_record(group.group_id, value)])


def _owned_partitions(member: ConsumerMember) -> Assignment:
    """What it may still be reading, including what it has to revoke."""
    owned = dict(member.assigned)
    for topic_id, numbers in member.pending_revocation.items():
        owned[topic_id] = owned.get(topic_id, frozenset()) | numbers
    return owned
