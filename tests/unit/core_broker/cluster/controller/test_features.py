import pytest

from core_broker.cluster.controller.features import plan_feature_update
from core_broker.cluster.controller.transitions import ELR_FEATURE
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.broker_registration import Feature
from tests.support.controller_world import ControllerWorld

NARROW = [
    Feature("metadata.version", 7, 30),
    Feature(ELR_FEATURE, 0, 1),
    Feature("group.version", 0, 1),
    Feature("transaction.version", 2, 2),
]


@pytest.fixture
def world() -> ControllerWorld:
    world = ControllerWorld()
    world.start(1)
    return world


def refusal(world: ControllerWorld, name: str, level: int) -> BrokerError:
    with pytest.raises(BrokerError) as refused:
        plan_feature_update(name, level, world.image, kraft_version=1)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    return refused.value


def test_a_level_must_be_supported_by_every_registered_broker_even_a_fenced_one(world: ControllerWorld) -> None:
    assert plan_feature_update("transaction.version", 1, world.image, kraft_version=1)
    world.register(2, features=NARROW)
    assert "broker 2 supports levels 2 to 2" in refusal(world, "transaction.version", 1).message
    assert plan_feature_update("transaction.version", 2, world.image, kraft_version=1) == []


def test_metadata_version_does_not_go_below_records_that_may_exist(world: ControllerWorld) -> None:
    assert "level 30" in refusal(world, "metadata.version", 29).message


@pytest.mark.parametrize("name,level", [("no.such.feature", 1), ("metadata.version", 31), (ELR_FEATURE, 2)])
def test_an_unknown_level_is_refused(world: ControllerWorld, name: str, level: int) -> None:
    refusal(world, name, level)


@pytest.mark.parametrize("finalized", [0, 1])
def test_kraft_version_stays_as_the_quorum_was_formed(world: ControllerWorld, finalized: int) -> None:
    assert plan_feature_update("kraft.version", finalized, world.image, kraft_version=finalized) == []
    with pytest.raises(BrokerError) as refused:
        plan_feature_update("kraft.version", 1 - finalized, world.image, kraft_version=finalized)
    assert f"the level is {finalized}" in refused.value.message


def test_switching_elr_off_makes_eligible_replicas_members_where_the_isr_is_empty(world: ControllerWorld) -> None:
    world.start(2)
    world.create([1, 2], min_insync_replicas="2")
    world.fence(2)
    assert (world.partition.isr, world.partition.elr) == ((1,), (2,))
    world.fence(1)
    assert (world.partition.isr, world.partition.elr) == ((), (1, 2))
    world.apply(plan_feature_update(ELR_FEATURE, 0, world.image, kraft_version=1))
    assert (world.partition.isr, world.partition.elr, world.partition.last_known_elr) == ((1, 2), (), ())
    world.unfence(2)
    assert world.partition.leader_id == 2
