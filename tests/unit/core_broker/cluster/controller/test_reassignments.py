import pytest

from core_broker.cluster.controller.partition_changes import plan_alter_partition
from core_broker.cluster.controller.reassignments import Reassigner
from core_broker.errors import BrokerError, ErrorCode
from tests.support.controller_world import ControllerWorld


@pytest.fixture
def world() -> ControllerWorld:
    world = ControllerWorld()
    world.start(1, 2, 3, 4, 5)
    world.create([1, 2, 3], min_insync_replicas="2")
    return world


def reassign(world: ControllerWorld, *target: int, allow_factor_change: bool = True) -> None:
    reassigner = Reassigner(world.image, world.rules, allow_factor_change=allow_factor_change)
    record = reassigner.plan("t", 0, target)
    world.apply([] if record is None else [record])


def cancel(world: ControllerWorld) -> None:
    record = Reassigner(world.image, world.rules).plan("t", 0, None)
    assert record is not None
    world.apply([record])


def set_isr(world: ControllerWorld, *isr: int) -> None:
    records, _ = plan_alter_partition(world.proposal(*isr), world.image, world.settings)
    assert records
    world.apply(records)


def state(world: ControllerWorld) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    partition = world.partition
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_a_reassignment_adds_replicas_first_and_removes_the_old_ones_when_they_are_in_sync(
    world: ControllerWorld,
) -> None:
    reassign(world, 4, 5, 3)
    assert state(world) == ((4, 5, 3, 1, 2), (4, 5), (1, 2))
    assert (world.partition.leader_id, world.partition.isr) == (1, (1, 2, 3))
    set_isr(world, 1, 2, 3, 4)
    assert state(world)[1] == (4, 5)
    set_isr(world, 1, 2, 3, 4, 5)
    assert state(world) == ((4, 5, 3), (), ())
    assert (world.partition.leader_id, set(world.partition.isr)) == (4, {3, 4, 5})


def test_the_same_replicas_in_another_order_are_assigned_at_once(world: ControllerWorld) -> None:
    reassign(world, 3, 1, 2)
    assert state(world) == ((3, 1, 2), (), ())
    assert (world.partition.leader_id, world.partition.leader_epoch) == (1, 0)


def test_the_current_replicas_change_nothing(world: ControllerWorld) -> None:
    before = world.image
    reassign(world, 1, 2, 3)
    assert world.partition == before.topics["t"].partitions[0]


def test_fewer_replicas_are_assigned_at_once_if_they_are_in_sync(world: ControllerWorld) -> None:
    reassign(world, 2, 3)
    assert state(world) == ((2, 3), (), ())
    assert world.partition.leader_id == 2


def test_fewer_replicas_wait_until_all_of_them_are_in_sync(world: ControllerWorld) -> None:
    set_isr(world, 1, 2)
    reassign(world, 2, 3)
    assert state(world) == ((2, 3, 1), (), (1,))
    set_isr(world, 1, 2, 3)
    assert state(world) == ((2, 3), (), ())


def test_kafka_19975_a_dead_replica_that_stays_does_not_block_the_reassignment(world: ControllerWorld) -> None:
    world.fence(3)
    reassign(world, 1, 2, 3, 4)
    set_isr(world, 1, 2, 4)
    assert state(world) == ((1, 2, 3, 4), (), ())


def test_a_running_reassignment_is_replaced(world: ControllerWorld) -> None:
    reassign(world, 1, 2, 4)
    reassign(world, 1, 2, 5)
    assert state(world) == ((1, 2, 5, 3, 4), (5,), (3, 4))
    set_isr(world, 1, 2, 3, 5)
    assert state(world) == ((1, 2, 5), (), ())


def test_a_replica_that_is_added_already_is_still_awaited_after_a_replacement(world: ControllerWorld) -> None:
    reassign(world, 1, 2, 4)
    reassign(world, 1, 4, 5)
    assert state(world) == ((1, 4, 5, 2, 3), (4, 5), (2, 3))


def test_a_reassignment_back_to_the_old_replicas_ends_at_once(world: ControllerWorld) -> None:
    reassign(world, 1, 2, 4)
    reassign(world, 1, 2, 3)
    assert state(world) == ((1, 2, 3), (), ())


def test_a_cancelled_reassignment_leaves_the_old_replicas(world: ControllerWorld) -> None:
    reassign(world, 4, 5, 3)
    set_isr(world, 1, 2, 3, 4)
    cancel(world)
    assert state(world) == ((3, 1, 2), (), ())
    assert (world.partition.leader_id, set(world.partition.isr)) == (1, {1, 2, 3})


def test_a_cancellation_that_would_lose_records_is_refused(world: ControllerWorld) -> None:
    world.configure(min_insync_replicas="1")
    reassign(world, 4, 5)
    set_isr(world, 1, 4)
    world.fence(1)
    assert (world.partition.isr, world.partition.elr) == ((4,), ())
    with pytest.raises(BrokerError) as refused:
        cancel(world)
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_cancellation_elects_an_eligible_old_replica(world: ControllerWorld) -> None:
    reassign(world, 4, 5)
    set_isr(world, 1, 4)
    world.fence(1)
    assert (world.partition.isr, world.partition.elr) == ((4,), (1,))
    cancel(world)
    assert (world.partition.leader_id, world.partition.isr, world.partition.elr) == (-1, (), (1,))
    world.unfence(1)
    assert (world.partition.leader_id, world.partition.isr) == (1, (1,))


@pytest.mark.parametrize(
    "target,code",
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_a_bad_target_is_refused(world: ControllerWorld, target: list[int] | None, code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refused:
        Reassigner(world.image, world.rules).plan("t", 0, target)
    assert refused.value.code is code


def test_the_number_of_replicas_changes_only_if_the_request_allows_that(world: ControllerWorld) -> None:
    reassign(world, 1, 2, 4, allow_factor_change=False)
    with pytest.raises(BrokerError) as refused:
        reassign(world, 1, 2, allow_factor_change=False)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_an_unknown_partition_is_refused(world: ControllerWorld) -> None:
    for topic, index in (("t", 9), ("u", 0)):
        with pytest.raises(BrokerError) as refused:
            Reassigner(world.image, world.rules).plan(topic, index, [1])
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
