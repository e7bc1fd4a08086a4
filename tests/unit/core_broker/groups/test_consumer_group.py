"""The state machine of a KIP-848 group, by values."""

from typing import Any

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.assignors import Assignment
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_records import Changes
from tests.support.consumer_group_world import Client, places, settle, topic_id, topics

T = topic_id("t")
FOUR = topics(t=4)
SESSION_S = 45.0


def of_t(*partitions: int) -> Assignment:
    """These partitions of the topic t."""
    return {T: frozenset(partitions)}


@pytest.fixture
def group() -> ConsumerGroup:
    return ConsumerGroup("g", ConsumerGroupLimits())


@pytest.fixture
def pair(group: ConsumerGroup) -> tuple[Client, Client]:
    """Two members that share the four partitions."""
    one, two = Client("one"), Client("two")
    one.join(group, FOUR)
    two.join(group, FOUR)
    settle(group, FOUR, one, two)
    return one, two


# --- joining and rebalancing -----------------------------------------------------------------------------------------


def test_first_member_gets_everything_at_once(group: ConsumerGroup) -> None:
    answer = Client("one").join(group, FOUR)
    assert answer.assignment == of_t(0, 1, 2, 3)
    assert (answer.member_epoch, group.epoch, group.target_epoch) == (1, 1, 1)
    assert group.state_name == "Stable"


def test_partition_goes_to_its_new_owner_only_after_the_old_one_confirmed(group: ConsumerGroup) -> None:
    one, two = Client("one"), Client("two")
    one.join(group, FOUR)
    one.confirm(group, FOUR)
    assert two.join(group, FOUR).assignment == {}
    news = one.beat(group, FOUR)
    assert (news.assignment, news.member_epoch) == (of_t(0, 1), 1)
    assert two.beat(group, FOUR).assignment is None, "the first member has yet to give them up"
    assert one.confirm(group, FOUR).member_epoch == 2
    assert two.beat(group, FOUR).assignment == of_t(2, 3)
    assert group.state_name == "Stable"


def test_group_is_reconciling_while_a_member_is_on_its_way(group: ConsumerGroup) -> None:
    Client("one").join(group, FOUR)
    Client("two").join(group, FOUR)
    assert group.state_name == "Reconciling"


def test_heartbeat_without_news_carries_no_assignment(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    assert pair[0].beat(group, FOUR).assignment is None


def test_full_heartbeat_is_answered_with_the_whole_assignment(
    group: ConsumerGroup, pair: tuple[Client, Client]
) -> None:
    one, _ = pair
    answer = one.beat(group, FOUR, rebalance_timeout_ms=60_000, subscribed_topic_names=one.names, owned=dict(one.owned))
    assert answer.assignment == one.told


def test_surplus_members_stay_idle(group: ConsumerGroup) -> None:
    clients = [Client(f"m{number}") for number in range(6)]
    for client in clients:
        client.join(group, FOUR)
    settle(group, FOUR, *clients)
    assert sorted(len(places(client.owned)) for client in clients) == [0, 0, 1, 1, 1, 1]


def test_leaving_member_frees_its_partitions(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    one, two = pair
    epoch = group.epoch
    answer = group.leave(two.member_id, None, -1)
    assert (answer.member_id, answer.member_epoch) == ("two", -1)
    assert group.epoch == epoch + 1
    assert one.beat(group, FOUR).assignment == of_t(0, 1, 2, 3)


def test_group_without_members_is_empty_and_keeps_its_epoch_rising(group: ConsumerGroup) -> None:
    Client("one").join(group, FOUR)
    group.leave("one", None, -1)
    assert (group.state_name, group.is_empty, group.epoch) == ("Empty", True, 2)
    assert Client("two").join(group, FOUR).member_epoch == 3


def test_changed_subscription_moves_the_member_to_the_other_topic(group: ConsumerGroup) -> None:
    seen = topics(t=2, u=2)
    one = Client("one")
    one.join(group, seen)
    one.confirm(group, seen)
    answer = one.beat(group, seen, subscribed_topic_names=frozenset({"u"}))
    assert answer.assignment == {}, "what is new comes after what is old was given up"
    assert one.confirm(group, seen).assignment == {topic_id("u"): frozenset({0, 1})}


def test_same_subscription_again_changes_nothing(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    epoch = group.epoch
    pair[0].beat(group, FOUR, subscribed_topic_names=frozenset({"t"}))
    assert group.epoch == epoch


def test_majority_of_members_chooses_the_assignor(group: ConsumerGroup) -> None:
    assert group.assignor == "uniform"
    for number, assignor in enumerate(["range", "uniform", "range"]):
        Client(f"m{number}").join(group, FOUR, server_assignor=assignor)
    assert group.assignor == "range"


def test_large_group_computes_its_assignment_once_in_the_interval(group: ConsumerGroup) -> None:
    clients = [Client(f"m{number:03}") for number in range(103)]
    for client in clients:
        client.join(group, FOUR, now=10.0)
    assert group.state_name == "Assigning"
    clients[0].beat(group, FOUR, now=10.5)
    assert group.target_epoch < group.epoch
    clients[0].beat(group, FOUR, now=11.0)
    assert group.target_epoch == group.epoch


# --- topics ----------------------------------------------------------------------------------------------------------


def test_topic_that_grows_is_assigned_anew(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    settle(group, topics(t=6), *pair)
    assert [len(places(client.owned)) for client in pair] == [3, 3]


def test_topic_that_appears_is_assigned(group: ConsumerGroup) -> None:
    one = Client("one")
    assert one.join(group, topics()).assignment == {}
    assert one.beat(group, FOUR).assignment == of_t(0, 1, 2, 3)


def test_deleted_topic_is_taken_away(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    settle(group, topics(), *pair)
    assert [client.owned for client in pair] == [{}, {}]


def test_other_topics_do_not_disturb_the_group(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    epoch = group.epoch
    pair[0].beat(group, topics(t=4, other=7))
    assert group.epoch == epoch


def test_expression_follows_the_topics_that_match_it(group: ConsumerGroup) -> None:
    one = Client("one", names=frozenset(), expression="t.*")
    assert one.join(group, topics(t=1, x=1)).assignment == of_t(0)
    assert one.beat(group, topics(t=1, x=1, tt=1)).assignment == {T: frozenset({0}), topic_id("tt"): frozenset({0})}
    assert group.is_subscribed_to("tt")
    assert not group.is_subscribed_to("x")


def test_first_assignment_holds_what_the_names_and_the_expression_ask_for(group: ConsumerGroup) -> None:
    one = Client("one", names=frozenset({"t"}), expression="x.*")
    assert one.join(group, topics(t=1, x=2)).assignment == {T: frozenset({0}), topic_id("x"): frozenset({0, 1})}
    assert group.epoch == 1


def test_bad_expression_is_refused_and_changes_nothing(group: ConsumerGroup) -> None:
    with pytest.raises(BrokerError) as refusal:
        Client("one", expression="(").join(group, FOUR)
    assert refusal.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group.is_empty
    assert not group.changes


def test_empty_expression_means_none(group: ConsumerGroup) -> None:
    answer = Client("one", expression="").join(group, FOUR)
    assert answer.assignment == of_t(0, 1, 2, 3)


# --- fencing ---------------------------------------------------------------------------------------------------------


def refused(code: ErrorCode, client: Client, group: ConsumerGroup, **fields: Any) -> None:
    with pytest.raises(BrokerError) as refusal:
        client.beat(group, FOUR, **fields)
    assert refusal.value.code == code


def test_unknown_member_is_told_so(group: ConsumerGroup) -> None:
    refused(ErrorCode.UNKNOWN_MEMBER_ID, Client("stranger", epoch=1), group)


def test_epoch_from_the_future_is_fenced(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    pair[0].epoch += 1
    refused(ErrorCode.FENCED_MEMBER_EPOCH, pair[0], group)


def test_epoch_from_the_past_is_fenced(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    pair[0].epoch -= 1
    refused(ErrorCode.FENCED_MEMBER_EPOCH, pair[0], group)


def test_lost_answer_is_forgiven_when_the_member_owns_nothing_it_should_not(group: ConsumerGroup) -> None:
    one = Client("one")
    one.join(group, topics(t=1))
    one.confirm(group, topics(t=1))
    lost = one.epoch
    one.beat(group, topics(t=2))
    one.epoch = lost
    answer = one.beat(
        group, topics(t=2), rebalance_timeout_ms=1, subscribed_topic_names=one.names, owned=dict(one.owned)
    )
    assert (answer.member_epoch, answer.assignment) == (lost + 1, of_t(0, 1))


def test_previous_epoch_with_foreign_partitions_is_fenced(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    one, two = pair
    group.leave(two.member_id, None, -1)
    one.settle(group, FOUR)
    one.epoch = group.members["one"].previous_epoch
    refused(ErrorCode.FENCED_MEMBER_EPOCH, one, group, owned={T: frozenset({7})})


def test_fenced_member_comes_back_with_epoch_zero(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    one, _ = pair
    owned, epoch = dict(one.owned), one.epoch
    answer = one.join(group, FOUR)
    assert (answer.assignment, answer.member_epoch) == (owned, epoch)


def test_group_has_room_for_its_maximum_only() -> None:
    group = ConsumerGroup("g", ConsumerGroupLimits(max_size=1))
    one = Client("one")
    one.join(group, FOUR)
    with pytest.raises(BrokerError) as refusal:
        Client("two").join(group, FOUR)
    assert refusal.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert one.join(group, FOUR).member_epoch == 1, "who is in may come again"


# --- static members --------------------------------------------------------------------------------------------------


def test_static_member_that_comes_back_keeps_its_partitions_and_disturbs_nobody(group: ConsumerGroup) -> None:
    one, two = Client("one", instance_id="i1"), Client("two", instance_id="i2")
    one.join(group, FOUR)
    two.join(group, FOUR)
    settle(group, FOUR, one, two)
    epoch, owned = group.epoch, dict(one.owned)
    assert group.leave("one", "i1", -2).member_epoch == -2
    answer = Client("one-again", instance_id="i1").join(group, FOUR)
    assert (answer.assignment, answer.member_epoch, group.epoch) == (owned, epoch, epoch)
    assert set(group.members) == {"one-again", "two"}


def test_instance_id_in_use_is_not_given_to_another(group: ConsumerGroup) -> None:
    Client("one", instance_id="i").join(group, FOUR)
    with pytest.raises(BrokerError) as refusal:
        Client("two", instance_id="i").join(group, FOUR)
    assert refusal.value.code == ErrorCode.UNRELEASED_INSTANCE_ID


def test_static_member_may_repeat_its_join(group: ConsumerGroup) -> None:
    one = Client("one", instance_id="i")
    assert one.join(group, FOUR) == one.join(group, FOUR)


def test_replaced_static_member_is_fenced(group: ConsumerGroup) -> None:
    one = Client("one", instance_id="i")
    one.join(group, FOUR)
    group.leave("one", "i", -2)
    Client("two", instance_id="i").join(group, FOUR)
    refused(ErrorCode.FENCED_INSTANCE_ID, one, group)
    with pytest.raises(BrokerError) as refusal:
        group.leave("one", "i", -1)
    assert refusal.value.code == ErrorCode.FENCED_INSTANCE_ID


def test_unknown_instance_id_is_told_so(group: ConsumerGroup) -> None:
    refused(ErrorCode.UNKNOWN_MEMBER_ID, Client("one", instance_id="i", epoch=3), group)


def test_static_member_that_stays_away_is_removed_when_its_session_ends(group: ConsumerGroup) -> None:
    Client("one", instance_id="i").join(group, FOUR, now=0.0)
    group.leave("one", "i", -2)
    assert group.expire_members(SESSION_S - 1) == []
    assert group.expire_members(SESSION_S) == ["one"]
    assert group.is_empty


def test_static_member_that_leaves_for_good_is_removed_at_once(group: ConsumerGroup) -> None:
    Client("one", instance_id="i").join(group, FOUR)
    group.leave("one", "i", -1)
    assert group.is_empty


def test_static_member_that_leaves_frees_what_it_was_about_to_revoke(group: ConsumerGroup) -> None:
    one, two = Client("one", instance_id="i"), Client("two")
    one.join(group, FOUR)
    one.confirm(group, FOUR)
    two.join(group, FOUR)
    one.beat(group, FOUR)
    group.leave("one", "i", -2)
    assert two.beat(group, FOUR).assignment == of_t(2, 3)


# --- time ------------------------------------------------------------------------------------------------------------


def test_silent_member_is_removed_after_its_session(group: ConsumerGroup) -> None:
    one, two = Client("one"), Client("two")
    one.join(group, FOUR, now=0.0)
    two.join(group, FOUR, now=0.0)
    settle(group, FOUR, one, two, now=10.0)
    one.beat(group, FOUR, now=40.0)
    assert group.next_deadline() is not None
    assert group.next_deadline() <= 10.0 + SESSION_S  # type: ignore[operator]
    assert group.expire_members(54.9) == []
    assert group.expire_members(55.0) == ["two"]
    assert one.beat(group, FOUR, now=55.0).assignment == of_t(0, 1, 2, 3)
    assert group.next_deadline() == 85.0


def test_member_that_does_not_revoke_in_time_is_removed(group: ConsumerGroup) -> None:
    one, two = Client("one"), Client("two")
    one.join(group, FOUR, now=0.0, rebalance_timeout_ms=10_000)
    one.confirm(group, FOUR)
    two.join(group, FOUR, now=1.0)
    one.beat(group, FOUR, now=2.0)
    one.beat(group, FOUR, now=11.0)
    assert group.expire_members(11.9) == []
    assert group.expire_members(12.0) == ["one"]
    assert two.beat(group, FOUR, now=13.0).assignment == of_t(0, 1, 2, 3)


def test_revocation_in_time_stops_its_timer(group: ConsumerGroup) -> None:
    one, two = Client("one"), Client("two")
    one.join(group, FOUR, rebalance_timeout_ms=10_000)
    one.confirm(group, FOUR)
    two.join(group, FOUR)
    one.settle(group, FOUR)
    assert group.expire_members(20.0) == []


def test_empty_group_that_is_stored_has_no_deadline(group: ConsumerGroup) -> None:
    Client("one").join(group, FOUR)
    group.leave("one", None, -1)
    group.changes = Changes()
    assert group.next_deadline() is None


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_member_may_commit_in_its_own_epoch_only(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    one, _ = pair
    group.check_commit("one", one.epoch, None, is_transactional=False)
    for epoch in (one.epoch - 1, one.epoch + 1, -1):
        with pytest.raises(BrokerError) as refusal:
            group.check_commit("one", epoch, None, is_transactional=False)
        assert refusal.value.code == ErrorCode.STALE_MEMBER_EPOCH


def test_stranger_may_not_commit_to_a_group_with_members(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    with pytest.raises(BrokerError) as refusal:
        group.check_commit("", -1, None, is_transactional=False)
    assert refusal.value.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_admin_may_commit_to_an_empty_group(group: ConsumerGroup) -> None:
    group.check_commit("", -1, None, is_transactional=False)


def test_transactional_commit_needs_no_member_but_is_fenced_when_it_names_one(
    group: ConsumerGroup, pair: tuple[Client, Client]
) -> None:
    group.check_commit("", -1, None, is_transactional=True)
    with pytest.raises(BrokerError) as refusal:
        group.check_commit("one", pair[0].epoch - 1, None, is_transactional=True)
    assert refusal.value.code == ErrorCode.ILLEGAL_GENERATION


def test_offset_fetch_is_fenced_like_a_commit(group: ConsumerGroup, pair: tuple[Client, Client]) -> None:
    group.check_fetch(None, -1)
    group.check_fetch("one", pair[0].epoch)
    with pytest.raises(BrokerError) as stale:
        group.check_fetch("one", pair[0].epoch - 1)
    assert stale.value.code == ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(BrokerError) as unknown:
        group.check_fetch("stranger", 1)
    assert unknown.value.code == ErrorCode.UNKNOWN_MEMBER_ID
