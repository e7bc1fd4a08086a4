"""The same group under the other protocol: a classic group as a KIP-848 group, and back. Values only, no I/O.

Upwards, all members become guests (see `classic_guests.py`). Downwards only guests may be left. Both ways they keep
their ids, their partitions, and the number that they know as generation.
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
from core_broker.groups.consumer_member import ClassicSide, ConsumerMember, MemberState
from core_broker.groups.partition_owners import PartitionOwners
from core_broker.groups.records import group_record
from core_broker.groups.shape import StoredRecord
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.groups import GroupMetadataValue

# --- from classic group to consumer group ----------------------------------------------------------------------------


def upgraded(group: ClassicGroup, limits: ConsumerGroupLimits, topics: Topics, now: float) -> ConsumerGroup:
    """The same group with all its members as guests; raises GROUP_ID_NOT_FOUND when it is not made of consumers."""
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
    """What the first member of the new protocol is told when a group does not take it."""
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
        assigned=_unowned(_assigned(member, group, topics), owners),
    )


def _assigned(member: Member, group: ClassicGroup, topics: Topics) -> Assignment:
    content = read_assignment(member.assignment)
    if content.user_data:
        # An assignor that tells its members more than partitions: the broker could not go on with that.
        raise cannot_upgrade(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        )
    return by_topic_id(((topic.topic, topic.partitions) for topic in content.assigned_partitions), topics)


def _unowned(assignment: Assignment, owners: PartitionOwners) -> Assignment:
    """What clients assign among themselves need not be disjoint; here a partition has one owner."""
    free = {
        topic_id: frozenset(number for number in numbers if owners.owner_of(topic_id, number) is None)
        for topic_id, numbers in assignment.items()
    }
    return {topic_id: numbers for topic_id, numbers in free.items() if numbers}


# --- from consumer group to classic group ----------------------------------------------------------------------------


class Downgrade(msgspec.Struct, frozen=True):
    """A group that is classic again, and the one batch that makes it so in the log."""

    group: ClassicGroup
    records: list[StoredRecord]


def has_only_guests(group: ConsumerGroup, leaving: Collection[str] = ()) -> bool:
    """True when members stay that speak the classic protocol, and no others."""
    staying = [member for member in group.members.values() if member.member_id not in leaving]
    return bool(staying) and all(member.classic is not None for member in staying)


def downgraded(
    group: ConsumerGroup, leaving: Collection[str], into: ClassicGroup, topics: Topics, *, rebalances: bool, now_ms: int
) -> Downgrade:
    """Make a new classic group, `into`, of the guests that stay.

    When it `rebalances`, it is stored without a leader: so whoever loads it knows that nobody has assigned the
    partitions that became free. Until the members have joined again they keep what they have.
    """
    roster = Roster()
    assignments = {}
    for member in group.members.values():
        if member.classic is not None and member.member_id not in leaving:
            roster.add(_member(member, member.classic))
            assignments[member.member_id] = write_assignment(_held(member), topics, member.classic.protocols[0][1])
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
        classic_member.protocols = roster.members[member_id].protocols  # of which the log has only the chosen one
    return Downgrade(into, [*group.tombstones(), group_record(group.group_id, value)])


def _member(member: ConsumerMember, classic: ClassicSide) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=classic.protocols,
    )


def _held(member: ConsumerMember) -> Assignment:
    """What it may be reading: what it was asked to give up, too."""
    held = dict(member.assigned)
    for topic_id, numbers in member.pending_revocation.items():
        held[topic_id] = held.get(topic_id, frozenset()) | numbers
    return held
