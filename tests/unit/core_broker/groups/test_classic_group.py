"""The classic group protocol, event by event."""

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_MEMBERS_MAX, ClassicGroup, GroupLimits
from core_broker.service.clock import ManualClock
from tests.support.classic_group_world import RANGE, ClassicGroupWorld, subscription


@pytest.fixture
def world() -> ClassicGroupWorld:
    return ClassicGroupWorld()


# --- the first generation -------------------------------------------------------------------------------------------


def test_first_member_becomes_leader_of_generation_one(world: ClassicGroupWorld) -> None:
    ticket = world.join(fresh="a")
    answer = world.join_answers[ticket]
    assert (answer.error_code, answer.generation_id, answer.leader, answer.member_id) == (0, 1, "a", "a")
    assert [member.member_id for member in answer.members] == ["a"]
    assert answer.protocol_name == "range"
    assert world.group.state_name == "CompletingRebalance"


def test_initial_rebalance_waits_for_the_delay_and_takes_all_who_come() -> None:
    world = ClassicGroupWorld(initial_rebalance_delay_ms=3000)
    first, second = world.join(fresh="a"), world.join(fresh="b")
    world.advance(2999)
    assert world.join_answers == {}
    world.advance(3001)
    assert world.join_answers[first].generation_id == 1
    assert [member.member_id for member in world.join_answers[first].members] == ["a", "b"]
    assert world.join_answers[second].members == []


def test_initial_rebalance_delay_is_extended_while_members_come() -> None:
    world = ClassicGroupWorld(initial_rebalance_delay_ms=3000)
    first = world.join(fresh="a")
    world.advance(2000)
    world.join(fresh="b")
    world.advance(1500)
    assert first not in world.join_answers
    world.advance(3000)
    assert world.join_answers[first].generation_id == 1


def test_initial_rebalance_delay_never_exceeds_the_rebalance_timeout() -> None:
    world = ClassicGroupWorld(initial_rebalance_delay_ms=3000)
    first = world.join(fresh="a", rebalance_timeout_ms=7000)
    for number in range(6):
        world.advance(1000)
        world.join(fresh=f"b{number}", rebalance_timeout_ms=7000)
    assert first not in world.join_answers
    world.advance(1000)
    assert first in world.join_answers


def test_members_are_told_their_assignment_when_the_leader_has_brought_it(world: ClassicGroupWorld) -> None:
    world.join(fresh="a")
    world.join(fresh="b")
    world.join("a")
    follower = world.sync("b")
    assert follower not in world.sync_answers
    leader = world.sync("a", {"a": b"0", "b": b"1"})
    assert world.sync_answers[follower].assignment == b"1"
    assert world.sync_answers[leader].assignment == b"0"
    assert world.group.state_name == "Stable"


def test_member_without_an_assignment_gets_an_empty_one(world: ClassicGroupWorld) -> None:
    world.join(fresh="a")
    world.join(fresh="b")
    world.join("a")
    surplus = world.sync("b")
    world.sync("a", {"a": b"everything", "stranger": b"x"})
    assert world.sync_answers[surplus].assignment == b""
    assert world.sync_error(surplus) is ErrorCode.NONE


def test_assignment_is_told_only_after_it_was_stored() -> None:
    world = ClassicGroupWorld(stores_at_once=False)
    world.join(fresh="a")
    ticket = world.sync("a", {"a": b"0"})
    assert ticket not in world.sync_answers
    world.finish_store()
    assert world.sync_answers[ticket].assignment == b"0"


def test_failed_store_sends_everybody_back_to_join() -> None:
    world = ClassicGroupWorld(stores_at_once=False)
    world.join(fresh="a")
    ticket = world.sync("a", {"a": b"0"})
    world.finish_store(ErrorCode.NOT_COORDINATOR)
    assert world.sync_error(ticket) is ErrorCode.NOT_COORDINATOR
    assert world.group.state_name == "PreparingRebalance"


def test_store_that_ends_after_the_next_rebalance_began_changes_nothing() -> None:
    world = ClassicGroupWorld(stores_at_once=False)
    world.join(fresh="a")
    ticket = world.sync("a", {"a": b"0"})
    world.join(fresh="b")
    assert world.sync_error(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
    world.finish_store()
    assert world.group.state_name == "PreparingRebalance"


def test_leader_that_syncs_twice_while_storing_is_stored_once() -> None:
    world = ClassicGroupWorld(stores_at_once=False)
    world.join(fresh="a")
    world.sync("a", {"a": b"0"})
    again = world.sync("a", {"a": b"0"})
    assert len(world.stores) == 1
    world.finish_store()
    assert world.sync_answers[again].assignment == b"0"


def test_stored_group_holds_members_and_assignments() -> None:
    world = ClassicGroupWorld(stores_at_once=False)
    world.join(fresh="a", instance_id="i")
    world.sync("a", {"a": b"0"})
    value = world.stores[0].value
    assert (value.generation, value.protocol, value.leader, value.protocol_type) == (1, "range", "a", "consumer")
    member = value.members[0]
    assert (member.member_id, member.group_instance_id, member.assignment) == ("a", "i", b"0")
    assert member.subscription == RANGE[0][1]


# --- later rebalances -----------------------------------------------------------------------------------------------


def test_newcomer_waits_until_the_others_have_joined_again(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    newcomer = world.join(fresh="b")
    assert world.group.state_name == "PreparingRebalance"
    assert world.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("a")
    assert world.join_answers[newcomer].generation_id == 2


def test_member_that_does_not_join_again_in_time_is_removed(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", session_timeout_ms=100_000)
    world.sync("a", {})
    newcomer = world.join(fresh="b", rebalance_timeout_ms=30_000)
    world.advance(59_999)
    assert newcomer not in world.join_answers
    world.advance(2)
    assert world.join_answers[newcomer].leader == "b"
    assert world.heartbeat("a") is ErrorCode.UNKNOWN_MEMBER_ID


def test_follower_that_joins_again_unchanged_gets_the_current_generation(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    generation = world.group.generation
    answer = world.join_answers[world.join("b")]
    assert (answer.generation_id, answer.members, answer.leader) == (generation, [], "a")
    assert world.group.state_name == "Stable"


def test_leader_that_joins_again_starts_a_rebalance(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    ticket = world.join("a")
    assert ticket not in world.join_answers
    assert world.group.state_name == "PreparingRebalance"


def test_member_with_new_metadata_starts_a_rebalance(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    world.join("b", protocols=(("range", subscription("orders", "payments")),))
    assert world.group.state_name == "PreparingRebalance"


def test_leader_that_lost_its_answer_gets_it_again_with_the_members(world: ClassicGroupWorld) -> None:
    world.join(fresh="a")
    answer = world.join_answers[world.join("a")]
    assert answer.generation_id == 1
    assert [member.member_id for member in answer.members] == ["a"]


def test_second_join_of_the_same_member_answers_the_first(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    first = world.join("a")
    second = world.join("a")
    assert world.join_error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("b")
    assert world.join_error(second) is ErrorCode.NONE


def test_protocol_is_the_one_that_most_members_prefer_among_the_common(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", protocols=(("sticky", b""), ("range", b""), ("own", b"")))
    world.join(fresh="b", protocols=(("range", b""), ("sticky", b"")))
    world.join(fresh="c", protocols=(("other", b""), ("range", b""), ("sticky", b"")))
    world.join("a", protocols=(("sticky", b""), ("range", b""), ("own", b"")))
    assert world.group.protocol_name == "range"


def test_member_without_a_common_protocol_is_refused(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert world.join_error(world.join(protocols=(("sticky", b""),))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join_error(world.join(protocol_type="connect")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join_error(world.join(protocols=())) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.group.state_name == "Stable"


def test_unknown_member_id_is_refused(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert world.join_error(world.join("stranger")) is ErrorCode.UNKNOWN_MEMBER_ID


# --- ids before joining (KIP-394) -----------------------------------------------------------------------------------


def test_new_member_is_first_told_its_id(world: ClassicGroupWorld) -> None:
    ticket = world.join(fresh="a", must_know_its_id=True)
    assert world.join_error(ticket) is ErrorCode.MEMBER_ID_REQUIRED
    assert world.join_answers[ticket].member_id == "a"
    assert world.group.is_empty
    joined = world.join("a", must_know_its_id=True)
    assert world.join_answers[joined].generation_id == 1


def test_rebalance_waits_for_members_that_were_told_their_id(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    world.join(fresh="b", must_know_its_id=True)
    again = world.join("a")
    assert again not in world.join_answers
    world.join("b")
    assert world.join_answers[again].generation_id == 2


def test_id_that_is_never_used_is_forgotten_after_the_session_timeout(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    world.join(fresh="b", must_know_its_id=True, session_timeout_ms=6000)
    again = world.join("a")
    world.advance(6001)
    assert world.join_answers[again].generation_id == 2
    assert world.join_error(world.join("b")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_leaves_before_joining_no_longer_holds_up_the_rebalance(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    world.join(fresh="b", must_know_its_id=True)
    again = world.join("a")
    assert world.leave("b") is ErrorCode.NONE
    assert world.join_answers[again].generation_id == 2


def test_ids_given_out_are_bounded(world: ClassicGroupWorld) -> None:
    for number in range(PENDING_MEMBERS_MAX + 1):
        world.join(fresh=f"id-{number}", must_know_its_id=True)
    assert world.join_error(world.join("id-0")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join_error(world.join("id-1")) is ErrorCode.NONE


# --- sessions -------------------------------------------------------------------------------------------------------


def test_silent_member_is_removed_after_its_session_timeout(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    world.advance(9000)
    assert world.heartbeat("a") is ErrorCode.NONE
    world.advance(1001)
    assert world.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_commit_counts_as_a_sign_of_life(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    world.advance(9000)
    world.group.extend_session("a")
    world.advance(9000)
    assert world.heartbeat("a") is ErrorCode.NONE


def test_member_that_waits_for_a_join_does_not_expire(world: ClassicGroupWorld) -> None:
    world.join(fresh="slow", session_timeout_ms=100_000)
    world.sync("slow", {})
    world.join(fresh="b")
    world.join("b", session_timeout_ms=6000)
    world.advance(50_000)
    assert "b" in world.group.members


def test_new_member_whose_join_waits_too_long_is_removed(world: ClassicGroupWorld) -> None:
    world.join(fresh="slow", session_timeout_ms=1_000_000, rebalance_timeout_ms=1_000_000)
    world.sync("slow", {})
    ticket = world.join(fresh="b")
    world.advance(NEW_MEMBER_JOIN_TIMEOUT_MS + 1)
    assert world.join_error(ticket) is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_never_syncs_is_removed_after_the_rebalance_timeout(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", session_timeout_ms=1_000_000)
    world.join(fresh="b", session_timeout_ms=1_000_000)
    world.join("a", session_timeout_ms=1_000_000)
    world.sync("a", {})
    world.advance(60_001)
    assert "b" not in world.group.members
    assert world.group.state_name == "PreparingRebalance"


def test_followers_do_not_wait_for_ever_for_a_leader_that_never_syncs(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", session_timeout_ms=1_000_000)
    world.join(fresh="b")
    world.join("a", session_timeout_ms=1_000_000)
    ticket = world.sync("b")
    world.advance(60_001)
    assert world.sync_error(ticket) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeat_of_another_generation_is_refused(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert world.heartbeat("a", generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert world.sync_error(world.sync("a", generation=0)) is ErrorCode.ILLEGAL_GENERATION


def test_sync_with_another_protocol_is_refused(world: ClassicGroupWorld) -> None:
    world.join(fresh="a")
    assert world.sync_error(world.sync("a", protocol_name="sticky")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_sync_while_a_rebalance_is_prepared_is_refused(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    world.join(fresh="b")
    assert world.sync_error(world.sync("a")) is ErrorCode.REBALANCE_IN_PROGRESS


def test_late_sync_in_a_stable_group_gets_the_assignment(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    assert world.sync_answers[world.sync("b")].assignment == b"part of b"


# --- leaving --------------------------------------------------------------------------------------------------------


def test_group_is_empty_and_stored_when_the_last_member_leaves(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    world.stores_at_once = False
    assert world.leave("a") is ErrorCode.NONE
    assert world.group.is_empty
    value = world.stores[0].value
    assert (value.generation, value.members, value.protocol, value.leader) == (2, [], None, None)


def test_leaving_leader_hands_over(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    world.leave("a")
    answer = world.join_answers[world.join("b")]
    assert (answer.leader, [member.member_id for member in answer.members]) == ("b", ["b"])


def test_stranger_cannot_leave(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert world.leave("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("") is ErrorCode.UNKNOWN_MEMBER_ID


def test_leave_of_a_member_that_waits_answers_its_join(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    ticket = world.join(fresh="b")
    world.leave("b")
    assert world.join_error(ticket) is ErrorCode.UNKNOWN_MEMBER_ID


# --- static members (KIP-345) ---------------------------------------------------------------------------------------


def test_static_member_that_returns_keeps_its_assignment_without_a_rebalance(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b", instance_ids=("i-a", "i-b"))
    generation = world.group.generation
    answer = world.join_answers[world.join(fresh="b2", instance_id="i-b")]
    assert (answer.error_code, answer.generation_id, answer.member_id) == (0, generation, "b2")
    assert world.group.state_name == "Stable"
    assert world.sync_answers[world.sync("b2", instance_id="i-b")].assignment == b"part of b"


def test_replaced_static_member_is_fenced(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b", instance_ids=("i-a", "i-b"))
    world.join(fresh="b2", instance_id="i-b")
    assert world.heartbeat("b", instance_id="i-b") is ErrorCode.FENCED_INSTANCE_ID
    assert world.sync_error(world.sync("b", instance_id="i-b")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.join_error(world.join("b", instance_id="i-b")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.leave("b", "i-b") is ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
        world.group.check_commit("b", world.group.generation, "i-b", is_transactional=False)


def test_waiting_request_of_a_replaced_static_member_is_fenced(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b", instance_ids=("i-a", "i-b"))
    old = world.join("a", instance_id="i-a")
    world.join(fresh="a2", instance_id="i-a")
    assert world.join_error(old) is ErrorCode.FENCED_INSTANCE_ID


def test_static_leader_that_returns_is_told_to_skip_the_assignment(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b", instance_ids=("i-a", "i-b"))
    answer = world.join_answers[world.join(fresh="a2", instance_id="i-a", can_skip_assignment=True)]
    assert (answer.leader, answer.skip_assignment) == ("a2", True)
    assert {member.member_id for member in answer.members} == {"a2", "b"}


def test_static_leader_of_an_old_client_is_not_told_that_it_leads(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b", instance_ids=("i-a", "i-b"))
    answer = world.join_answers[world.join(fresh="a2", instance_id="i-a")]
    assert (answer.leader, answer.skip_assignment, answer.members) == ("a", False, [])


def test_static_member_that_changes_the_protocol_starts_a_rebalance(world: ClassicGroupWorld) -> None:
    both = (("range", b""), ("sticky", b""))
    world.join(fresh="a", instance_id="i-a", protocols=both)
    world.sync("a", {}, instance_id="i-a")
    ticket = world.join(fresh="a2", instance_id="i-a", protocols=(("sticky", b""),))
    assert world.join_answers[ticket].generation_id == 2
    assert world.group.protocol_name == "sticky"


def test_failed_store_of_a_returning_static_member_brings_the_old_id_back() -> None:
    world = ClassicGroupWorld()
    world.stable_group_of("a", "b", instance_ids=("i-a", "i-b"))
    world.store_error = ErrorCode.NOT_COORDINATOR
    ticket = world.join(fresh="b2", instance_id="i-b")
    assert world.join_error(ticket) is ErrorCode.NOT_COORDINATOR
    assert world.heartbeat("b", instance_id="i-b") is ErrorCode.NONE


def test_static_member_that_returns_while_an_assignment_is_awaited_starts_a_rebalance(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", instance_id="i-a")
    ticket = world.join(fresh="a2", instance_id="i-a")
    assert world.join_answers[ticket].generation_id == 2


def test_static_member_survives_a_rebalance_it_slept_through(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", instance_id="i-a", session_timeout_ms=1_000_000)
    world.sync("a", {}, instance_id="i-a")
    newcomer = world.join(fresh="b", rebalance_timeout_ms=1000)
    world.advance(60_001)
    answer = world.join_answers[newcomer]
    assert answer.leader == "b"
    assert {member.member_id for member in answer.members} == {"a", "b"}


def test_rebalance_is_postponed_while_only_sleeping_static_members_are_left(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b", instance_ids=("i-a", None))
    world.join("a", instance_id="i-a")
    world.leave("b")
    generation = world.group.generation
    world.join(fresh="c", session_timeout_ms=6000)
    world.leave("c")
    world.group.members["a"].session_timeout_ms = 1_000_000
    world.heartbeat("a", instance_id="i-a")
    world.advance(61_000)
    assert world.group.generation == generation
    assert world.group.state_name == "PreparingRebalance"


def test_static_member_can_be_removed_by_its_instance_id_alone(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", instance_ids=("i-a",))
    assert world.leave("", "i-a") is ErrorCode.NONE
    assert world.group.is_empty
    assert world.leave("", "i-a") is ErrorCode.UNKNOWN_MEMBER_ID


def test_unknown_instance_id_is_refused(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert world.heartbeat("a", instance_id="i-x") is ErrorCode.UNKNOWN_MEMBER_ID


# --- size -----------------------------------------------------------------------------------------------------------


def test_group_takes_no_more_members_than_allowed() -> None:
    world = ClassicGroupWorld(size_max=2)
    world.stable_group_of("a", "b")
    ticket = world.join(fresh="c")
    assert world.join_error(ticket) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.group.state_name == "Stable"


def test_last_to_join_again_is_turned_away_when_newcomers_took_the_room() -> None:
    world = ClassicGroupWorld(size_max=2)
    world.stable_group_of("a", "b")
    world.join("a")
    world.join("b")
    world.sync("a", {})
    world.join("a")
    newcomer = world.join(fresh="c")
    assert world.join_error(world.join("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join_error(newcomer) is ErrorCode.NONE


# --- commits --------------------------------------------------------------------------------------------------------


def refusal(group: ClassicGroup, member_id: str, generation: int, *, is_transactional: bool = False) -> ErrorCode:
    try:
        group.check_commit(member_id, generation, None, is_transactional=is_transactional)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def test_empty_group_takes_commits_of_anybody_without_a_generation(world: ClassicGroupWorld) -> None:
    assert refusal(world.group, "", -1) is ErrorCode.NONE
    assert refusal(world.group, "a", 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_group_with_members_takes_commits_of_its_members_only(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert refusal(world.group, "a", 1) is ErrorCode.NONE
    assert refusal(world.group, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(world.group, "b", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(world.group, "a", 0) is ErrorCode.ILLEGAL_GENERATION


def test_old_transactional_clients_may_commit_without_saying_who_they_are(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert refusal(world.group, "", -1, is_transactional=True) is ErrorCode.NONE
    assert refusal(world.group, "a", 0, is_transactional=True) is ErrorCode.ILLEGAL_GENERATION


def test_commit_between_join_and_sync_is_refused_but_one_before_joining_again_is_not(world: ClassicGroupWorld) -> None:
    world.join(fresh="a")
    assert refusal(world.group, "a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync("a", {})
    world.join(fresh="b")
    assert world.group.state_name == "PreparingRebalance"
    assert refusal(world.group, "a", 1) is ErrorCode.NONE


# --- what others ask ------------------------------------------------------------------------------------------------


def test_group_is_subscribed_to_what_its_members_read(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a")
    assert world.group.is_subscribed_to("orders")
    assert not world.group.is_subscribed_to("payments")
    world.leave("a")
    assert not world.group.is_subscribed_to("orders")


def test_group_whose_subscriptions_cannot_be_read_counts_as_subscribed_to_everything(world: ClassicGroupWorld) -> None:
    world.join(fresh="a", protocols=(("range", b"\xff"),))
    assert world.group.is_subscribed_to("anything")


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty(world: ClassicGroupWorld) -> None:
    assert world.group.offsets_expire_from_ms(5) == 5, "a group that never had members"
    world.stable_group_of("a")
    assert world.group.offsets_expire_from_ms(5) == 5
    world.clock.advance(1234)
    world.leave("a")
    assert world.group.offsets_expire_from_ms(5) == world.clock.now_ms()
    world.join(fresh="b")
    assert world.group.offsets_expire_from_ms(5) is None


def test_restored_group_goes_on_where_it_was() -> None:
    world = ClassicGroupWorld(stores_at_once=False)
    world.join(fresh="a", instance_id="i-a")
    world.sync("a", {"a": b"0"}, instance_id="i-a")
    value = world.stores[0].value
    restored = ClassicGroup("readers", clock=ManualClock(), limits=GroupLimits())
    restored.restore(value)
    assert restored.state_name == "Stable"
    assert restored.heartbeat("a", 1, "i-a") is ErrorCode.NONE
    assert restored.is_subscribed_to("orders")
    assert restored.members["a"].assignment == b"0"
    assert restored.next_deadline() is not None


def test_unloaded_group_answers_everybody_who_waits(world: ClassicGroupWorld) -> None:
    world.stable_group_of("a", "b")
    joining = world.join("a")
    world.perform(world.group.unload(ErrorCode.NOT_COORDINATOR))
    assert world.join_error(joining) is ErrorCode.NOT_COORDINATOR
    assert world.heartbeat("b") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.join_error(world.join(fresh="c")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
