import pytest

from core_broker.cluster.controller.transitions import (
    RECOVERED,
    RECOVERING,
    Election,
    Rules,
    Wish,
    change_record,
    completed_reassignment,
)
from core_broker.cluster.metadata import PartitionImage, apply_change
from core_broker.protocol.stored.metadata import PartitionChangeRecord

UNCHANGED = -2


def partition(**fields: object) -> PartitionImage:
    """Three replicas in sync, led by the first."""
    values: dict[str, object] = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader_id": 1,
        "leader_epoch": 5,
        "partition_epoch": 7,
        **fields,
    }
    return PartitionImage(**values)  # type: ignore[arg-type] # fields by name


def rules(*active: int, min_isr: int = 2, has_elr: bool = True, allows_unclean: bool = False) -> Rules:
    return Rules(
        is_acceptable=lambda broker_id: broker_id in active,
        min_isr=min_isr,
        has_elr=has_elr,
        allows_unclean=allows_unclean,
    )


def change(old: PartitionImage, wish: Wish, using: Rules) -> PartitionChangeRecord:
    record = change_record(old, wish, using, topic_id=b"t" * 16, index=0)
    assert record is not None
    return record


def changed(old: PartitionImage, wish: Wish, using: Rules) -> PartitionImage:
    return apply_change(old, change(old, wish, using))


def test_a_wish_that_is_fulfilled_already_writes_nothing() -> None:
    assert change_record(partition(), Wish(isr=(1, 2, 3)), rules(1, 2, 3), topic_id=b"", index=0) is None


def test_kafka_15021_a_smaller_isr_does_not_begin_a_new_leader_epoch() -> None:
    record = change(partition(), Wish(isr=(1, 2)), rules(1, 2, 3))
    assert (record.leader, record.isr) == (UNCHANGED, [1, 2])


def test_kafka_9672_a_replica_that_is_not_assigned_leaves_the_isr() -> None:
    after = changed(partition(), Wish(replicas=(1, 2)), rules(1, 2, 3))
    assert after.isr == (1, 2)


def test_the_first_replica_in_sync_leads_after_the_leader() -> None:
    after = changed(partition(isr=(3, 1, 2)), Wish(isr=(3, 2)), rules(2, 3))
    assert (after.leader_id, after.leader_epoch) == (2, 6)


def test_a_replica_that_leaves_below_the_minimum_stays_eligible() -> None:
    after = changed(partition(isr=(1, 2)), Wish(isr=(1,)), rules(1))
    assert (after.isr, after.elr) == ((1,), (2,))


def test_no_replica_is_eligible_while_the_isr_is_large_enough() -> None:
    after = changed(partition(isr=(1,), elr=(2,)), Wish(isr=(1, 3)), rules(1, 3))
    assert (after.isr, after.elr) == ((1, 3), ())


def test_a_minimum_above_the_number_of_replicas_is_that_number() -> None:
    after = changed(partition(replicas=(1,), isr=(1,)), Wish(isr=()), rules(min_isr=3))
    assert (after.leader_id, after.isr, after.elr, after.last_known_elr) == (-1, (), (1,), (1,))


def test_an_eligible_replica_leads_when_the_isr_is_empty() -> None:
    old = partition(isr=(), elr=(2, 3), leader_id=-1, last_known_elr=(2,))
    after = changed(old, Wish(), rules(3))
    assert (after.leader_id, after.isr, after.elr, after.last_known_elr) == (3, (3,), (2,), ())
    assert after.leader_recovery_state == RECOVERED


def test_the_others_are_not_eligible_once_an_eligible_leader_can_commit_alone() -> None:
    old = partition(isr=(), elr=(2, 3), leader_id=-1, last_known_elr=(2,))
    after = changed(old, Wish(), rules(3, min_isr=1))
    assert (after.isr, after.elr) == ((3,), ())


def test_an_eligible_replica_does_not_lead_while_the_isr_has_members() -> None:
    old = partition(isr=(1,), elr=(2,), leader_id=1)
    after = changed(old, Wish(recovery_state=RECOVERING), rules(2))
    assert after.leader_id == -1


def test_kafka_18635_a_replica_that_lost_records_is_neither_in_sync_nor_eligible() -> None:
    after = changed(partition(isr=(1, 2)), Wish(isr=(1,), unclean_replicas=frozenset({2})), rules(1))
    assert (after.isr, after.elr) == ((1,), ())


def test_the_last_leader_is_remembered_and_leads_again_if_no_other_replica_has_everything() -> None:
    crashed = changed(partition(isr=(2,), leader_id=2), Wish(isr=(), unclean_replicas=frozenset({2})), rules(1))
    assert (crashed.leader_id, crashed.isr, crashed.elr, crashed.last_known_elr) == (-1, (), (), (2,))
    after = changed(crashed, Wish(), rules(1, 2))
    assert (after.leader_id, after.isr, after.leader_recovery_state) == (2, (2,), RECOVERING)


def test_kafka_19522_a_fenced_last_leader_is_not_elected() -> None:
    old = partition(isr=(), elr=(), leader_id=-1, last_known_elr=(2,))
    assert change_record(old, Wish(), rules(1, 3), topic_id=b"", index=0) is None


def test_an_unclean_election_needs_permission_and_forgets_the_eligible_replicas() -> None:
    old = partition(isr=(), elr=(2,), leader_id=-1, last_known_elr=(2,))
    assert change_record(old, Wish(), rules(3), topic_id=b"", index=0) is None
    after = changed(old, Wish(), rules(3, allows_unclean=True))
    assert (after.leader_id, after.isr, after.elr, after.last_known_elr) == (3, (3,), (), ())
    assert after.leader_recovery_state == RECOVERING


def test_without_elr_the_last_member_stays_in_the_isr() -> None:
    after = changed(partition(isr=(2,), leader_id=2), Wish(isr=()), rules(1, has_elr=False))
    assert (after.leader_id, after.isr, after.elr, after.last_known_elr) == (-1, (2,), (), ())
    assert changed(after, Wish(), rules(1, 2, has_elr=False)).leader_id == 2


def test_a_preferred_election_moves_leadership_only_to_a_replica_in_sync() -> None:
    wish = Wish(election=Election.PREFERRED)
    assert changed(partition(leader_id=2), wish, rules(1, 2, 3)).leader_id == 1
    assert change_record(partition(leader_id=2, isr=(2, 3)), wish, rules(1, 2, 3), topic_id=b"", index=0) is None


def test_a_removed_replica_begins_a_new_leader_epoch() -> None:
    old = partition(replicas=(1, 2, 3, 4), isr=(1, 2, 3), adding_replicas=(4,), removing_replicas=(3,))
    after = changed(old, Wish(isr=(1, 2, 3, 4)), rules(1, 2, 3, 4))
    assert (after.replicas, after.isr, after.adding_replicas, after.removing_replicas) == ((1, 2, 4), (1, 2, 4), (), ())
    assert (after.leader_id, after.leader_epoch) == (1, 6)


def test_new_replicas_have_no_directory_yet_and_old_ones_keep_theirs() -> None:
    old = partition(replicas=(1, 2), isr=(1, 2), directories=(b"a" * 16, b"b" * 16))
    after = changed(old, Wish(replicas=(2, 1, 3), adding=(3,)), rules(1, 2, 3))
    assert after.directories == (b"b" * 16, b"a" * 16, bytes(15) + b"\x01")


@pytest.mark.parametrize(
    "replicas,adding,removing,isr,expected",
    [
        ((1, 2, 3), (), (), (1, 2, 3), None),
        ((1, 2, 3), (3,), (), (1, 2), None),
        ((1, 2, 3), (3,), (), (1, 2, 3), ((1, 2, 3), (1, 2, 3))),
        ((3, 4, 1, 2), (3, 4), (1, 2), (1, 2, 3), None),
        ((3, 4, 1, 2), (3, 4), (1, 2), (4, 3), ((3, 4), (4, 3))),
        ((1, 2, 3), (), (1, 2, 3), (1, 2, 3), None),
    ],
)
def test_a_reassignment_is_complete_when_the_new_replicas_are_in_sync(
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    isr: tuple[int, ...],
    expected: object,
) -> None:
    assert completed_reassignment(replicas, adding, removing, isr) == expected


@pytest.mark.parametrize(
    "replicas,adding,removing,isr,is_complete",
    [
        ((0, 1, 2, 3), (3,), (), (0, 1, 3), True),
        ((1, 2, 3, 0), (3,), (0,), (0, 1, 3), True),
        ((2, 3, 4, 0, 1), (3, 4), (0, 1), (0, 1, 3, 4), True),
        ((1, 2, 0), (), (0,), (0, 1), False),  # fewer replicas than before: all must be in sync
        ((1, 2, 0), (), (0,), (0, 1, 2), True),
    ],
)
def test_kafka_19975_a_replica_that_stays_may_be_out_of_sync(
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    isr: tuple[int, ...],
    is_complete: bool,
) -> None:
    assert (completed_reassignment(replicas, adding, removing, isr) is not None) == is_complete
