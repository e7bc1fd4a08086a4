"""Serves the KIP-848 groups of this coordinator: checks heartbeats, drives the state machine, stores changes.

A change is applied to the group when its records are appended, and answered when they are committed. If the write
fails, the member gets an error, and the group keeps the change in memory, marked as not stored: to the member it looks
like a lost response, which the protocol handles, and the next write brings the log up to date.
"""

import logging
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.assignors import Assignment
from core_broker.groups.changed_kind import has_only_guests
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.classic_guests import GuestJoin, guest_heartbeat, guest_sync, leaving_members
from core_broker.groups.consumer_describe import describe
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits, Heartbeat, HeartbeatAnswer
from core_broker.groups.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from core_broker.groups.consumer_records import Changes, replay_into
from core_broker.groups.consumer_writes import ConsumerGroupWrites
from core_broker.groups.group_migration import GroupMigration
from core_broker.groups.shard import Shard, ShardOwner
from core_broker.groups.subscriptions import TopicFilter, Topics, every_topic
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import consumer_group_heartbeat as wire
from core_broker.protocol.messages.consumer_group_describe import DescribedGroup
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from core_broker.protocol.stored.groups import ConsumerGroupMetadataKey
from core_broker.settings import GroupSettings

log = logging.getLogger(__name__)

MEMBER_ID_BY_CLIENT_SINCE: Final = 1
"""From this version of the heartbeat, the client generates its member id (KIP-1082)."""

_SUBSCRIPTION_BYTES_MAX: Final = 512 * 1024
"""Limit of the subscribed topic names of one member, which are stored in one record."""
_MEMBER_ID_BYTES_MAX: Final = 32_767
"""The longest string in the key of a stored record."""

GroupOverrides = Callable[[str], Mapping[str, str]]
"""The configs of a group, by its name."""


class ConsumerGroups:
    """The part of the group coordinator for KIP-848."""

    def __init__(
        self,
        owner: ShardOwner,
        topics: Callable[[], Topics],
        group_overrides: GroupOverrides,
        group_version: Callable[[], int],
    ) -> None:
        """`group_version` is the finalised level: below 1, a coordinator of this cluster may not know the protocol."""
        self._owner = owner
        self._group_version = group_version
        self._topics = topics
        self._group_overrides = group_overrides
        self._migration = GroupMigration(owner, topics)
        self._writes = ConsumerGroupWrites(owner.clock)

    # --- requests ----------------------------------------------------------------------------------------------------

    async def heartbeat(
        self,
        request: wire.ConsumerGroupHeartbeatRequest,
        *,
        version: int,
        client_id: str,
        client_host: str,
        may_describe: TopicFilter = every_topic,
    ) -> wire.ConsumerGroupHeartbeatResponse:
        """Process one heartbeat; raises BrokerError. Regular expressions match only what the client may describe."""
        self.check_protocol()
        _check_request(request, version, self._owner.settings.group_consumer_assignors)
        shard = self._owner.shard_for(request.group_id)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            group = self._find(shard, request.group_id)
            answer = await self._leave(shard, group, request)
        else:
            group = self._find_or_create(shard, request)
            answer = await self._process(shard, group, _heartbeat(request, client_id, client_host, may_describe))
        response = wire.ConsumerGroupHeartbeatResponse(
            member_id=answer.member_id,
            member_epoch=answer.member_epoch,
            heartbeat_interval_ms=group.limits.heartbeat_interval_ms,
        )
        if answer.assignment is not None:
            response.assignment = wire.Assignment(
                [
                    wire.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id, sorted(partitions))
                    for topic_id, partitions in answer.assignment.items()
                ]
            )
        return response

    def describe(self, group_id: str) -> DescribedGroup:
        """Describe one group; raises BrokerError if it is not a KIP-848 group or not coordinated here."""
        self.check_protocol()
        return describe(self._find(self._owner.shard_for(group_id), group_id), self._topics())

    def check_protocol(self) -> None:
        """Raise UNSUPPORTED_VERSION unless KIP-848 groups are enabled."""
        if "consumer" not in self._owner.settings.group_coordinator_rebalance_protocols:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is disabled.")
        if self._group_version() < 1:
            text = "The consumer group protocol needs group.version=1: see kafka-features upgrade."
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, text)

    async def _leave(
        self, shard: Shard, group: ConsumerGroup, request: wire.ConsumerGroupHeartbeatRequest
    ) -> HeartbeatAnswer:
        member = group.known_member(request.member_id, request.instance_id)
        is_final = request.member_epoch != STATIC_LEAVE_EPOCH
        if is_final and await self._migration.downgrade(shard, group, [member.member_id]):
            return HeartbeatAnswer(request.member_id, request.member_epoch)
        answer = group.leave(request.member_id, request.instance_id, request.member_epoch)
        await self._writes.store(shard, group)
        return answer

    async def _process(self, shard: Shard, group: ConsumerGroup, beat: Heartbeat) -> HeartbeatAnswer:
        """Pass a heartbeat to the group, register the group if it is new, and store the changes."""
        group.limits = self._limits(group.group_id)
        deadline = group.next_deadline()
        # If a static member replaces the last one of the new protocol, or the last attempt could not be stored.
        may_downgrade = beat.classic is not None and (group.changes.classic or not has_only_guests(group))
        answer = group.heartbeat(beat, self._topics(), self._owner.clock.monotonic())
        self._migration.register(shard, group)
        if group.next_deadline() != deadline:
            self._owner.arm(shard, group)
        if beat.member_epoch == JOIN_EPOCH:
            log.info(
                "member joined the consumer group",
                extra={"group_id": group.group_id, "member_id": beat.member_id, "group_epoch": group.epoch},
            )
        is_stable = group.state_name == "Stable"  # then nothing changes for the other members
        if not (may_downgrade and await self._migration.downgrade(shard, group, rebalances=not is_stable)):
            await self._writes.store(shard, group)
        return answer

    # --- members of the classic protocol (see classic_guests.py) -----------------------------------------------------

    def has_members(self, shard: Shard, group_id: str) -> bool:
        """Whether it is a KIP-848 group with members: then the methods below serve its classic requests.

        So an active group can migrate one member at a time. All four raise BrokerError.
        """
        group = shard.groups.get(group_id)
        return isinstance(group, ConsumerGroup) and not group.is_empty

    async def join_classic(
        self,
        request: JoinGroupRequest,
        *,
        api_version: int,
        client_id: str,
        client_host: str,
        may_describe: TopicFilter = every_topic,
    ) -> JoinGroupResponse:
        """Process a JoinGroup; raises BrokerError."""
        shard = self._owner.shard_for(request.group_id)
        group = self._find(shard, request.group_id)
        join = GuestJoin(group, request, api_version=api_version, client_id=client_id, client_host=client_host)
        beat = msgspec.structs.replace(join.beat(self._topics()), may_describe=may_describe)
        if join.needs_known_id:
            return join.require_member_id()
        answer = await self._process(shard, group, beat)
        present = shard.groups.get(group.group_id)
        return join.answer(answer.member_epoch, present.protocol_name if isinstance(present, ClassicGroup) else None)

    def sync_classic(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Process a SyncGroup; raises BrokerError."""
        group = self._find(self._owner.shard_for(request.group_id), request.group_id)
        return guest_sync(group, request, self._topics(), self._owner.clock.monotonic())

    def heartbeat_classic(self, group_id: str, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Process a Heartbeat; raises BrokerError."""
        shard = self._owner.shard_for(group_id)
        group = self._find(shard, group_id)
        code = guest_heartbeat(group, member_id, generation, instance_id, self._owner.clock.monotonic())
        self._owner.arm(shard, group)
        return code

    async def leave_classic(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """Process a LeaveGroup; raises BrokerError."""
        shard = self._owner.shard_for(group_id)
        group = self._find(shard, group_id)
        errors, leaving = leaving_members(group, members)
        if leaving and not await self._migration.downgrade(shard, group, leaving):
            group.remove_members(leaving)
            await self._writes.store(shard, group)
        return errors

    # --- what the coordinator calls ----------------------------------------------------------------------------------

    def replay(self, shard: Shard, key: Message, value: Message | None) -> None:
        """Apply one record of key types 3 to 16 while a shard loads."""
        group_id: str = key.group_id  # type: ignore[attr-defined]  # every key of a KIP-848 record has it
        group = shard.groups.get(group_id)
        if value is None and (not isinstance(group, ConsumerGroup) or isinstance(key, ConsumerGroupMetadataKey)):
            if isinstance(group, ConsumerGroup):
                del shard.groups[group_id]
            return
        if not isinstance(group, ConsumerGroup):
            group = shard.groups[group_id] = ConsumerGroup(group_id, self._limits(group_id))
        replay_into(group, key, value)

    def on_loaded(self, shard: Shard) -> None:
        """All records were replayed: restart the sessions."""
        now = self._owner.clock.monotonic()
        for group in list(shard.groups.values()):
            if isinstance(group, ConsumerGroup):
                group.changes = Changes()
                group.restart_timers(now)
                self._owner.arm(shard, group)

    async def on_deadline(self, shard: Shard, group: ConsumerGroup) -> None:
        """Remove members whose session expired or that did not revoke in time; the coordinator arms the group again."""
        if shard.groups.get(group.group_id) is not group:
            return
        now = self._owner.clock.monotonic()
        overdue = group.overdue_members(now)
        for member_id in overdue:
            log.info(
                "member removed from the consumer group: its session expired or it did not revoke in time",
                extra={"group_id": group.group_id, "member_id": member_id, "group_epoch": group.epoch},
            )
        if (overdue or group.changes.classic) and await self._migration.downgrade(shard, group, overdue):
            return
        group.expire_members(now)
        await self._writes.store(shard, group)

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _find(self, shard: Shard, group_id: str) -> ConsumerGroup:
        group = shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            reason = "not found" if group is None else "is not a consumer group"
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        return group

    def _find_or_create(self, shard: Shard, request: wire.ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """The group, or a new one, possibly converted from a classic one; new groups are not registered yet."""
        group = shard.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) or request.member_epoch != JOIN_EPOCH:
            return self._find(shard, request.group_id)
        if isinstance(group, ClassicGroup) and not group.is_empty:
            return self._migration.upgrade(group, self._limits(request.group_id))
        if group is None or group.is_empty:
            return ConsumerGroup(request.group_id, self._limits(request.group_id))
        return self._find(shard, request.group_id)

    def _own_settings(self, group_id: str) -> GroupSettings | None:
        """The settings of a group that has configs of its own, as they are now."""
        overrides = self._group_overrides(group_id)
        return GroupSettings.resolve(overrides, self._owner.settings) if overrides else None

    def _limits(self, group_id: str) -> ConsumerGroupLimits:
        settings = self._owner.settings
        own = self._own_settings(group_id)
        return ConsumerGroupLimits(
            session_timeout_ms=own.consumer_session_timeout_ms if own else settings.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=(
                own.consumer_heartbeat_interval_ms if own else settings.group_consumer_heartbeat_interval_ms
            ),
            max_size=settings.group_consumer_max_size,
            assignors=settings.group_consumer_assignors,
            assignment_interval_ms=settings.group_consumer_assignment_interval_ms,
        )


def _check_request(request: wire.ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    epoch = request.member_epoch
    needs_id = version >= MEMBER_ID_BY_CLIENT_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    _reject_if(needs_id and not request.member_id, "MemberId can't be empty.")
    _reject_if(not request.group_id, "GroupId can't be empty.")
    _reject_if(request.instance_id == "", "InstanceId can't be empty.")
    _reject_if(request.rack_id == "", "RackId can't be empty.")
    _reject_if(epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid.")
    _reject_if(epoch == STATIC_LEAVE_EPOCH and request.instance_id is None, "InstanceId can't be null.")
    # Flexible versions allow more than can be stored, and a member that cannot be stored would block the group.
    _reject_if(len(request.member_id.encode()) > _MEMBER_ID_BYTES_MAX, "MemberId is too long.")
    names_bytes = sum(map(len, request.subscribed_topic_names or ()))
    _reject_if(
        names_bytes > _SUBSCRIPTION_BYTES_MAX,
        f"SubscribedTopicNames have {names_bytes} characters; at most {_SUBSCRIPTION_BYTES_MAX} are allowed.",
    )
    if epoch == JOIN_EPOCH:
        _reject_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
        has_empty_list = request.topic_partitions is not None and not request.topic_partitions
        _reject_if(not has_empty_list, "TopicPartitions must be empty when (re-)joining.")
        # An empty list of names is allowed: such a member belongs to the group without reading anything yet.
        has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        _reject_if(
            not has_subscription,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _reject_if(condition: bool, message: str) -> None:
    if condition:
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)


def _heartbeat(
    request: wire.ConsumerGroupHeartbeatRequest, client_id: str, client_host: str, may_describe: TopicFilter
) -> Heartbeat:
    names = request.subscribed_topic_names
    return Heartbeat(
        member_id=request.member_id or urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode(),
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else _owned_partitions(request.topic_partitions),
        may_describe=may_describe,
    )


def _owned_partitions(topics: list[wire.TopicPartitions]) -> Assignment:
    owned: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned
