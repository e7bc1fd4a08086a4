import pytest

from core_broker.cluster.controller.elections import (
    leads_partitions,
    plan_controlled_shutdown,
    plan_election,
    plan_offline_directories,
    plan_rebalance,
)
from core_broker.cluster.controller.partition_changes import plan_alter_partition
from core_broker.cluster.controller.replica_directories import plan_directories
from core_broker.cluster.controller.transitions import RECOVERING, Election
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tests.support.controller_world import ControllerWorld


@pytest.fixture
def world() -> ControllerWorld:
    world = ControllerWorld()
    world.start(1, 2, 3)
    world.create([1, 2, 3], [2, 3, 1], [3, 1, 2], min_insync_replicas="2")
    return world


def leaders(world: ControllerWorld) -> list[int]:
    return [partition.leader_id for partition in world.topic.partitions.values()]


def test_a_fenced_broker_leaves_every_isr_and_others_lead_its_partitions(world: ControllerWorld) -> None:
    world.fence(1)
    assert world.broker(1).is_fenced
    assert leaders(world) == [2, 2, 3]
    assert [set(partition.isr) for partition in world.topic.partitions.values()] == [{2, 3}] * 3


def test_a_partition_survives_the_loss_of_all_its_brokers_one_after_the_other(world: ControllerWorld) -> None:
    world.fence(1, 2, 3)
    assert leaders(world) == [-1, -1, -1]
    # The ISR was large enough without broker 1.
    assert (world.partition.isr, set(world.partition.elr)) == ((), {2, 3})
    world.unfence(1)
    assert leaders(world) == [-1, -1, -1]
    world.unfence(2)
    assert leaders(world) == [2, 2, 2]
    assert (world.partition.isr, world.partition.elr, world.partition.last_known_elr) == ((2,), (3,), ())


def test_a_stopping_broker_hands_over_and_leads_nothing_more(world: ControllerWorld) -> None:
    world.apply(plan_controlled_shutdown(world.broker(1), world.image, world.settings))
    assert world.broker(1).in_controlled_shutdown
    assert not leads_partitions(1, world.image)
    world.fence(2, 3)
    assert leaders(world) == [-1, -1, -1]


def test_unclean_election_is_off_by_default_and_elects_when_it_is_switched_on(world: ControllerWorld) -> None:
    world.configure(min_insync_replicas="1")
    world.fence(2, 3, 1)
    assert (world.partition.isr, world.partition.elr) == ((), (1,))
    world.unfence(3)
    assert leaders(world) == [-1, -1, -1]
    world.configure(unclean_leader_election_enable="true")
    assert leaders(world) == [3, 3, 3]
    assert world.partition.leader_recovery_state == RECOVERING


def test_a_lower_minimum_ends_the_eligibility_of_replicas_that_may_miss_records(world: ControllerWorld) -> None:
    world.fence(2, 3)
    assert (world.partition.isr, world.partition.elr) == ((1,), (3,))
    world.configure(min_insync_replicas="1")
    assert (world.partition.isr, world.partition.elr) == ((1,), ())


def test_a_lower_minimum_leaves_a_partition_without_leader_its_eligible_replicas(world: ControllerWorld) -> None:
    world.fence(1, 2, 3)
    world.configure(min_insync_replicas="1")
    assert set(world.partition.elr) == {2, 3}
    world.unfence(3)
    assert (world.partition.leader_id, world.partition.isr, world.partition.elr) == (3, (3,), ())


def test_replicas_in_a_failed_directory_leave_their_isr(world: ControllerWorld) -> None:
    world.start(4, log_dirs=[b"good" + bytes(12), b"bad!" + bytes(12)])
    image, settings = world.image, world.settings
    assert plan_offline_directories(world.broker(4), [b"none" + bytes(12)], image, settings) == []
    request = AssignReplicasToDirsRequest(
        1, world.broker(1).epoch, [DirectoryData(b"\x01" * 16, [TopicData(world.topic.topic_id, [PartitionData(0)])])]
    )
    records, response = plan_directories(request, image, settings)
    assert response.directories[0].topics[0].partitions[0].error_code == 0
    world.apply(records)
    world.apply(plan_offline_directories(world.broker(1), [b"\x01" * 16], world.image, settings))
    assert leaders(world) == [2, 2, 3]
    assert world.partition.isr == (2, 3)
    assert world.topic.partitions[1].isr == (2, 3, 1)  # its directory is unknown


def elect(world: ControllerWorld, election: Election, index: int = 0) -> None:
    world.apply([plan_election("t", index, election, world.image, world.rules)])


def refusal(world: ControllerWorld, election: Election, topic: str = "t", index: int = 0) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        plan_election(topic, index, election, world.image, world.rules)
    return refused.value.code


def rejoin(world: ControllerWorld, broker_id: int, index: int) -> None:
    isr = (*world.topic.partitions[index].isr, broker_id)
    records, _ = plan_alter_partition(world.proposal(*isr, index=index), world.image, world.settings)
    assert records
    world.apply(records)


def test_the_preferred_leader_is_elected_once_it_is_in_sync(world: ControllerWorld) -> None:
    assert refusal(world, Election.PREFERRED) is ErrorCode.ELECTION_NOT_NEEDED
    world.fence(1)
    world.unfence(1)
    assert refusal(world, Election.PREFERRED) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    rejoin(world, 1, 0)
    elect(world, Election.PREFERRED)
    assert leaders(world) == [1, 2, 3]


def test_an_unclean_election_needs_a_partition_without_leader_and_a_running_replica(world: ControllerWorld) -> None:
    assert refusal(world, Election.UNCLEAN) is ErrorCode.ELECTION_NOT_NEEDED
    world.fence(1, 2, 3)
    assert refusal(world, Election.UNCLEAN) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    world.unfence(1)
    elect(world, Election.UNCLEAN)
    assert (world.partition.leader_id, world.partition.isr, world.partition.elr) == (1, (1,), ())
    assert world.partition.leader_recovery_state == RECOVERING


def test_an_election_in_an_unknown_partition_is_refused(world: ControllerWorld) -> None:
    assert refusal(world, Election.PREFERRED, index=9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(world, Election.UNCLEAN, topic="u") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_leadership_goes_back_to_a_broker_that_leads_too_little(world: ControllerWorld) -> None:
    world.fence(1)
    world.unfence(1)
    assert plan_rebalance(world.image, world.settings, imbalance_percentage=10) == []  # not in sync yet
    for index in range(3):
        rejoin(world, 1, index)
    assert plan_rebalance(world.image, world.settings, imbalance_percentage=100) == []
    world.apply(plan_rebalance(world.image, world.settings, imbalance_percentage=10))
    assert leaders(world) == [1, 2, 3]
