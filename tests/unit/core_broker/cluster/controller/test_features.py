import pytest

from core_broker.cluster.controller.features import plan_feature_updates
from core_broker.cluster.features import ELR_FEATURE
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.broker_registration import Feature
from core_broker.protocol.stored.metadata import ConfigRecord, ControllerFeature, RegisterControllerRecord
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
        plan_feature_updates({name: level}, world.image, world.settings, kraft_version=1)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    return refused.value


def test_a_level_must_be_supported_by_every_registered_broker_even_a_fenced_one(world: ControllerWorld) -> None:
    assert plan_feature_updates({"transaction.version": 1}, world.image, world.settings, kraft_version=1)
    world.register(2, features=NARROW)
    assert "broker 2 supports levels 2 to 2" in refusal(world, "transaction.version", 1).message
    assert plan_feature_updates({"transaction.version": 2}, world.image, world.settings, kraft_version=1) == []


def test_a_level_must_be_supported_by_every_registered_controller(world: ControllerWorld) -> None:
    narrow = [ControllerFeature("transaction.version", 2, 2)]
    world.apply([RegisterControllerRecord(controller_id=9, features=narrow)])
    assert "controller 9 supports levels 2 to 2" in refusal(world, "transaction.version", 1).message


def test_switching_elr_on_gives_all_brokers_the_same_minimum_of_replicas_in_sync(world: ControllerWorld) -> None:
    world.apply(plan_feature_updates({ELR_FEATURE: 0}, world.image, world.settings, kraft_version=1))
    world.apply([ConfigRecord(4, "", "min.insync.replicas", None), ConfigRecord(4, "1", "min.insync.replicas", "2")])
    world.apply(plan_feature_updates({ELR_FEATURE: 1}, world.image, world.settings, kraft_version=1))
    assert world.image.configs == {(4, ""): {"min.insync.replicas": "1"}}


def test_metadata_version_does_not_go_below_records_that_may_exist(world: ControllerWorld) -> None:
    assert "level 30" in refusal(world, "metadata.version", 29).message


@pytest.mark.parametrize(
    "name,level", [("no.such.feature", 1), ("caudal.version", 1), ("metadata.version", 31), (ELR_FEATURE, 2)]
)
def test_an_unknown_level_is_refused(world: ControllerWorld, name: str, level: int) -> None:
    refusal(world, name, level)


@pytest.mark.parametrize("finalized", [0, 1])
def test_kraft_version_stays_as_the_quorum_was_formed(world: ControllerWorld, finalized: int) -> None:
    assert (
        plan_feature_updates({"kraft.version": finalized}, world.image, world.settings, kraft_version=finalized) == []
    )
    with pytest.raises(BrokerError) as refused:
        plan_feature_updates({"kraft.version": 1 - finalized}, world.image, world.settings, kraft_version=finalized)
    assert f"the level is {finalized}" in refused.value.message


def test_switching_elr_off_makes_eligible_replicas_members_where_the_isr_is_empty(world: ControllerWorld) -> None:
    world.start(2)
    world.create([1, 2], min_insync_replicas="2")
    world.fence(2)
    assert (world.partition.isr, world.partition.elr) == ((1,), (2,))
    world.fence(1)
    assert (world.partition.isr, world.partition.elr) == ((), (1, 2))
    world.apply(plan_feature_updates({ELR_FEATURE: 0}, world.image, world.settings, kraft_version=1))
    assert (world.partition.isr, world.partition.elr, world.partition.last_known_elr) == ((1, 2), (), ())
    world.unfence(2)
    assert world.partition.leader_id == 2


def kafka(metadata_version: int) -> list[Feature]:
    """The features of an Apache Kafka broker with this highest metadata.version."""
    ranges = {"metadata.version": (7, metadata_version), "kraft.version": (0, 1), "transaction.version": (0, 2)}
    others = {"group.version": (0, 1), ELR_FEATURE: (0, 1)}
    return [Feature(name, low, high) for name, (low, high) in {**ranges, **others}.items()]


def release(metadata_version: int, **others: int) -> dict[str, int]:
    """What `kafka-features upgrade --release-version` asks for: every feature that the tool knows."""
    known = {"kraft.version": 1, "transaction.version": 2, "group.version": 1, ELR_FEATURE: 0}
    unknown_here = {"share.version": 0, "streams.version": 0}
    return {**known, **unknown_here, "metadata.version": metadata_version, **others}


@pytest.fixture
def old() -> ControllerWorld:
    """A cluster for Kafka 4.0, with one broker of it."""
    world = ControllerWorld(initial_release_version="4.0")
    world.start(1)
    world.register(2, features=kafka(25))
    return world


def update(world: ControllerWorld, levels: dict[str, int]) -> None:
    world.apply(plan_feature_updates(levels, world.image, world.settings, kraft_version=1))


def test_a_cluster_is_upgraded_release_by_release_as_its_oldest_member_allows(old: ControllerWorld) -> None:
    assert "broker 2 supports levels 7 to 25" in refusal(old, "metadata.version", 27).message
    old.register(2, features=kafka(27))
    update(old, release(27, **{ELR_FEATURE: 1}))
    always = {"transaction.version": 2, "group.version": 1}
    assert old.image.features == {"metadata.version": 27, ELR_FEATURE: 1, **always}
    assert "broker 2 supports levels 7 to 27" in refusal(old, "metadata.version", 30).message
    old.register(2, features=kafka(30))
    update(old, {"metadata.version": 30})
    assert old.image.features == {"metadata.version": 30, ELR_FEATURE: 1, **always}


def test_a_feature_that_we_lack_may_be_asked_for_at_level_0_only(world: ControllerWorld) -> None:
    assert plan_feature_updates({"share.version": 0}, world.image, world.settings, kraft_version=1) == []
    assert (
        "share.version=1: there is no such feature; name those to change" in refusal(world, "share.version", 1).message
    )


def test_levels_that_need_each_other_change_together(old: ControllerWorld) -> None:
    old.register(2, features=kafka(30))
    both = {"transaction.version": 0, "metadata.version": 23}
    update(old, both)
    assert old.image.features == {"metadata.version": 23, "group.version": 1}
    assert "must be at least 24; it is 23" in refusal(old, "transaction.version", 2).message
    update(old, {"transaction.version": 2, "metadata.version": 25})
    assert "transaction.version is in use and needs at least 24" in refusal(old, "metadata.version", 23).message


@pytest.mark.parametrize("first,lower,is_allowed", [("4.2", 27, True), ("4.1", 25, True), ("4.3", 29, False)])
def test_metadata_version_is_lowered_where_no_records_changed(first: str, lower: int, is_allowed: bool) -> None:
    world = ControllerWorld(initial_release_version=first)
    world.start(1)
    if is_allowed:
        update(world, {"metadata.version": lower})
        assert world.image.features["metadata.version"] == lower
    else:
        refusal(world, "metadata.version", lower)


def test_without_elr_the_controller_names_no_eligible_replicas(old: ControllerWorld) -> None:
    old.start(2, features=kafka(25))
    old.create([1, 2], min_insync_replicas="2")
    old.fence(2)
    old.fence(1)
    assert (old.partition.isr, old.partition.elr, old.partition.last_known_elr) == ((1,), (), ())
    old.register(1)
    old.unfence(1)
    assert (old.partition.leader_id, old.partition.elr) == (1, ())
    update(old, {ELR_FEATURE: 1})
    old.fence(1)
    assert (old.partition.isr, old.partition.elr) == ((), (1,))
