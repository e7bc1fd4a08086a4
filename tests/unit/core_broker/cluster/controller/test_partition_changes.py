import pytest

from core_broker.cluster.controller.elections import plan_controlled_shutdown
from core_broker.cluster.controller.partition_changes import plan_alter_partition
from core_broker.cluster.controller.reassignments import Reassigner
from core_broker.cluster.controller.transitions import RECOVERED, RECOVERING
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from tests.support.controller_world import ControllerWorld


@pytest.fixture
def world() -> ControllerWorld:
    world = ControllerWorld()
    world.start(1, 2, 3)
    world.create([1, 2, 3], min_insync_replicas="2")
    return world


def alter(world: ControllerWorld, request: AlterPartitionRequest) -> AlterPartitionResponsePartitionData:
    records, response = plan_alter_partition(request, world.image, world.settings)
    world.apply(records)
    return response.topics[0].partitions[0]


def error(world: ControllerWorld, request: AlterPartitionRequest) -> int:
    before = world.image
    records, response = plan_alter_partition(request, world.image, world.settings)
    assert records == []
    assert world.image is before
    return response.topics[0].partitions[0].error_code


def test_the_leader_shrinks_and_expands_the_isr(world: ControllerWorld) -> None:
    answer = alter(world, world.proposal(1, 2))
    assert (answer.error_code, answer.isr, answer.leader_id) == (0, [1, 2], 1)
    assert (answer.leader_epoch, answer.partition_epoch) == (0, 1)
    assert world.partition.isr == (1, 2)
    assert alter(world, world.proposal(1, 2, 3)).isr == [1, 2, 3]


def test_version_2_names_the_members_without_epochs(world: ControllerWorld) -> None:
    assert alter(world, world.proposal(new_isr=[1, 3], new_isr_with_epochs=[])).isr == [1, 3]


@pytest.mark.parametrize(
    "fields,code",
    [
        ({"partition_index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_proposal_from_another_time_is_refused(world: ControllerWorld, fields: dict[str, object], code: int) -> None:
    assert error(world, world.proposal(1, 2, **fields)) == code  # type: ignore[arg-type] # fields by name


def test_an_unknown_topic_and_a_stale_sender_are_refused(world: ControllerWorld) -> None:
    request = world.proposal(1, 2)
    request.topics[0].topic_id = b"x" * 16
    assert error(world, request) == ErrorCode.UNKNOWN_TOPIC_ID
    request.broker_epoch += 1
    with pytest.raises(BrokerError) as refused:
        plan_alter_partition(request, world.image, world.settings)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_only_the_leader_may_change_the_isr(world: ControllerWorld) -> None:
    request = world.proposal(1, 2)
    request.broker_id, request.broker_epoch = 2, world.broker(2).epoch
    assert error(world, request) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("isr", [(1, 2, 4), (1, 2, 2), (2, 3)])
def test_kafka_9672_an_isr_that_does_not_fit_the_replicas_is_refused(
    world: ControllerWorld, isr: tuple[int, ...]
) -> None:
    assert error(world, world.proposal(*isr)) == ErrorCode.INVALID_REQUEST


def test_kafka_13916_a_fenced_replica_does_not_join(world: ControllerWorld) -> None:
    world.fence(3)
    assert error(world, world.proposal(1, 2, 3)) == ErrorCode.INELIGIBLE_REPLICA


def test_kafka_14140_a_stopping_replica_does_not_join(world: ControllerWorld) -> None:
    world.apply(plan_controlled_shutdown(world.broker(3), world.image, world.settings))
    assert world.partition.isr == (1, 2)
    assert error(world, world.proposal(1, 2, 3)) == ErrorCode.INELIGIBLE_REPLICA


def test_kafka_14617_a_replica_that_was_restarted_meanwhile_does_not_join(world: ControllerWorld) -> None:
    stale = world.broker(3).epoch
    world.fence(3)
    world.start(3)
    members = [BrokerState(1, world.broker(1).epoch), BrokerState(2, -1), BrokerState(3, stale)]
    assert error(world, world.proposal(new_isr_with_epochs=members)) == ErrorCode.INELIGIBLE_REPLICA
    members[2] = BrokerState(3, world.broker(3).epoch)
    assert alter(world, world.proposal(new_isr_with_epochs=members)).isr == [1, 2, 3]


def test_kafka_14144_a_proposal_that_is_sent_again_succeeds_though_its_epoch_is_old(world: ControllerWorld) -> None:
    request = world.proposal(1, 2)
    assert alter(world, request).partition_epoch == 1
    again = alter(world, request)
    assert (again.error_code, again.isr, again.partition_epoch) == (0, [1, 2], 1)


def test_a_leader_that_has_recovered_says_so(world: ControllerWorld) -> None:
    world.configure(unclean_leader_election_enable="true", min_insync_replicas="1")
    alter(world, world.proposal(1))
    world.fence(1)
    assert (world.partition.leader_id, world.partition.leader_recovery_state) == (2, RECOVERING)
    assert error(world, world.proposal(2, 3, leader_recovery_state=RECOVERING)) == ErrorCode.INVALID_REQUEST
    assert alter(world, world.proposal(2)).leader_recovery_state == RECOVERED


def test_a_change_that_moves_the_leader_away_is_written_and_answered_with_new_leader_elected(
    world: ControllerWorld,
) -> None:
    world.start(4)
    record = Reassigner(world.image, world.rules).plan("t", 0, [2, 3, 4])
    assert record is not None
    world.apply([record])
    assert alter(world, world.proposal(1, 2, 3, 4)).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (world.partition.replicas, world.partition.leader_id) == ((2, 3, 4), 2)
