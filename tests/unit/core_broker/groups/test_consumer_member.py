"""How a member is led from what it owns to its target."""

from core_broker.groups.assignors import Assignment
from core_broker.groups.consumer_member import ConsumerMember, MemberState, is_subset, reconcile

TOPIC = b"t" * 16


def partitions(*numbers: int) -> Assignment:
    return {TOPIC: frozenset(numbers)} if numbers else {}


def member(
    *assigned: int, epoch: int = 5, state: MemberState = MemberState.STABLE, pending: tuple[int, ...] = ()
) -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=partitions(*assigned),
        pending_revocation=partitions(*pending),
    )


def step(
    before: ConsumerMember,
    target: Assignment,
    *,
    epoch: int = 6,
    owned: Assignment | None = None,
    taken: tuple[int, ...] = (),
) -> ConsumerMember:
    return reconcile(
        before, target=target, target_epoch=epoch, owned=owned, is_free=lambda _topic, number: number not in taken
    )


def test_member_at_its_target_stays_the_same() -> None:
    before = member(1, 2, epoch=6)
    assert step(before, partitions(1, 2)) is before


def test_member_with_nothing_to_give_up_gets_free_partitions_and_the_new_epoch() -> None:
    after = step(member(1), partitions(1, 2))
    assert (after.state, after.epoch, after.previous_epoch) == (MemberState.STABLE, 6, 5)
    assert after.assigned == partitions(1, 2)


def test_member_that_must_give_up_partitions_stays_in_its_epoch() -> None:
    after = step(member(1, 2), partitions(2, 3))
    assert (after.state, after.epoch) == (MemberState.UNREVOKED_PARTITIONS, 5)
    assert after.assigned == partitions(2)
    assert after.pending_revocation == partitions(1)


def test_heartbeat_without_owned_partitions_confirms_nothing() -> None:
    waiting = member(2, state=MemberState.UNREVOKED_PARTITIONS, pending=(1,))
    assert step(waiting, partitions(2, 3), owned=None) is waiting


def test_member_that_still_owns_one_of_the_revoked_partitions_waits() -> None:
    waiting = member(3, state=MemberState.UNREVOKED_PARTITIONS, pending=(1, 2))
    assert step(waiting, partitions(3), owned=partitions(2, 3)) is waiting


def test_confirmed_revocation_moves_the_member_on() -> None:
    waiting = member(2, state=MemberState.UNREVOKED_PARTITIONS, pending=(1,))
    after = step(waiting, partitions(2, 3), owned=partitions(2))
    assert (after.state, after.epoch) == (MemberState.STABLE, 6)
    assert (after.assigned, after.pending_revocation) == (partitions(2, 3), {})


def test_member_that_has_already_dropped_the_partitions_skips_the_waiting() -> None:
    after = step(member(1, 2), partitions(2), owned=partitions(2))
    assert (after.state, after.epoch, after.assigned) == (MemberState.STABLE, 6, partitions(2))


def test_target_that_changed_again_during_a_revocation_asks_for_the_next_one() -> None:
    waiting = member(2, 3, state=MemberState.UNREVOKED_PARTITIONS, pending=(1,))
    after = step(waiting, partitions(3), owned=partitions(2, 3), epoch=7)
    assert (after.state, after.epoch) == (MemberState.UNREVOKED_PARTITIONS, 5)
    assert (after.assigned, after.pending_revocation) == (partitions(3), partitions(2))


def test_partition_of_another_owner_is_not_given_out() -> None:
    after = step(member(), partitions(1, 2), taken=(2,))
    assert (after.state, after.epoch) == (MemberState.UNRELEASED_PARTITIONS, 6)
    assert after.assigned == partitions(1)


def test_member_that_gets_nothing_yet_is_in_the_new_epoch_all_the_same() -> None:
    after = step(member(), partitions(1), taken=(1,))
    assert (after.state, after.epoch, after.assigned) == (MemberState.UNRELEASED_PARTITIONS, 6, {})


def test_released_partition_completes_the_waiting_member() -> None:
    waiting = member(1, epoch=6, state=MemberState.UNRELEASED_PARTITIONS)
    after = step(waiting, partitions(1, 2))
    assert (after.state, after.assigned) == (MemberState.STABLE, partitions(1, 2))


def test_waiting_member_stays_the_same_while_nothing_is_released() -> None:
    waiting = member(1, epoch=6, state=MemberState.UNRELEASED_PARTITIONS)
    assert step(waiting, partitions(1, 2), taken=(2,)) is waiting


def test_previous_epoch_survives_steps_inside_one_epoch() -> None:
    waiting = member(1, epoch=6, state=MemberState.UNRELEASED_PARTITIONS)
    assert step(waiting, partitions(1, 2)).previous_epoch == 5


def test_subset_compares_topic_by_topic() -> None:
    assert is_subset(partitions(1), partitions(1, 2))
    assert is_subset({}, partitions(1))
    assert not is_subset(partitions(1, 3), partitions(1, 2))
    assert not is_subset({b"x" * 16: frozenset((1,))}, partitions(1))


def test_state_of_a_later_version_is_read_as_waiting() -> None:
    assert MemberState(77) is MemberState.UNRELEASED_PARTITIONS
