"""Guests: members of the classic protocol in a KIP-848 group, so that an active group can migrate member by member.

A group becomes a KIP-848 group when the first member of the new protocol joins. Existing members continue to use
JoinGroup, SyncGroup and Heartbeat, but the broker computes the assignment: their generation is their member epoch, none
of them is the leader, and a JoinGroup is a full heartbeat whose assignment they get with SyncGroup. An error
REBALANCE_IN_PROGRESS of Heartbeat makes them rejoin for changes. When only guests are left, the group is converted
back, if the policy allows it (see `group_migration.py`).
"""

import uuid
from collections.abc import Iterable
from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import CONSUMER_PROTOCOL
from core_broker.groups.classic_subscription import by_topic_id, read_subscription, write_assignment
from core_broker.groups.consumer_group import ConsumerGroup, Heartbeat
from core_broker.groups.consumer_member import JOIN_EPOCH, ClassicSide, ConsumerMember, MemberState
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from core_broker.protocol.primitives import DecodeError

_MEMBER_ID_REQUIRED_SINCE: Final = 4
_REBALANCE_TIMEOUT_SINCE: Final = 1


class GuestJoin:
    """A JoinGroup for a KIP-848 group: `beat` is passed to the group, and `answer` creates the response."""

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
        """KIP-394: a new dynamic member first gets its id, so that a retry does not create another member."""
        request = self._request
        return not (request.member_id or request.group_instance_id) and self._api_version >= _MEMBER_ID_REQUIRED_SINCE

    def beat(self, topics: Topics) -> Heartbeat:
        """The request as a full heartbeat; raises BrokerError."""
        request, group = self._request, self._group
        if request.member_id and request.group_instance_id is not None:
            group.known_member(request.member_id, request.group_instance_id)
        protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
        # All guests must have an assignor in common, as in a classic group.
        member_id = self.member_id
        common = {name for name, _ in protocols}
        for member in group.members.values():
            if member.classic is not None and member.member_id != member_id:
                common.intersection_update(name for name, _ in member.classic.protocols)
        if request.protocol_type != CONSUMER_PROTOCOL or not common:
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
            )
        try:
            subscription = read_subscription(protocols[0][1])
        except DecodeError as error:
            message = f"the subscription cannot be read: {error}"
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message) from None
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
            owned=by_topic_id(((topic.topic, topic.partitions) for topic in subscription.owned_partitions), topics),
            classic=ClassicSide(request.session_timeout_ms, protocols),
        )

    def answer(self, member_epoch: int, protocol_name: str | None = None) -> JoinGroupResponse:
        """The generation is the member's epoch; there is no leader, since the broker computes the assignment.

        Only a group that was converted back has a common `protocol_name`.
        """
        return JoinGroupResponse(
            generation_id=member_epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=protocol_name or self._request.protocols[0].name,
            member_id=self.member_id,
        )

    def require_member_id(self) -> JoinGroupResponse:
        """Return the id that the member must join with."""
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=self.member_id)


def guest_sync(group: ConsumerGroup, request: SyncGroupRequest, topics: Topics, now: float) -> SyncGroupResponse:
    """The assignment after the last JoinGroup of a guest; raises BrokerError."""
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
        assignment=write_assignment(member.assigned, topics, metadata),
    )


def guest_heartbeat(
    group: ConsumerGroup, member_id: str, generation: int, instance_id: str | None, now: float
) -> ErrorCode:
    """A guest is alive; REBALANCE_IN_PROGRESS if there are changes for it. Raises BrokerError."""
    member, _ = _known_guest(group, member_id, instance_id, generation)
    group.renew_session(member, now)
    if not _must_rejoin(group, member):
        return ErrorCode.NONE
    group.expect_rejoin(member, now)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leaving_members(group: ConsumerGroup, named: Iterable[tuple[str, str | None]]) -> tuple[list[ErrorCode], list[str]]:
    """The error for each member of a LeaveGroup, and the members to remove; a static one needs no member id."""
    errors, leaving = [], []
    for member_id, instance_id in named:
        if not member_id and instance_id is not None:
            member_id = next((m.member_id for m in group.members.values() if m.instance_id == instance_id), "")
        error = _leave_error(group, member_id, instance_id) if member_id not in leaving else ErrorCode.UNKNOWN_MEMBER_ID
        errors.append(error)
        if error is ErrorCode.NONE:
            leaving.append(member_id)
    return errors, leaving


def _leave_error(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    try:
        group.known_member(member_id, instance_id)
    except BrokerError as error:
        return error.code
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


def _must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
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
