"""Serves the classic group APIs: finds the group, passes events to its state machine, and executes the actions."""

import asyncio
import itertools
import logging
import uuid
from functools import partial
from typing import Final, cast

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.background import Background
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.classic_member import Action, AnswerJoin, AnswerSync, Join, StoreGroup, Sync, Ticket
from core_broker.groups.consumer_groups import ConsumerGroups
from core_broker.groups.group import Group
from core_broker.groups.records import group_record
from core_broker.groups.shard import Shard, ShardOwner
from core_broker.groups.subscriptions import TopicFilter, every_topic
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logging.getLogger(__name__)

STRING_BYTES_MAX: Final = 32_767
"""The longest string in a stored record; flexible versions of the wire protocol allow more."""
PROTOCOL_BYTES_MAX: Final = 8 * 1024 * 1024
"""Limit of a member's metadata for all assignors together, which stays in memory."""

_MEMBER_PREFIX_CHARS_MAX: Final = 255
_KNOWN_MEMBER_ID_SINCE: Final = 4
_REBALANCE_TIMEOUT_SINCE: Final = 1
_SKIP_ASSIGNMENT_SINCE: Final = 9

_Response = JoinGroupResponse | SyncGroupResponse


class ClassicGroups:
    """The classic groups of all shards that this broker coordinates."""

    def __init__(self, owner: ShardOwner, background: Background, consumer_groups: ConsumerGroups) -> None:
        self._owner = owner
        self._background = background
        self._consumer_groups = consumer_groups
        self._tickets = itertools.count()
        self._waiting: dict[Ticket, asyncio.Future[_Response]] = {}

    async def join(
        self,
        request: JoinGroupRequest,
        *,
        api_version: int,
        client_id: str,
        client_host: str,
        may_describe: TopicFilter = every_topic,
    ) -> JoinGroupResponse:
        """Join a group; returns when the generation begins. Raises BrokerError."""
        shard = self._owner.shard_for(request.group_id)
        self._check_join(request)
        if self._consumer_groups.has_members(shard, request.group_id):
            return await self._consumer_groups.join_classic(
                request,
                api_version=api_version,
                client_id=client_id,
                client_host=client_host,
                may_describe=may_describe,
            )
        group = self._group_to_join(shard, request)
        ticket = next(self._tickets)
        member_prefix = (request.group_instance_id or client_id)[:_MEMBER_PREFIX_CHARS_MAX]
        event = Join(
            ticket=ticket,
            member_id=request.member_id,
            fresh_member_id=f"{member_prefix}-{uuid.uuid4()}",
            instance_id=request.group_instance_id,
            client_id=client_id,
            client_host=client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=_rebalance_timeout_ms(request, api_version),
            protocol_type=request.protocol_type,
            protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            must_know_its_id=api_version >= _KNOWN_MEMBER_ID_SINCE,
            can_skip_assignment=api_version >= _SKIP_ASSIGNMENT_SINCE,
        )
        answer = self._expect(ticket)
        self._perform(shard, group, group.join(event))
        return cast(JoinGroupResponse, await self._wait(ticket, answer))

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Request an assignment; the leader sends all of them. Returns when they are stored."""
        shard = self._owner.shard_for(request.group_id)
        if self._consumer_groups.has_members(shard, request.group_id):
            return self._consumer_groups.sync_classic(request)
        group = shard.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        ticket = next(self._tickets)
        event = Sync(
            ticket=ticket,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments={item.member_id: item.assignment for item in request.assignments},
        )
        answer = self._expect(ticket)
        self._perform(shard, group, group.sync(event))
        return cast(SyncGroupResponse, await self._wait(ticket, answer))

    def heartbeat(self, group_id: str, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Process a heartbeat."""
        shard = self._owner.shard_for(group_id)
        group = shard.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group.heartbeat(member_id, generation, instance_id)
        if self._consumer_groups.has_members(shard, group_id):
            return self._consumer_groups.heartbeat_classic(group_id, member_id, generation, instance_id)
        return ErrorCode.UNKNOWN_MEMBER_ID

    async def leave(self, group_id: str, members: list[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members, each given by member id, instance id, or both; returns the error of each."""
        shard = self._owner.shard_for(group_id)
        group = shard.groups.get(group_id)
        if self._consumer_groups.has_members(shard, group_id):
            return await self._consumer_groups.leave_classic(group_id, members)
        if not isinstance(group, ClassicGroup):
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)
        errors = []
        for member_id, instance_id in members:
            error, actions = group.leave(member_id, instance_id)
            errors.append(error)
            self._perform(shard, group, actions)
        return errors

    def on_deadline(self, shard: Shard, group: ClassicGroup) -> None:
        """A deadline of the group has passed."""
        self._perform(shard, group, group.on_time())

    def reject_waiting(self, shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
        """Another broker, or another kind of group, takes over: reject the requests that wait."""
        self._perform(shard, group, group.unload(error))

    # --- finding the group -------------------------------------------------------------------------------------------

    def _group_to_join(self, shard: Shard, request: JoinGroupRequest) -> ClassicGroup:
        group = shard.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return group
        if request.member_id:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group is not None:
            if not group.is_empty:
                raise BrokerError(
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"group {group.group_id} has members of the consumer protocol and accepts no classic members",
                )
            self._background.start(partial(self._remove_from_log, shard, group))
        created = self._owner.new_classic_group(request.group_id)
        shard.groups[request.group_id] = created
        return created

    async def _remove_from_log(self, shard: Shard, group: Group) -> None:
        try:
            await shard.write(group.tombstones())
        except BrokerError as error:
            log.warning(
                "former group could not be removed from the log",
                extra={"group": group.group_id, "error": error.code.name},
            )

    def _check_join(self, request: JoinGroupRequest) -> None:
        settings = self._owner.settings
        low, high = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not low <= request.session_timeout_ms <= high:
            raise BrokerError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"the session time-out of {request.session_timeout_ms} ms is not between {low} and {high} ms",
            )
        texts = [request.member_id, request.group_instance_id or "", request.protocol_type]
        texts.extend(protocol.name for protocol in request.protocols)
        if any(len(text.encode()) > STRING_BYTES_MAX - 64 for text in texts):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a name in the request is too long to be stored")
        if sum(len(protocol.metadata) for protocol in request.protocols) > PROTOCOL_BYTES_MAX:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"the metadata of the protocols exceeds {PROTOCOL_BYTES_MAX} bytes"
            )

    # --- executing actions -------------------------------------------------------------------------------------------

    def _perform(self, shard: Shard, group: ClassicGroup, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case AnswerJoin() | AnswerSync():
                    answer = self._waiting.pop(action.ticket, None)
                    if answer is not None and not answer.done():
                        answer.set_result(action.response)
                case StoreGroup():
                    self._background.start(partial(self._store, shard, group, action))
        self._owner.arm(shard, group)

    async def _store(self, shard: Shard, group: ClassicGroup, store: StoreGroup) -> None:
        error = await self._write_group(shard, group, store)
        self._perform(shard, group, group.on_stored(store, error))

    @staticmethod
    async def _write_group(shard: Shard, group: ClassicGroup, store: StoreGroup) -> ErrorCode:
        if shard.groups.get(group.group_id) is not group:
            return ErrorCode.NOT_COORDINATOR  # deleted meanwhile: writing it now would bring it back
        try:
            await shard.write([group_record(group.group_id, store.value)])
        except BrokerError as error:
            log.warning("group could not be stored", extra={"group": group.group_id, "error": error.code.name})
            too_large = error.code is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
            return ErrorCode.UNKNOWN_SERVER_ERROR if too_large else error.code
        except Exception:
            # Members wait for the result, so it must be reported for any error.
            log.exception("group could not be stored", extra={"group": group.group_id})
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    def _expect(self, ticket: Ticket) -> asyncio.Future[_Response]:
        answer: asyncio.Future[_Response] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = answer
        return answer

    async def _wait(self, ticket: Ticket, answer: asyncio.Future[_Response]) -> _Response:
        # The state machine answers every ticket in bounded time: at the latest when the rebalance time-out, the time
        # limit of new members or that of writes has passed.
        try:
            return await answer
        finally:
            self._waiting.pop(ticket, None)


def _rebalance_timeout_ms(request: JoinGroupRequest, api_version: int) -> int:
    """Before version 1 the session time-out was used for both."""
    timeout_ms = request.rebalance_timeout_ms
    return timeout_ms if api_version >= _REBALANCE_TIMEOUT_SINCE and timeout_ms > 0 else request.session_timeout_ms
