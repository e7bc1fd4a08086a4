"""Members of the classic protocol in a KIP-848 group, so that a running group can migrate one member at a time.

A group becomes a KIP-848 group when the first member of the new protocol joins. Those that are there already go on
with JoinGroup, SyncGroup and Heartbeat, but the assignment is the broker's: their generation is their member epoch,
none of them leads, and a JoinGroup is a full heartbeat whose answer they fetch with SyncGroup. REBALANCE_IN_PROGRESS,
the answer to their Heartbeat, makes them come for news. The group stays a KIP-848 group even if only guests are left.
"""

import struct
import uuid
from collections.abc import Iterable
from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.assignors import Assignment
from core_broker.groups.classic_group import CONSUMER_PROTOCOL, ClassicGroup
from core_broker.groups.classic_member import Member
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits, Heartbeat
from core_broker.groups.consumer_member import JOIN_EPOCH, ClassicSide, ConsumerMember, MemberState
from core_broker.groups.partition_owners import PartitionOwners
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_VERSION: Final = struct.Struct(">h")
_MEMBER_ID_REQUIRED_SINCE: Final = 4
_REBALANCE_TIMEOUT_SINCE: Final = 1


# --- from classic group to consumer group ----------------------------------------------------------------------------


def migrated(group: ClassicGroup, limits: ConsumerGroupLimits, topics: Topics, now: float) -> ConsumerGroup:
    """The same group with all its members as guests; raises GROUP_ID_NOT_FOUND when it is not made of consumers."""
    if group.protocol_type != CONSUMER_PROTOCOL or len(group.members) > limits.max_size:
        raise _not_migratable(group, "it has too many members, or they are no consumers")
    result = ConsumerGroup(group.group_id, limits)
    result.epoch = result.target_epoch = group.generation
    result.changes.epoch = result.changes.target_epoch = True
    try:
        for member in group.members.values():
            guest = _guest(member, group, topics, result.owners)
            result.put_member(guest)
            result.put_target(guest.member_id, guest.assigned)
    except DecodeError as error:
        raise _not_migratable(group, f"a member's subscription or assignment cannot be read: {error}") from None
    result.restart_timers(now)
    return result


def _guest(member: Member, group: ClassicGroup, topics: Topics, owners: PartitionOwners) -> ConsumerMember:
    subscription, _ = _read_subscription(member.metadata(group.protocol_name) or member.protocols[0][1])
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
        assigned=_unowned(_read_assignment(member.assignment, topics), owners),
    )


def _unowned(assignment: Assignment, owners: PartitionOwners) -> Assignment:
    """What clients assign among themselves need not be disjoint; here a partition has one owner."""
    free = {
        topic_id: frozenset(number for number in numbers if owners.owner_of(topic_id, number) is None)
        for topic_id, numbers in assignment.items()
    }
    return {topic_id: numbers for topic_id, numbers in free.items() if numbers}


def _not_migratable(group: ClassicGroup, reason: str) -> BrokerError:
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Classic group {group.group_id} cannot become a consumer group: {reason}."
    )


# --- the classic requests --------------------------------------------------------------------------------------------


class GuestJoin:
    """A JoinGroup for a KIP-848 group: `beat` for the group, then `answer` from what the group said."""

    def __init__(
        self, group: ConsumerGroup, request: JoinGroupRequest, *, api_version: int, client_id: str, client_host: str
    ) -> None:
        self._group = group
        self._request = request
        self._api_version = api_version
        self._client = (client_id, client_host)
        self.member_id = request.member_id or f"{request.group_instance_id or client_id}-{uuid.uuid4()}"

    @property
    def needs_known_id(self) -> bool:
        """KIP-394: a new dynamic member is first told its id, so that a retry does not make it another member."""
        request = self._request
        return not (request.member_id or request.group_instance_id) and self._api_version >= _MEMBER_ID_REQUIRED_SINCE

    def beat(self, topics: Topics) -> Heartbeat:
        """The request as a full heartbeat; raises BrokerError."""
        request, group = self._request, self._group
        if request.member_id and request.group_instance_id is not None:
            group.known_member(request.member_id, request.group_instance_id)
        protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
        _check_protocols(group, self.member_id, request.protocol_type, protocols)
        try:
            subscription, _ = _read_subscription(protocols[0][1])
        except DecodeError as error:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"unreadable subscription: {error}") from None
        timeout_ms = request.rebalance_timeout_ms
        has_own_timeout = self._api_version >= _REBALANCE_TIMEOUT_SINCE and timeout_ms > 0
        return Heartbeat(
            member_id=self.member_id,
            member_epoch=JOIN_EPOCH,
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id or None,
            client_id=self._client[0],
            client_host=self._client[1],
            rebalance_timeout_ms=timeout_ms if has_own_timeout else request.session_timeout_ms,
            subscribed_topic_names=frozenset(subscription.topics),
            subscribed_topic_regex="",
            owned=_by_id(((topic.topic, topic.partitions) for topic in subscription.owned_partitions), topics),
            classic=ClassicSide(request.session_timeout_ms, protocols),
        )

    def answer(self, member_epoch: int) -> JoinGroupResponse:
        """The generation is the member's epoch; nobody leads, since the broker assigns."""
        return JoinGroupResponse(
            generation_id=member_epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=self._request.protocols[0].name,
            member_id=self.member_id,
        )

    def ask_for_known_id(self) -> JoinGroupResponse:
        """Tell the id to come back with."""
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=self.member_id)


def guest_sync(group: ConsumerGroup, request: SyncGroupRequest, topics: Topics, now: float) -> SyncGroupResponse:
    """The assignment that the last JoinGroup of a guest led to; raises BrokerError."""
    member, classic = _known_guest(group, request.member_id, request.group_instance_id, request.generation_id)
    name, metadata = classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol_name not in (None, name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.renew_session(member, now)
    return SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=name,
        assignment=_write_assignment(member.assigned, topics, _read_subscription(metadata)[1]),
    )


def guest_heartbeat(
    group: ConsumerGroup, member_id: str, generation: int, instance_id: str | None, now: float
) -> ErrorCode:
    """A guest is alive; REBALANCE_IN_PROGRESS when there is something new for it. Raises BrokerError."""
    member, _ = _known_guest(group, member_id, instance_id, generation)
    group.renew_session(member, now)
    if not _has_news(group, member):
        return ErrorCode.NONE
    group.expect_rejoin(member, now)
    return ErrorCode.REBALANCE_IN_PROGRESS


def guest_leave(group: ConsumerGroup, member_id: str, instance_id: str | None, now: float) -> ErrorCode:
    """Remove a member for a LeaveGroup; an operator may name a static one by its instance id alone."""
    if not member_id and instance_id is not None:
        member_id = next((m.member_id for m in group.members.values() if m.instance_id == instance_id), "")
    try:
        group.known_member(member_id, instance_id)
    except BrokerError as error:
        return error.code
    group.remove_members([member_id])
    group.look_again_at(now)
    return ErrorCode.NONE


def _known_guest(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicSide]:
    member = group.known_member(member_id, instance_id)
    if member.classic is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    if generation != member.epoch:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _has_news(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    target = group.targets.get(member.member_id, {})
    return all(
        group.owners.is_free_for(member.member_id, topic_id, number)
        for topic_id, numbers in target.items()
        for number in numbers
    )


def _check_protocols(
    group: ConsumerGroup, member_id: str, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    """All guests must have an assignor in common, as they would in a classic group."""
    common = {name for name, _ in protocols}
    for member in group.members.values():
        if member.classic is not None and member.member_id != member_id:
            common.intersection_update(name for name, _ in member.classic.protocols)
    if protocol_type != CONSUMER_PROTOCOL or not common:
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


# --- what classic members say and read -------------------------------------------------------------------------------


def _read_subscription(metadata: bytes) -> tuple[ConsumerProtocolSubscription, int]:
    version = _version_of(metadata, ConsumerProtocolSubscription.VERSIONS)
    return decode(ConsumerProtocolSubscription, version, metadata, _VERSION.size), version


def _read_assignment(assignment: bytes, topics: Topics) -> Assignment:
    if not assignment:
        return {}
    version = _version_of(assignment, ConsumerProtocolAssignment.VERSIONS)
    content = decode(ConsumerProtocolAssignment, version, assignment, _VERSION.size)
    return _by_id(((topic.topic, topic.partitions) for topic in content.assigned_partitions), topics)


def _write_assignment(assignment: Assignment, topics: Topics, version: int) -> bytes:
    names = {topic.topic_id: name for name, topic in topics.items() if topic.topic_id in assignment}
    content = ConsumerProtocolAssignment(
        [
            ConsumerProtocolAssignmentTopicPartition(names[topic_id], sorted(numbers))
            for topic_id, numbers in assignment.items()
            if topic_id in names
        ]
    )
    return _VERSION.pack(version) + encode(content, version)


def _version_of(data: bytes, versions: tuple[int, int]) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("no version in front")
    version: int = _VERSION.unpack_from(data)[0]
    if version < versions[0]:
        raise DecodeError(f"version {version}")
    return min(version, versions[1])  # later versions only add fields at the end


def _by_id(partitions: Iterable[tuple[str, list[int]]], topics: Topics) -> Assignment:
    """Partitions by topic id; topics that are gone are left out."""
    return {topics[name].topic_id: frozenset(numbers) for name, numbers in partitions if numbers and name in topics}
