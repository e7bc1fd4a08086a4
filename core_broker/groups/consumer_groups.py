"""Serves the KIP-848 groups of this coordinator: checks heartbeats, drives the state machine, stores what changed.

A change is applied to the group when its records are appended and answered when they are committed. Should the write
fail, the member gets an error and the group keeps the change in memory, noted as not stored: to the member it is as if
the answer was lost, which the protocol provides for, and the next write brings the log up to date.
"""

import asyncio
import logging
import secrets
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.assignors import Assignment
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.classic_guests import GuestJoin, guest_heartbeat, guest_leave, guest_sync, migrated
from core_broker.groups.consumer_describe import describe
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits, Heartbeat, HeartbeatAnswer
from core_broker.groups.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from core_broker.groups.consumer_records import Changes, records_of, replay_into
from core_broker.groups.shape import ConsumerGroupsPart, Group, GroupOwner, GroupShard, StoredRecord
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.consumer_group_describe import DescribedGroup
from core_broker.protocol.messages.consumer_group_heartbeat import (
    Assignment as AssignmentMessage,
)
from core_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
    TopicPartitions,
)
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from core_broker.protocol.stored.groups import ConsumerGroupMetadataKey
from core_broker.settings import BrokerSettings, GroupSettings

log = logging.getLogger(__name__)

MEMBER_ID_BY_CLIENT_SINCE: Final = 1
"""From this version of the heartbeat on, the client makes up its member id (KIP-1082)."""

_BATCH_BYTES_MAX: Final = 512 * 1024
"""More than this is written in several batches; a log takes about twice as much at once."""
_SUBSCRIPTION_BYTES_MAX: Final = 512 * 1024
"""Names that one member may subscribe to, together: they are stored in one record."""
_MEMBER_ID_BYTES_MAX: Final = 32_767
"""What the key of a stored record can hold."""

GroupOverrides = Callable[[str], Mapping[str, str]]
"""The settings that an operator has given to one group, by its name."""


UnloadClassic = Callable[[GroupShard, ErrorCode], None]
"""Turns away everybody who waits in the classic groups of a shard; without it, groups with members do not migrate."""


def _no_overrides(_group_id: str) -> Mapping[str, str]:
    return {}


class ConsumerGroups:
    """The part of the group coordinator for KIP-848; fits `shape.ConsumerGroupsPart`."""

    def __init__(
        self,
        owner: GroupOwner,
        topics: Callable[[], Topics],
        group_overrides: GroupOverrides = _no_overrides,
        *,
        unload_classic: UnloadClassic | None = None,
    ) -> None:
        self._owner = owner
        self._topics = topics
        self._group_overrides = group_overrides
        self._unload_classic = unload_classic
        self._writes: dict[ConsumerGroup, set[asyncio.Future[None]]] = {}

    # --- requests ----------------------------------------------------------------------------------------------------

    async def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, version: int, client_id: str, client_host: str
    ) -> ConsumerGroupHeartbeatResponse:
        """Serve one heartbeat; raises BrokerError with what the member is to be told."""
        _check_request(request, version, self._owner.settings)
        shard = self._owner.shard_for(request.group_id)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            group = self._find(shard, request.group_id)
            answer = group.leave(request.member_id, request.instance_id, request.member_epoch)
            await self._store(shard, group)
        else:
            group, answer = await self._beat(shard, request, client_id, client_host)
        return _response(answer, group.limits.heartbeat_interval_ms)

    def describe(self, group_id: str) -> DescribedGroup:
        """Describe one group; raises BrokerError when it is not of this kind or not coordinated here."""
        return describe(self._find(self._owner.shard_for(group_id), group_id), self._topics())

    async def _beat(
        self, shard: GroupShard, request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> tuple[ConsumerGroup, HeartbeatAnswer]:
        group = self._find_or_create(shard, request)
        answer = await self._feed(shard, group, _heartbeat(request, client_id, client_host))
        return group, answer

    async def _feed(self, shard: GroupShard, group: ConsumerGroup, beat: Heartbeat) -> HeartbeatAnswer:
        """Let the group deal with a heartbeat, put it in its place, and store what changed."""
        group.limits = self._limits(group.group_id)
        deadline = group.next_deadline()
        answer = group.heartbeat(beat, self._topics(), self._owner.clock.monotonic())
        left_behind = self._take_place(shard, group)
        if group.next_deadline() != deadline:
            self._owner.arm(shard, group)
        if beat.member_epoch == JOIN_EPOCH:
            log.info(
                "member joined the consumer group",
                extra={"group_id": group.group_id, "member_id": beat.member_id, "group_epoch": group.epoch},
            )
        await self._store(shard, group, left_behind)
        return answer

    # --- members of the classic protocol (see classic_guests.py) -----------------------------------------------------

    def has_members(self, shard: GroupShard, group_id: str) -> bool:
        """True when the classic requests for a group are to be served here."""
        group = shard.groups.get(group_id)
        return isinstance(group, ConsumerGroup) and not group.is_empty

    async def join_classic(
        self, request: JoinGroupRequest, *, api_version: int, client_id: str, client_host: str
    ) -> JoinGroupResponse:
        """Serve a JoinGroup; raises BrokerError."""
        shard = self._owner.shard_for(request.group_id)
        group = self._find(shard, request.group_id)
        join = GuestJoin(group, request, api_version=api_version, client_id=client_id, client_host=client_host)
        beat = join.beat(self._topics())
        if join.needs_known_id:
            return join.ask_for_known_id()
        return join.answer((await self._feed(shard, group, beat)).member_epoch)

    def sync_classic(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Serve a SyncGroup; raises BrokerError."""
        group = self._find(self._owner.shard_for(request.group_id), request.group_id)
        return guest_sync(group, request, self._topics(), self._owner.clock.monotonic())

    def heartbeat_classic(self, group_id: str, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Serve a Heartbeat; raises BrokerError."""
        shard = self._owner.shard_for(group_id)
        group = self._find(shard, group_id)
        code = guest_heartbeat(group, member_id, generation, instance_id, self._owner.clock.monotonic())
        self._owner.arm(shard, group)
        return code

    def leave_classic(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        """Serve a LeaveGroup; that is stored by the timer, at once."""
        shard = self._owner.shard_for(group_id)
        group = self._find(shard, group_id)
        now = self._owner.clock.monotonic()
        errors = [guest_leave(group, member_id, instance_id, now) for member_id, instance_id in members]
        self._owner.arm(shard, group)
        return errors

    # --- shape.ConsumerGroupsPart ------------------------------------------------------------------------------------

    def replay(self, shard: GroupShard, key: Message, value: Message | None) -> None:
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

    def on_loaded(self, shard: GroupShard) -> None:
        """All records have been replayed: members get a fresh session."""
        now = self._owner.clock.monotonic()
        for group in list(shard.groups.values()):
            if isinstance(group, ConsumerGroup):
                group.changes = Changes()
                group.restart_timers(now)
                self._owner.arm(shard, group)

    async def on_deadline(self, shard: GroupShard, group: Group) -> None:
        """Remove members that were silent or did not revoke in time."""
        if not isinstance(group, ConsumerGroup):
            return
        for member_id in group.expire_members(self._owner.clock.monotonic()):
            log.info(
                "member removed from the consumer group: its session or its time to revoke is over",
                extra={"group_id": group.group_id, "member_id": member_id, "group_epoch": group.epoch},
            )
        await self._store(shard, group)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _find(self, shard: GroupShard, group_id: str) -> ConsumerGroup:
        group = shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            reason = "not found" if group is None else "is not a consumer group"
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        return group

    def _find_or_create(self, shard: GroupShard, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """The group, new if need be, or made of a classic one; not yet in its place."""
        group = shard.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) or request.member_epoch != JOIN_EPOCH:
            return self._find(shard, request.group_id)
        if isinstance(group, ClassicGroup) and not group.is_empty and self._can_migrate():
            limits = self._limits(request.group_id)
            return migrated(group, limits, self._topics(), self._owner.clock.monotonic())
        if group is None or group.is_empty:
            return ConsumerGroup(request.group_id, self._limits(request.group_id))
        return self._find(shard, request.group_id)

    def _can_migrate(self) -> bool:
        policy = self._owner.settings.group_consumer_migration_policy
        return self._unload_classic is not None and policy in ("upgrade", "bidirectional")

    def _take_place(self, shard: GroupShard, group: ConsumerGroup) -> list[StoredRecord]:
        """Put a group where it belongs; returns the records that remove the classic group that was there."""
        former = shard.groups.get(group.group_id)
        if former is group:
            return []
        shard.groups[group.group_id] = group
        if former is None:
            return []
        tombstones = former.tombstones()
        if isinstance(former, ClassicGroup) and not former.is_empty and self._unload_classic is not None:
            self._unload_classic(_OneGroup(shard, former), ErrorCode.REBALANCE_IN_PROGRESS)
            log.info("classic group becomes a consumer group", extra={"group_id": group.group_id})
        return tombstones

    async def _store(self, shard: GroupShard, group: ConsumerGroup, before: Sequence[StoredRecord] = ()) -> None:
        """Write what changed, after `before`, and wait for what others are writing.

        Whoever has nothing to write may still be told of a change that is not committed yet: it waits for that one, and
        if that fails, writes it. Up to the append of the first part no other task gets its turn.
        """
        if before or group.changes:
            await self._write(shard, group, before)
            return
        for _round in range(2):  # the second for a write that another one repeats
            if writes := self._writes.get(group):
                await asyncio.wait(writes)  # each ends in the time that a write may take
            if group.changes:
                await self._write(shard, group)

    async def _write(self, shard: GroupShard, group: ConsumerGroup, before: Sequence[StoredRecord] = ()) -> None:
        changes, group.changes = group.changes, Changes()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writes.setdefault(group, set()).add(done)
        try:
            await self._write_in_parts(shard, group, changes, before)
        except BaseException:
            group.changes.add(changes)
            raise
        finally:
            self._writes[group].discard(done)
            if not self._writes[group]:
                del self._writes[group]
            done.set_result(None)

    async def _write_in_parts(
        self, shard: GroupShard, group: ConsumerGroup, changes: Changes, before: Sequence[StoredRecord]
    ) -> None:
        parts = deque([changes])
        while parts:
            part = parts.popleft()
            # Made from the state of this moment: should others have their turn between two parts, theirs is newer.
            records = [*before, *records_of(group, part, self._owner.clock.now_ms())]
            if part.member_count > 1 and _bytes_of(records) > _BATCH_BYTES_MAX:
                parts.extendleft(reversed(list(part.in_batches(part.member_count // 2))))
                continue
            before = ()
            if records:
                await shard.write(records)

    def _limits(self, group_id: str) -> ConsumerGroupLimits:
        settings = self._owner.settings
        own = self._own_settings(group_id, settings)
        return ConsumerGroupLimits(
            session_timeout_ms=own.consumer_session_timeout_ms if own else settings.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=(
                own.consumer_heartbeat_interval_ms if own else settings.group_consumer_heartbeat_interval_ms
            ),
            max_size=settings.group_consumer_max_size,
            assignors=settings.group_consumer_assignors,
            assignment_interval_ms=settings.group_consumer_assignment_interval_ms,
        )

    def _own_settings(self, group_id: str, settings: BrokerSettings) -> GroupSettings | None:
        overrides = self._group_overrides(group_id)
        return GroupSettings.resolve(overrides, settings) if overrides else None


class _OneGroup:
    """A shard with one group only, for what is done to all groups of a shard."""

    def __init__(self, shard: GroupShard, group: Group) -> None:
        self.partition_index = shard.partition_index
        self.groups = {group.group_id: group}
        self.offsets = shard.offsets
        self.write = shard.write


def serving(part: ConsumerGroupsPart | None) -> ConsumerGroups:
    """The server behind a coordinator's `consumer_groups`."""
    if not isinstance(part, ConsumerGroups):
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "groups of the consumer protocol are not served yet")
    return part


def _check_request(request: ConsumerGroupHeartbeatRequest, version: int, settings: BrokerSettings) -> None:
    if "consumer" not in settings.group_coordinator_rebalance_protocols:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is switched off.")
    assignors = settings.group_consumer_assignors
    epoch = request.member_epoch
    needs_id = version >= MEMBER_ID_BY_CLIENT_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    _refuse(needs_id and not request.member_id, "MemberId can't be empty.")
    _refuse(not request.group_id, "GroupId can't be empty.")
    _refuse(request.instance_id == "", "InstanceId can't be empty.")
    _refuse(request.rack_id == "", "RackId can't be empty.")
    _refuse(epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid.")
    _refuse(epoch == STATIC_LEAVE_EPOCH and request.instance_id is None, "InstanceId can't be null.")
    _check_sizes(request)
    if epoch == JOIN_EPOCH:
        _check_join(request)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _refuse(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
    has_empty_list = request.topic_partitions is not None and not request.topic_partitions
    _refuse(not has_empty_list, "TopicPartitions must be empty when (re-)joining.")
    # An empty list of names is fine: such a member belongs to the group without reading anything yet.
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    _refuse(
        not has_subscription, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    )


def _check_sizes(request: ConsumerGroupHeartbeatRequest) -> None:
    """Flexible versions could carry more than can be stored, and what cannot be stored would block the group."""
    _refuse(len(request.member_id.encode()) > _MEMBER_ID_BYTES_MAX, "MemberId is too long.")
    names_bytes = sum(map(len, request.subscribed_topic_names or ()))
    _refuse(
        names_bytes > _SUBSCRIPTION_BYTES_MAX,
        f"SubscribedTopicNames have {names_bytes} characters; at most {_SUBSCRIPTION_BYTES_MAX} are allowed.",
    )


def _bytes_of(records: Iterable[StoredRecord]) -> int:
    return sum(len(key) + len(value or b"") for key, value in records)


def _refuse(condition: bool, message: str) -> None:
    if condition:
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)


def _heartbeat(request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str) -> Heartbeat:
    names = request.subscribed_topic_names
    return Heartbeat(
        member_id=request.member_id or _new_member_id(),
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else _owned(request.topic_partitions),
    )


def _owned(topics: list[TopicPartitions]) -> Assignment:
    owned: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned


def _new_member_id() -> str:
    """A random id as Kafka writes its UUIDs; only version 0 of the heartbeat asks for one."""
    return urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()


def _response(answer: HeartbeatAnswer, heartbeat_interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=None if answer.assignment is None else _assignment_message(answer.assignment),
    )


def _assignment_message(assignment: Assignment) -> AssignmentMessage:
    return AssignmentMessage(
        [
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id, sorted(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
