"""A group under the other protocol, by values."""

import msgspec
import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.changed_kind import downgrade_group, has_only_guests, upgrade_group
from core_broker.groups.classic_group import ClassicGroup, GroupLimits
from core_broker.groups.classic_member import State
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.records import decode_record
from core_broker.protocol.stored.groups import GroupMetadataValue, MemberMetadata
from core_broker.service.clock import ManualClock
from tests.support.both_kinds_world import assigned, numbers_in
from tests.support.classic_group_world import RANGE
from tests.support.consumer_group_world import Client, topic_id, topics

LIMITS = ConsumerGroupLimits()
FOUR = topics(orders=4)
T = topic_id("orders")


def empty_group() -> ClassicGroup:
    return ClassicGroup("g", clock=ManualClock(), limits=GroupLimits())


def classic_group(**assignments: bytes) -> ClassicGroup:
    """A stable classic group in generation 7."""
    group = empty_group()
    members = [
        MemberMetadata(member_id, None, "c", "/h", 60_000, 10_000, RANGE[0][1], assignment)
        for member_id, assignment in assignments.items()
    ]
    group.restore(
        GroupMetadataValue(
            protocol_type="consumer", generation=7, protocol="range", leader=next(iter(assignments)), members=members
        )
    )
    return group


def modern(group: ConsumerGroup, member_id: str = "modern") -> Client:
    client = Client(member_id, names=frozenset({"orders"}))
    client.join(group, FOUR)
    return client


def back(group: ConsumerGroup, *leaving: str, rebalances: bool = True) -> ClassicGroup:
    return downgrade_group(group, leaving, empty_group(), FOUR, rebalances=rebalances, now_ms=5).group


# --- upgrade ----------------------------------------------------------------------------------------------------------


def test_upgraded_group_keeps_members_assignment_and_generation() -> None:
    group = upgrade_group(classic_group(one=assigned(0, 1), two=assigned(2, 3)), LIMITS, FOUR, 0.0)
    assert (group.epoch, group.target_epoch, group.state_name) == (7, 7, "Stable")
    assert {m.member_id: m.assigned for m in group.members.values()} == {
        "one": {T: frozenset({0, 1})},
        "two": {T: frozenset({2, 3})},
    }


def test_partition_that_clients_assigned_twice_gets_one_owner() -> None:
    group = upgrade_group(classic_group(one=assigned(0, 1), two=assigned(1, 2)), LIMITS, FOUR, 0.0)
    assert group.members["two"].assigned == {T: frozenset({2})}


def test_group_that_is_not_made_of_consumers_cannot_be_upgraded() -> None:
    connect = classic_group(one=assigned(0))
    connect.protocol_type = "connect"
    broken = classic_group(one=b"\x00")
    custom = classic_group(one=assigned(0, user_data=b"x"))
    reasons = ["does not use the consumer embedded protocol", "is malformed", "custom assignor"]
    for group, reason in zip((connect, broken, custom), reasons, strict=True):
        with pytest.raises(BrokerError, match=reason) as refusal:
            upgrade_group(group, LIMITS, FOUR, 0.0)
        assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_group_of_too_many_members_cannot_be_upgraded() -> None:
    group = classic_group(one=assigned(0), two=assigned(1))
    with pytest.raises(BrokerError, match="exceeds the consumer group maximum size") as refusal:
        upgrade_group(group, ConsumerGroupLimits(max_size=1), FOUR, 0.0)
    assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND


# --- downgrade --------------------------------------------------------------------------------------------------------


def test_only_a_group_that_keeps_guests_and_nobody_else_has_only_guests() -> None:
    group = upgrade_group(classic_group(one=assigned(0)), LIMITS, FOUR, 0.0)
    assert has_only_guests(group)
    assert not has_only_guests(group, ["one"])
    modern(group)
    assert not has_only_guests(group)
    assert has_only_guests(group, ["modern"])
    assert not has_only_guests(group, ["one", "modern"])


def test_there_and_back_is_the_same_group_about_to_rebalance() -> None:
    group = classic_group(one=assigned(0, 1), two=assigned(2, 3))
    same = back(upgrade_group(group, LIMITS, FOUR, 0.0))
    assert same.members == group.members
    assert (same.generation, same.protocol_type, same.protocol_name) == (7, "consumer", "range")
    assert (same.state, same.leader_id) == (State.PREPARING_REBALANCE, None)
    assert same.is_subscribed_to("orders")
    assert not same.is_subscribed_to("others")


def test_partition_that_is_to_be_given_up_is_still_held() -> None:
    group = upgrade_group(classic_group(one=assigned(0, 1, 2, 3)), LIMITS, FOUR, 0.0)
    modern(group)
    halves = {"assigned": {T: frozenset({0, 1})}, "pending_revocation": {T: frozenset({2, 3})}}
    group.put_member(msgspec.structs.replace(group.members["one"], **halves))
    assert numbers_in(back(group, "modern").members["one"].assignment) == [0, 1, 2, 3]


def test_group_that_need_not_rebalance_is_stable_and_has_a_leader() -> None:
    same = back(upgrade_group(classic_group(one=assigned(0)), LIMITS, FOUR, 0.0), rebalances=False)
    assert (same.state, same.leader_id) == (State.STABLE, "one")


def test_records_end_everything_that_was_stored_of_the_consumer_group() -> None:
    group = upgrade_group(classic_group(one=assigned(0)), LIMITS, FOUR, 0.0)
    modern(group, "gone")
    group.leave("gone", None, -1)
    modern(group)
    change = downgrade_group(group, ["modern"], empty_group(), FOUR, rebalances=True, now_ms=5)
    decoded = [decode_record(*record) for record in change.records]
    deleted = {getattr(found[0], "member_id", None) for found in decoded if found is not None and found[1] is None}
    assert deleted == {"one", "modern", "gone", None}
    last = decoded[-1]
    assert last is not None
    restored = empty_group()
    assert isinstance(last[1], GroupMetadataValue)
    restored.restore(last[1])
    assert restored.members == change.group.members
    assert restored.state is change.group.state
