"""Members of the classic protocol in a KIP-848 group."""

import struct
from typing import Any

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.changed_kind import upgrade_group
from core_broker.groups.classic_group import ClassicGroup, GroupLimits
from core_broker.groups.classic_guests import GuestJoin, guest_heartbeat, guest_sync, leaving_members
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_records import records_of, replay_into
from core_broker.groups.records import decode_record
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from core_broker.protocol.messages.sync_group import SyncGroupRequest
from core_broker.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from core_broker.protocol.stored.groups import GroupMetadataValue, MemberMetadata
from core_broker.service.clock import ManualClock
from tests.support.consumer_group_world import Client, topic_id, topics

T = topic_id("t")
FOUR = topics(t=4)
LIMITS = ConsumerGroupLimits()


def subscription(*owned: int, names: tuple[str, ...] = ("t",), version: int = 1) -> bytes:
    content = ConsumerProtocolSubscription(
        list(names), owned_partitions=[TopicPartition("t", list(owned))] if owned else []
    )
    return struct.pack(">h", version) + encode(content, version)


def assignment(*numbers: int) -> bytes:
    content = ConsumerProtocolAssignment([ConsumerProtocolAssignmentTopicPartition("t", list(numbers))])
    return struct.pack(">h", 1) + encode(content, 1)


def classic_group(**assignments: bytes) -> ClassicGroup:
    """A stable classic group in generation 7."""
    group = ClassicGroup("g", clock=ManualClock(), limits=GroupLimits())
    members = [
        MemberMetadata(member_id, None, "c", "/h", 60_000, 10_000, subscription(), assigned)
        for member_id, assigned in assignments.items()
    ]
    group.restore(
        GroupMetadataValue(
            protocol_type="consumer", generation=7, protocol="range", leader=next(iter(assignments)), members=members
        )
    )
    return group


class Guest:
    """A client of the classic protocol."""

    def __init__(self, group: ConsumerGroup, member_id: str, generation: int = 7) -> None:
        self.group, self.member_id, self.generation = group, member_id, generation

    def join(self, *owned: int, **fields: Any) -> int:
        """JoinGroup; returns the error."""
        protocols = fields.pop("protocols", [JoinGroupRequestProtocol("range", subscription(*owned))])
        request = JoinGroupRequest("g", 10_000, 60_000, self.member_id, **fields)
        request.protocol_type, request.protocols = "consumer", protocols
        join = GuestJoin(self.group, request, api_version=5, client_id="c", client_host="/h")
        if join.needs_known_id:
            response = join.require_member_id()
        else:
            response = join.answer(self.group.heartbeat(join.beat(FOUR), FOUR, 0.0).member_epoch)
        self.member_id, self.generation = response.member_id, response.generation_id
        return response.error_code

    def sync(self) -> list[int]:
        """SyncGroup; returns the partitions."""
        request = SyncGroupRequest("g", self.generation, self.member_id)
        response = guest_sync(self.group, request, FOUR, 0.0)
        (version,) = struct.unpack_from(">h", response.assignment)
        content = decode(ConsumerProtocolAssignment, version, response.assignment, 2)
        return [number for topic in content.assigned_partitions for number in topic.partitions]

    def beat(self, now: float = 0.0) -> ErrorCode:
        """Heartbeat."""
        return guest_heartbeat(self.group, self.member_id, self.generation, None, now)


def test_eager_guest_shares_with_a_newcomer_of_the_new_protocol() -> None:
    group = upgrade_group(classic_group(one=assignment(0, 1, 2, 3)), LIMITS, FOUR, 0.0)
    guest, modern = Guest(group, "one"), Client("two")
    assert modern.join(group, FOUR).assignment == {}
    assert guest.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert guest.join() == 0
    assert guest.generation == 8
    assert len(guest.sync()) == 2
    assert guest.beat() is ErrorCode.NONE
    answer = modern.beat(group, FOUR)
    assert answer.assignment is not None
    assert len(answer.assignment[T]) == 2


def test_cooperative_guest_revokes_before_the_newcomer_gets_anything() -> None:
    group = upgrade_group(classic_group(one=assignment(0, 1, 2, 3)), LIMITS, FOUR, 0.0)
    guest, modern = Guest(group, "one"), Client("two")
    modern.join(group, FOUR)
    guest.join(0, 1, 2, 3)
    assert guest.generation == 7, "it stays in its generation until it has given up two partitions"
    kept = guest.sync()
    assert len(kept) == 2
    assert modern.beat(group, FOUR).assignment is None
    assert guest.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    guest.join(*kept)
    assert (guest.generation, guest.sync()) == (8, kept)
    assert modern.beat(group, FOUR).assignment is not None


def test_guest_is_called_when_what_it_waits_for_is_free() -> None:
    group = ConsumerGroup("g", LIMITS)
    modern = Client("modern")
    modern.join(group, FOUR)
    modern.confirm(group, FOUR)
    guest = Guest(group, "guest")
    guest.join()
    assert guest.sync() == []
    assert guest.beat() is ErrorCode.NONE
    modern.settle(group, FOUR)
    assert guest.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    guest.join()
    assert len(guest.sync()) == 2


def test_new_guest_is_first_told_its_id() -> None:
    group = upgrade_group(classic_group(one=assignment(0)), LIMITS, FOUR, 0.0)
    guest = Guest(group, "")
    assert guest.join() == ErrorCode.MEMBER_ID_REQUIRED
    assert guest.member_id.startswith("c-")
    assert set(group.members) == {"one"}
    assert guest.join() == 0
    assert set(group.members) == {"one", guest.member_id}


def test_guest_without_a_common_assignor_is_refused() -> None:
    group = upgrade_group(classic_group(one=assignment(0)), LIMITS, FOUR, 0.0)
    with pytest.raises(BrokerError) as refusal:
        Guest(group, "other").join(protocols=[JoinGroupRequestProtocol("sticky", subscription())])
    assert refusal.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_unreadable_subscription_is_refused() -> None:
    group = upgrade_group(classic_group(one=assignment(0)), LIMITS, FOUR, 0.0)
    with pytest.raises(BrokerError) as refusal:
        Guest(group, "other").join(protocols=[JoinGroupRequestProtocol("range", b"\x00")])
    assert refusal.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("generation", [6, 8])
def test_guest_of_another_generation_is_refused(generation: int) -> None:
    group = upgrade_group(classic_group(one=assignment(0)), LIMITS, FOUR, 0.0)
    guest = Guest(group, "one", generation)
    for action in (guest.beat, guest.sync):
        with pytest.raises(BrokerError) as refusal:
            action()
        assert refusal.value.code == ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(BrokerError) as refusal:
        group.check_commit("one", generation, None, is_transactional=False)
    assert refusal.value.code == ErrorCode.ILLEGAL_GENERATION


def test_sync_before_the_join_of_a_new_rebalance_is_refused() -> None:
    group = upgrade_group(classic_group(one=assignment(0, 1, 2, 3)), LIMITS, FOUR, 0.0)
    Client("two").join(group, FOUR)
    with pytest.raises(BrokerError) as refusal:
        Guest(group, "one").sync()
    assert refusal.value.code == ErrorCode.REBALANCE_IN_PROGRESS


def test_member_of_the_new_protocol_may_not_use_the_classic_requests() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("modern").join(group, FOUR)
    with pytest.raises(BrokerError) as refusal:
        Guest(group, "modern", 1).beat()
    assert refusal.value.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_guest_has_the_session_time_out_it_asked_for() -> None:
    group = upgrade_group(classic_group(one=assignment(0)), LIMITS, FOUR, 0.0)
    Guest(group, "one").beat(now=5.0)
    assert group.expire_members(14.9) == []
    assert group.expire_members(15.0) == ["one"]


def test_guest_that_does_not_come_for_news_is_removed_after_its_rebalance_time_out() -> None:
    group = upgrade_group(classic_group(one=assignment(0)), LIMITS, FOUR, 0.0)
    guest = Guest(group, "one")
    Client("two").join(group, FOUR, now=50.0)
    for now in range(0, 61, 5):
        guest.beat(float(now))
    assert group.expire_members(59.0) == []
    assert group.expire_members(60.0) == ["one"]


def test_guest_leaves_once() -> None:
    group = upgrade_group(classic_group(one=assignment(0), two=assignment(1)), LIMITS, FOUR, 0.0)
    errors, leaving = leaving_members(group, [("one", None), ("one", None), ("stranger", None)])
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert leaving == ["one"]


def test_static_guest_is_replaced_by_itself_in_the_new_protocol() -> None:
    group = ConsumerGroup("g", LIMITS)
    guest = Guest(group, "")
    guest.join(group_instance_id="i")
    assert guest.member_id.startswith("i-")
    answer = Client("modern", instance_id="i").join(group, FOUR)
    assert answer.assignment == {T: frozenset({0, 1, 2, 3})}
    assert set(group.members) == {"modern"}
    assert group.members["modern"].classic is None


def test_static_guest_can_be_removed_by_its_instance_id() -> None:
    group = ConsumerGroup("g", LIMITS)
    guest = Guest(group, "")
    guest.join(group_instance_id="i")
    assert leaving_members(group, [("", "i")]) == ([ErrorCode.NONE], [guest.member_id])


def test_guests_are_stored_and_loaded() -> None:
    group = upgrade_group(classic_group(one=assignment(0, 1)), LIMITS, FOUR, 0.0)
    copy = ConsumerGroup("g", LIMITS)
    for record in records_of(group, group.changes, 0):
        decoded = decode_record(*record)
        assert decoded is not None
        replay_into(copy, *decoded)
    assert copy.members == group.members
    assert (copy.epoch, copy.target_epoch) == (7, 7)
